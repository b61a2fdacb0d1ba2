"""Bounded queues between what is heard and the one task that handles it.

Each source is filled by a task of its own, which waits when the queue is full; the flow control of
the bus then holds the server back. The handling task takes a few of each source in turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rackwright.host.reading import Arrival

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Source(Generic[T]):
    """A queue of at most `limit`; `quantum` is how many are handled before others get a turn.

    `heard` and `handled` count items; `history` is how many were there at the start, once known.
    """

    name: str
    wake: Callable[[], None]
    limit: int = 1024
    quantum: int = 64
    items: deque[T] = field(default_factory=deque)
    heard: int = 0
    handled: int = 0
    history: int | None = None
    _room: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, item: T) -> None:
        """Add one, when there is room."""
        while len(self.items) >= self.limit:
            self._room.clear()
            await self._room.wait()
        self.items.append(item)
        self.heard += 1
        self.wake()

    async def extend(self, items: list[T]) -> None:
        """Add all of them, when there is room; the queue may then be over its limit once."""
        while len(self.items) >= self.limit:
            self._room.clear()
            await self._room.wait()
        self.items.extend(items)
        self.heard += len(items)
        self.wake()

    def end_history(self) -> None:
        """What was there at the start has been put."""
        if self.history is None:
            self.history = self.heard
            self.wake()

    @property
    def loaded(self) -> bool:
        """Has everything that was there at the start been taken?"""
        return self.history is not None and self.handled >= self.history

    def take(self, most: int) -> list[T]:
        """The next ones, at most `most`."""
        items = self.items
        if not items:
            return []
        taken = [items.popleft() for _ in range(min(most, len(items)))]
        self.handled += len(taken)
        self._room.set()
        return taken

    def __len__(self) -> int:
        return len(self.items)


@dataclass(slots=True, kw_only=True)
class Arrivals(Source[Arrival]):
    """A source whose items may have to wait for the fold: each for all behind it."""

    def due(self, folded: int, mono: float) -> list[Arrival]:
        """The next ones that may be handled now, at most a quantum."""
        if not self.items:
            return []
        ready = 0
        for item in self.items:
            if ready == self.quantum or not item.due(folded, mono):
                break
            ready += 1
        return self.take(ready)

    def due_now(self, folded: int, mono: float) -> bool:
        """Are there more?"""
        return bool(self.items) and self.items[0].due(folded, mono)

    def next_due(self) -> float | None:
        """The `mono` time at which the first one waits no longer for the fold; None: no wait."""
        return self.items[0].until if self.items else None


@dataclass(slots=True, kw_only=True)
class LastValues(Arrivals):
    """A source of last values: one that must wait does not hold back those of other keys."""

    ahead: dict[str, Arrival] = field(default_factory=dict)

    def due(self, folded: int, mono: float) -> list[Arrival]:
        """The next ones that may be handled now; a newer value of a key replaces a waiting one."""
        if not self.items and not self.ahead:
            return []
        ready = [item for item in self.ahead.values() if item.due(folded, mono)]
        for item in ready:
            del self.ahead[item.key]
        for item in self.take(self.quantum):
            self.ahead.pop(item.key, None)
            if item.due(folded, mono):
                ready.append(item)
            else:
                self.ahead[item.key] = item
        return ready

    def due_now(self, folded: int, mono: float) -> bool:
        """Are there more?"""
        return bool(self.items)

    def next_due(self) -> float | None:
        """As in Arrivals."""
        return min((item.until for item in self.ahead.values()), default=None)
