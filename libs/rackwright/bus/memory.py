"""The ports in memory: the same promises as JetStream's, kept by a `MemoryStore`.

Several buses may share one store, as several connections share one server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from rackwright.bus.errors import AppendInFlight, BusAway, StreamMissing
from rackwright.bus.match import check_below
from rackwright.bus.memory_core import MemoryCore
from rackwright.bus.memory_link import MemoryFeed, MemoryLink
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.messages import EXPECT, EXPECT_ON_SUBJECT, OPERATION
from rackwright.bus.ports import (
    NO_HEADERS,
    Appended,
    Cause,
    Change,
    Ends,
    Headers,
    Outcome,
    Ready,
    Refused,
    Stored,
    Unsettled,
    Usage,
    Value,
)
from rackwright.bus.streams import MARKER_TTL_S, Kind


class _Port:
    """What the ports on one stream share."""

    def __init__(self, store: MemoryStore, link: MemoryLink, kind: Kind) -> None:
        self._store = store
        self._link = link
        self._kind = kind

    async def ends(self) -> Ends:
        """First and last sequence. Raises BusAway, StreamMissing."""
        self._need("ends")
        return self._store.ends(self._kind)

    async def usage(self) -> Usage:
        """How full it is. Raises BusAway, StreamMissing."""
        self._need("usage")
        return self._store.usage(self._kind)

    def _need(self, what: str) -> None:
        self._link.raise_if_closed()
        if not self._link.connected:
            raise BusAway(what, Cause.AWAY)

    async def _offer(
        self,
        subject: str,
        data: bytes,
        headers: Headers,
        *,
        expected: int | None = None,
        expected_on_subject: int | None = None,
        ttl_s: float = 0.0,
    ) -> Outcome:
        compare = {
            name: str(value)
            for name, value in ((EXPECT, expected), (EXPECT_ON_SUBJECT, expected_on_subject))
            if value is not None
        }
        self._store.check(self._kind, subject, data, {**headers, **compare})
        if not self._link.connected:
            return Unsettled(reason=Cause.AWAY, detail="not connected")
        await asyncio.sleep(0)  # others may come first, as on a wire
        try:
            outcome = self._store.append(
                self._kind,
                subject,
                data,
                headers,
                expected=expected,
                expected_on_subject=expected_on_subject,
                ttl_s=ttl_s,
            )
        except StreamMissing:
            return Unsettled(reason=Cause.NO_LEADER, detail=f"nobody takes {subject}")
        if self._link.answer_lost():
            return Unsettled(reason=Cause.NO_ANSWER, detail="no answer in time")
        return outcome

    async def publish(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """Store without compare; the sequence. Raises BusAway, BusFull, MessageTooLarge."""
        match await self._offer(subject, data, headers):
            case Appended(seq=seq):
                return seq
            case Unsettled(reason=reason, detail=detail):
                raise BusAway(f"publish {subject}", f"{reason}: {detail}")
            case Refused():
                raise AssertionError("refused without a compare")

    def _from_seq(self, start: int, *, strict: bool) -> MemoryFeed[Stored]:
        def itself(stored: Stored) -> Stored:
            return stored

        return MemoryFeed(
            self._store,
            self._link,
            self._kind,
            start=max(start, 1),
            strict=strict,
            translate=itself,
        )

    def _from_time(self, since: float, filters: Sequence[str]) -> MemoryFeed[Stored | Ready]:
        def stored(item: Stored) -> Stored | Ready:
            return item

        def ready(item: Ready) -> Stored | Ready:
            return item

        return MemoryFeed(
            self._store,
            self._link,
            self._kind,
            since=since,
            filters=filters,
            translate=stored,
            ready=ready,
        )


class MemoryLedger(_Port):
    """Implements `ports.Ledger`."""

    _in_flight: str | None = None

    async def append(
        self, subject: str, data: bytes, *, expected: int | None, headers: Headers = NO_HEADERS
    ) -> Outcome:
        """See ports.Ledger."""
        if self._in_flight is not None:
            raise AppendInFlight(self._in_flight, subject)
        self._in_flight = subject
        try:
            return await self._offer(subject, data, headers, expected=expected)
        finally:
            self._in_flight = None

    def follow(self, start: int) -> MemoryFeed[Stored]:
        """See ports.Ledger."""
        return self._from_seq(start, strict=True)

    async def purge_to(self, seq: int) -> None:
        """See ports.Ledger."""
        self._need("purge")
        self._store.purge(self._kind, below=seq)


class MemoryWishes(_Port):
    """Implements `ports.Wishes`."""

    def follow(self, start: int) -> MemoryFeed[Stored]:
        """See ports.Wishes."""
        return self._from_seq(start, strict=False)

    async def trim(self, seq: int) -> None:
        """See ports.Wishes."""
        self._need("trim")
        self._store.purge(self._kind, below=seq)


class MemorySignals(_Port):
    """Implements `ports.Signals` and `ports.DeadLetters`."""

    def follow(self, since: float = 0.0, filters: Sequence[str] = ()) -> MemoryFeed[Stored | Ready]:
        """See ports.Signals."""
        return self._from_time(since, filters)


class MemoryStatus(_Port):
    """Implements `ports.Status`."""

    async def put(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Status."""
        return await self.publish(subject, data, headers)

    def follow(self, filters: Sequence[str] = ()) -> MemoryFeed[Stored | Ready]:
        """See ports.Status."""
        return self._from_time(0.0, filters)


