"""Answering questions: a bounded queue of them, a few workers, and errors as answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from rackwright.bus.errors import RequestFailed
from rackwright.bus.feed import BufferedFeed
from rackwright.bus.ports import NO_HEADERS, Handler, Headers, Message

ERROR_CODE: Final = "Nats-Service-Error-Code"  # as NATS's service framework (ADR-32)
ERROR_TEXT: Final = "Nats-Service-Error"
WAITING: Final = 1024


class BoundedFeed(BufferedFeed[Message]):
    """Implements `ports.Subscription`: when it is full the oldest go and are counted."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Messages dropped so far."""
        return self._dropped

    def push(self, item: Message) -> None:
        """Add a message, dropping the oldest if there is no room."""
        if len(self._items) >= self._limit:
            self._items.popleft()
            self._dropped += 1
        super().push(item)


class QueryResponder:
    """Implements `ports.Responder`: a few workers answer what a bounded feed brings."""

    def __init__(
        self,
        requests: BoundedFeed,
        handler: Handler,
        answer: Callable[[str, bytes, Headers], Awaitable[object]],
        report: Callable[[str], None],
        concurrency: int,
    ) -> None:
        self._requests = requests
        self._handler = handler
        self._answer = answer
        self._report = report
        self._room = asyncio.Semaphore(concurrency)
        self._running: set[asyncio.Task[None]] = set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        async for message in self._requests:
            await self._room.acquire()
            task = asyncio.get_running_loop().create_task(self._respond(message))
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._room.release()
        self._running.discard(task)

    async def _respond(self, message: Message) -> None:
        # In a task of its own, so that whatever the handler raises is a value here.
        work = asyncio.ensure_future(self._handler(message))
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            raise
        error = None if work.cancelled() else work.exception()
        if message.reply is None:
            return
        if error is None and not work.cancelled():
            await self._answer(message.reply, work.result(), NO_HEADERS)
        elif isinstance(error, RequestFailed):
            await self._fail(message.reply, error.code, error.description)
        else:
            self._report(f"handler of {message.subject}: {error!r}")
            await self._fail(message.reply, 500, "internal error")

    async def _fail(self, reply: str, code: int, text: str) -> None:
        await self._answer(reply, b"", {ERROR_CODE: str(code), ERROR_TEXT: text})

    async def aclose(self) -> None:
        """Take no more requests, give up on those being answered."""
        await self._requests.aclose()
        tasks = [self._task, *self._running]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def read_answer(subject: str, message: Message) -> Message:
    """The answer itself. Raises RequestFailed if it is an error."""
    if ERROR_CODE in message.headers:
        code = message.headers[ERROR_CODE]
        text = message.headers.get(ERROR_TEXT, "")
        raise RequestFailed(subject, int(code) if code.isdigit() else 500, text)
    return message
