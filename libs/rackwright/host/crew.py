"""Tasks that belong together: when one of them fails, whoever started them learns why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

CANCEL_AGAIN_S = 0.5


class Crew:
    """Runs tasks until `aclose`. `changed` is called when one of them fails."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run it beside the others."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and self._error is None:
            self._error = error
            self._changed()

    def check(self) -> None:
        """Raise the first error of a task, if there was one."""
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        """Cancel all and wait until they have ended."""
        tasks = set(self._tasks)
        while tasks:
            for task in tasks:
                task.cancel()
            # asyncio.wait_for of Python 3.11 loses a cancellation that meets its result: ask again.
            _, tasks = await asyncio.wait(tasks, timeout=CANCEL_AGAIN_S)
