"""nats-py and Python 3.11 may swallow a cancellation; here it is found again.

A task whose cancellation is lost lives on for ever, and whoever waits for its end waits as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CANCEL_AGAIN_S = 0.2


@contextmanager
def heeding_cancellation() -> Iterator[None]:
    """Raise the CancelledError that was asked for in the block and did not come out of it.

    A cancellation that is older than the block is left alone: what cleans up after it may go on.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError


async def end(task: asyncio.Future[Any]) -> None:
    """Cancel until it has ended."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)