class MemorySnapshots(_Port):
    """Implements `ports.Snapshots`."""

    async def write(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        """See ports.Snapshots."""
        return await self.publish(subject, data, headers)

    async def read(self, subject: str) -> Stored | None:
        """See ports.Snapshots."""
        check_below(self._store.specs[self._kind].root, subject)
        self._need(f"read {subject}")
        return self._store.last_on(self._kind, subject)

    async def read_all(self, subjects: Iterable[str]) -> list[Stored | None]:
        """See the port."""
        return await asyncio.gather(*map(self.read, subjects))

    async def subjects(self, pattern: str = "") -> list[str]:
        """See ports.Snapshots."""
        self._need("subjects")
        return self._store.subjects(self._kind, pattern or ">")

    async def delete(self, pattern: str) -> int:
        """See ports.Snapshots."""
        self._need(f"delete {pattern}")
        return self._store.purge(self._kind, pattern=pattern)


class MemoryProjection(_Port):
    """Implements `ports.Projection`."""

    @property
    def _root(self) -> str:
        return self._store.specs[self._kind].root

    async def get(self, key: str) -> Value | None:
        """See ports.Projection."""
        self._need(f"get {key}")
        stored = self._store.last_on(self._kind, f"{self._root}{key}")
        if stored is None or OPERATION in stored.headers:
            return None
        return Value(key=key, revision=stored.seq, data=stored.data)

    async def put(self, key: str, data: bytes, *, revision: int) -> Outcome:
        """See ports.Projection."""
        subject = f"{self._root}{key}"
        if revision == 0 and self._link.connected:
            there = self._store.last_on(self._kind, subject)
            if there is not None and OPERATION in there.headers:
                revision = there.seq
        return await self._offer(subject, data, NO_HEADERS, expected_on_subject=revision)

    async def delete(self, key: str, *, revision: int) -> Outcome:
        """See ports.Projection."""
        return await self._offer(
            f"{self._root}{key}",
            b"",
            {OPERATION: "DEL"},
            expected_on_subject=revision,
            ttl_s=MARKER_TTL_S,
        )

    async def keys(self) -> list[str]:
        """See ports.Projection."""
        self._need("keys")
        skip = len(self._root)
        return sorted(
            stored.subject[skip:]
            for stored in self._store.after(self._kind, 0)
            if OPERATION not in stored.headers
        )

    def watch(self, key: str = ">") -> MemoryFeed[Change | Ready]:
        """See ports.Projection."""
        skip = len(self._root)

        def change(stored: Stored) -> Change | Ready:
            gone = OPERATION in stored.headers
            data = None if gone else stored.data
            return Change(key=stored.subject[skip:], revision=stored.seq, data=data)

        def ready(item: Ready) -> Change | Ready:
            return item

        filters = (f"{self._root}{key}",)
        return MemoryFeed(
            self._store, self._link, self._kind, filters=filters, translate=change, ready=ready
        )


class MemoryBus:
    """Implements `ports.Bus` on a store; make it inside a running event loop."""

    def __init__(self, store: MemoryStore, cell: str) -> None:
        self.cell = cell
        self.store = store
        self.link = MemoryLink()
        self.ledger = MemoryLedger(store, self.link, Kind.LEDGER)
        self.wishes = MemoryWishes(store, self.link, Kind.WISH)
        self.signals = MemorySignals(store, self.link, Kind.SIGNAL)
        self.status = MemoryStatus(store, self.link, Kind.STATUS)
        self.assign = MemoryProjection(store, self.link, Kind.ASSIGN)
        self.jobs = MemoryProjection(store, self.link, Kind.JOBS)
        self.snapshots = MemorySnapshots(store, self.link, Kind.SNAP)
        self.dead = MemorySignals(store, self.link, Kind.DEAD)
        self.core = MemoryCore(store, self.link)

    async def close(self) -> None:
        """See ports.Bus."""
        await self.link.close()
