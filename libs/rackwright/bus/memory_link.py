"""A connection in memory, which a test can cut, and the feeds that live on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from rackwright.bus.errors import BusClosed, LedgerGap, StreamMissing, StreamReplaced
from rackwright.bus.feed import BufferedFeed
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import Ready, Stored
from rackwright.bus.streams import Kind

T = TypeVar("T")


class Closable(Protocol):
    """A feed, whatever it carries."""

    async def aclose(self) -> None:
        """End it."""


class MemoryLink:
    """Implements `ports.Link`; a test or a simulator cuts and mends it."""

    def __init__(self) -> None:
        self.connected = True
        self.reconnects = 0
        self.denied = 0
        self._lose_answers = 0
        self._closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reconnect_calls: list[Callable[[], None]] = []
        self._disconnect_calls: list[Callable[[], None]] = []
        self._error_calls: list[Callable[[str], None]] = []
        self.feeds: dict[Closable, Callable[[], None]] = {}

    def cut(self) -> None:
        """Lose the connection."""
        self.connected = False
        for call in self._disconnect_calls:
            call()

    def mend(self) -> None:
        """Get the connection back."""
        self.connected = True
        self.reconnects += 1
        for call in [*self.feeds.values(), *self._reconnect_calls]:
            call()

    def lose_answers(self, count: int = 1) -> None:
        """The next answers do not arrive, though what was asked is done."""
        self._lose_answers += count

    def answer_lost(self) -> bool:
        """Whether the answer to the present request is lost."""
        if self._lose_answers == 0:
            return False
        self._lose_answers -= 1
        return True

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """See ports.Link."""
        self._reconnect_calls.append(callback)

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """See ports.Link."""
        self._disconnect_calls.append(callback)

    def on_denied(self, callback: Callable[[str, str], None]) -> None:
        """See ports.Link; nothing is ever denied in memory."""

    def on_error(self, callback: Callable[[str], None]) -> None:
        """See ports.Link."""
        self._error_calls.append(callback)

    def report(self, text: str) -> None:
        """Tell the `on_error` listeners."""
        for call in self._error_calls:
            call(text)

    async def closed(self) -> str:
        """See ports.Link."""
        return await asyncio.shield(self._closed)

    async def close(self) -> None:
        """End everything on this connection."""
        self.connected = False
        for feed in list(self.feeds):
            await feed.aclose()
        if not self._closed.done():
            self._closed.set_result("closed here")

    def raise_if_closed(self) -> None:
        """Raises BusClosed."""
        if self._closed.done():
            raise BusClosed(self._closed.result())


class MemoryFeed(BufferedFeed[T], Generic[T]):
    """Follows one stream of the store, as `consumer.ConsumerFeed` follows a real one."""

    def __init__(
        self,
        store: MemoryStore,
        link: MemoryLink,
        kind: Kind,
        *,
        start: int = 0,
        strict: bool = False,
        since: float = 0.0,
        filters: Sequence[str] = (),
        translate: Callable[[Stored], T],
        ready: Callable[[Ready], T] | None = None,
    ) -> None:
        super().__init__()
        link.raise_if_closed()
        self._store = store
        self._link = link
        self._kind = kind
        self._next = start
        self._by_sequence = start > 0
        self._strict = strict
        self._since = since
        self._filters = filters
        self._translate = translate
        self._make_ready = ready
        self._created: int | None = None
        link.feeds[self] = self._pull
        store.listen(kind, self, self._pull)
        self._pull()

    def _pull(self) -> None:
        if self.over or not self._link.connected:
            return
        try:
            say_ready = self._settle_start()
            for stored in self._store.after(self._kind, max(self._next - 1, 0), self._filters):
                if self._strict and stored.seq != self._next:
                    raise LedgerGap(self._next, stored.seq)
                self._next = stored.seq + 1
                if self._by_sequence or stored.at >= self._since:
                    self.push(self._translate(stored))
        except StreamMissing as error:
            if self._by_sequence:
                self.fail(error)
            return
        except (LedgerGap, StreamReplaced) as error:
            self.fail(error)
            return
        if say_ready and self._make_ready is not None:
            self.push(self._make_ready(Ready(last=self._store.ends(self._kind).last)))

    def _settle_start(self) -> bool:
        """Check where to start; whether a Ready is due. Raises LedgerGap, StreamReplaced."""
        stream = self._store.stream(self._kind)
        fresh = self._created is None
        replaced = not fresh and stream.created != self._created
        self._created = stream.created
        if self._by_sequence:
            if replaced:
                raise StreamReplaced(stream.spec.name, self._next, stream.last)
            if self._next > stream.last + 1:
                raise LedgerGap(self._next, stream.last + 1)
            if self._strict and self._next < stream.first:
                raise LedgerGap(self._next, stream.first)
        elif replaced:
            self._next = 0
        return fresh or replaced

    async def aclose(self) -> None:
        """End the feed."""
        self.finish()
        self._store.unlisten(self._kind, self)
        self._link.feeds.pop(self, None)
