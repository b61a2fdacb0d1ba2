"""Core NATS: what is said to whoever listens now."""

from __future__ import annotations

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from rackwright.bus.connection import Connection
from rackwright.bus.errors import (
    BusAway,
    BusClosed,
    MessageTooLarge,
    NoResponder,
    WrongSubject,
)
from rackwright.bus.match import is_plain
from rackwright.bus.messages import size_of
from rackwright.bus.ports import NO_HEADERS, Cause, Handler, Headers, Message
from rackwright.bus.requests import Unanswered
from rackwright.bus.respond import WAITING, BoundedFeed, QueryResponder, read_answer


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
