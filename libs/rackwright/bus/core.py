"""Core NATS: what is said to whoever listens now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from rackwright.bus.connection import Connection
from rackwright.bus.errors import (
    BusAway,
    BusClosed,
    MessageTooLarge,
    NoResponder,
    RequestFailed,
    WrongSubject,
)
from rackwright.bus.feed import BufferedFeed
from rackwright.bus.match import is_plain
from rackwright.bus.ports import NO_HEADERS, Cause, Handler, Headers, Message
from rackwright.bus.requests import Unanswered
from rackwright.bus.writer import size_of

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


class CoreFeed(BoundedFeed):
    """A subscription that ends with its connection; nats-py renews it on a reconnect."""

    def __init__(self, connection: Connection, limit: int) -> None:
        super().__init__(limit)
        self._connection = connection
        self._subscription: NatsSubscription | None = None

    async def open(self, subject: str, queue: str | None) -> None:
        """Subscribe and wait until the server knows. Raises BusAway."""
        self._connection.attach(self)
        if not self._connection.connected:
            raise BusAway(f"subscribe {subject}", "not connected")
        self._subscription = await self._connection.subscribe(
            subject, self._on_message, queue=queue or ""
        )
        await self._connection.flush()

    async def _on_message(self, message: Msg) -> None:
        self.push(
            Message(
                subject=message.subject,
                reply=message.reply or None,
                headers=message.headers or NO_HEADERS,
                data=message.data,
            )
        )

    def reconnected(self) -> None:
        """Nothing to do: the client has subscribed again."""

    def broken(self, error: BusClosed) -> None:
        """The connection will not come back."""
        self.fail(error)

    async def aclose(self) -> None:
        """Unsubscribe."""
        self.finish()
        self._connection.detach(self)
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            await self._connection.unsubscribe(subscription)


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


class JetStreamCore:
    """Implements `ports.Core`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def publish(
        self,
        subject: str,
        data: bytes,
        headers: Headers = NO_HEADERS,
        *,
        reply: str | None = None,
    ) -> bool:
        """See ports.Core."""
        self._check(subject, data, headers)
        return await self._connection.publish(subject, data, headers, reply or "")

    def _check(self, subject: str, data: bytes, headers: Headers) -> None:
        if not is_plain(subject):
            raise WrongSubject(subject, ">")
        size, limit = size_of(data, headers), self._connection.max_payload
        if size > limit:
            raise MessageTooLarge(subject, size, limit)

    async def subscribe(
        self, subject: str, *, limit: int = 65536, queue: str | None = None
    ) -> CoreFeed:
        """See ports.Core."""
        feed = CoreFeed(self._connection, limit)
        try:
            await feed.open(subject, queue)
        except BusAway:
            await feed.aclose()
            raise
        return feed

    async def request(
        self, subject: str, data: bytes, *, patience: float = 1.0, headers: Headers = NO_HEADERS
    ) -> Message:
        """See ports.Core."""
        self._check(subject, data, headers)
        try:
            answer = await self._connection.ask(subject, data, headers, patience=patience)
        except Unanswered as error:
            if error.cause is Cause.NO_LEADER:
                raise NoResponder(subject) from error
            raise BusAway(f"request {subject}", str(error)) from error
        message = Message(
            subject=answer.subject,
            reply=None,
            headers=answer.headers or NO_HEADERS,
            data=answer.data,
        )
        return read_answer(subject, message)

    async def respond(
        self,
        subject: str,
        handler: Handler,
        *,
        queue: str | None = None,
        concurrency: int = 16,
    ) -> QueryResponder:
        """See ports.Core."""
        requests = await self.subscribe(subject, limit=WAITING, queue=queue)

        async def answer(reply: str, data: bytes, headers: Headers) -> object:
            return await self._connection.publish(reply, data, headers)

        return QueryResponder(requests, handler, answer, self._connection.report, concurrency)
