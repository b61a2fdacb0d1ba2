"""The reader's half of a feed: a buffer that a producer fills and one reader empties."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class BufferedFeed(Generic[T]):
    """Implements `ports.Feed`; producers call `push`, `fail` and `finish`."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._finished = False

    # For the producer

    def push(self, item: T) -> None:
        """Add one item at the end."""
        if not self._finished:
            self._items.append(item)
            self._wake()

    def extend(self, items: Iterable[T]) -> None:
        """Add items at the end."""
        if not self._finished:
            self._items.extend(items)
            self._wake()

    def fail(self, error: BaseException) -> None:
        """End the feed with an error, which comes after what is buffered."""
        if self._error is None and not self._finished:
            self._error = error
            self._wake()

    def finish(self) -> None:
        """End the feed; what is buffered is dropped, as nobody reads it any more."""
        self._finished = True
        self._items.clear()
        self._wake()

    @property
    def over(self) -> bool:
        """Whether nothing more will be added."""
        return self._finished or self._error is not None

    @property
    def buffered(self) -> int:
        """How many items wait for the reader."""
        return len(self._items)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _drained(self) -> None:
        """A hook for producers that hold the other side back; called before each read."""

    # For the reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        await self._wait()
        if not self._items:
            raise StopAsyncIteration
        return self._items.popleft()

    async def batch(self, limit: int = 512) -> list[T]:
        """At least one item, at most `limit`; an empty list: the feed was closed."""
        await self._wait()
        return self.taken(limit)

    def taken(self, limit: int = 512) -> list[T]:
        """What is here now."""
        items = self._items
        if len(items) <= limit:
            everything = list(items)
            items.clear()
            return everything
        return [items.popleft() for _ in range(limit)]

    async def _wait(self) -> None:
        """Return when there is an item or the feed was closed. Raises the feed's error."""
        await self._drained()
        while not self._items and not self._finished:
            if self._error is not None:
                raise self._error
            if self._waiter is not None:
                raise RuntimeError("a feed has one reader at a time")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    async def aclose(self) -> None:
        """End the feed."""
        self.finish()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
