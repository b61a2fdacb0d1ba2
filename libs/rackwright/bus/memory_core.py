"""Core messages in memory."""

from __future__ import annotations

import asyncio

from rackwright.bus.errors import BusAway, MessageTooLarge, NoResponder, WrongSubject
from rackwright.bus.match import is_plain
from rackwright.bus.memory_link import MemoryLink
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.messages import size_of
from rackwright.bus.ports import NO_HEADERS, Cause, Handler, Headers, Message
from rackwright.bus.respond import WAITING, BoundedFeed, QueryResponder, read_answer
from rackwright.bus.streams import KIB

MAX_PAYLOAD = 256 * KIB


class MemorySubscription(BoundedFeed):
    """Implements `ports.Subscription`."""

    def __init__(self, store: MemoryStore, link: MemoryLink, limit: int) -> None:
        super().__init__(limit)
        self._store = store
        self._link = link
        link.feeds[self] = lambda: None

    def hear(self, message: Message) -> None:
        """Take a message, unless the connection is cut."""
        if self._link.connected:
            self.push(message)

    async def aclose(self) -> None:
        """Unsubscribe."""
        self.finish()
        self._store.unsubscribe(self)
        self._link.feeds.pop(self, None)


class MemoryCore:
    """Implements `ports.Core`."""

    def __init__(self, store: MemoryStore, link: MemoryLink) -> None:
        self._store = store
        self._link = link
        self._count = 0

    async def publish(
        self,
        subject: str,
        data: bytes,
        headers: Headers = NO_HEADERS,
        *,
        reply: str | None = None,
    ) -> bool:
        """See ports.Core."""
        if not is_plain(subject):
            raise WrongSubject(subject, ">")
        size = size_of(data, headers)
        if size > MAX_PAYLOAD:
            raise MessageTooLarge(subject, size, MAX_PAYLOAD)
        if not self._link.connected:
            return False
        self._store.say(Message(subject=subject, reply=reply, headers=dict(headers), data=data))
        return True

    async def subscribe(
        self, subject: str, *, limit: int = 65536, queue: str | None = None
    ) -> MemorySubscription:
        """See ports.Core."""
        self._link.raise_if_closed()
        if not self._link.connected:
            raise BusAway(f"subscribe {subject}", Cause.AWAY)
        feed = MemorySubscription(self._store, self._link, limit)
        self._store.subscribe(subject, feed, feed.hear, queue)
        return feed

    async def request(
        self, subject: str, data: bytes, *, patience: float = 1.0, headers: Headers = NO_HEADERS
    ) -> Message:
        """See ports.Core."""
        self._count += 1
        inbox = f"_INBOX.{id(self)}.{self._count}"
        async with await self.subscribe(inbox) as answers:
            message = Message(subject=subject, reply=inbox, headers=dict(headers), data=data)
            if self._store.say(message) == 0:
                raise NoResponder(subject)
            try:
                async with asyncio.timeout(patience):
                    return read_answer(subject, await anext(answers))
            except TimeoutError:
                raise BusAway(f"request {subject}", Cause.NO_ANSWER) from None

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
            return await self.publish(reply, data, headers)

        return QueryResponder(requests, handler, answer, self._link.report, concurrency)
