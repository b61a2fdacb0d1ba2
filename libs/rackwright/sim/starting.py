"""Starts and snapshots of simulated processes: the live code, run on a store without waiting.

`host.follower` and `host.snapshots` are coroutines; on a bus that answers at once they never wait
for anything, so they can be run to their end by hand.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar, cast

from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import NO_HEADERS, Appended, Bus, Ends, Headers, Stored
from rackwright.bus.streams import Kind
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    CheckSnapshot,
    SnapshotChecked,
    SnapshotStored,
    TrimLedger,
    WriteSnapshot,
)
from rackwright.core.snapshot import dump
from rackwright.host.archivist import KEPT
from rackwright.host.commits import Author
from rackwright.host.errors import TooManyStarts
from rackwright.host.follower import LOST, Follower
from rackwright.host.patience import STEP_S
from rackwright.host.reading import Arrival
from rackwright.host.refold import answer, pack
from rackwright.host.runner import STARTS
from rackwright.host.snapshots import BadSnapshot, digest, find, read_bytes, remove, write
from rackwright.sim.engine import Engine
from rackwright.wire.ids import CellName

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing to its end."""
    while True:
        try:
            work.send(None)
        except StopIteration as end:
            return cast(T, end.value)


class _Feed:
    """What the ledger holds from a sequence on; ends there, as nothing comes while it is read."""

    def __init__(self, store: MemoryStore, start: int) -> None:
        self._items = store.after(Kind.LEDGER, start - 1)

    async def batch(self, limit: int = 512) -> list[Stored]:
        return [item for _, item in zip(range(limit), self._items, strict=False)]

    def __aiter__(self) -> _Feed:
        return self

    async def __anext__(self) -> Stored:
        for item in self._items:
            return item
        raise StopAsyncIteration

    async def __aenter__(self) -> _Feed:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def aclose(self) -> None:
        return


class _Ledger:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def ends(self) -> Ends:
        return self._store.ends(Kind.LEDGER)

    def follow(self, start: int) -> _Feed:
        return _Feed(self._store, start)


class _Snapshots:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def write(self, subject: str, data: bytes, headers: Headers = NO_HEADERS) -> int:
        outcome = self._store.append(Kind.SNAP, subject, data, headers)
        return outcome.seq if isinstance(outcome, Appended) else 0

    async def read(self, subject: str) -> Stored | None:
        return self._store.last_on(Kind.SNAP, subject)

    async def read_all(self, subjects: Iterable[str]) -> list[Stored | None]:
        return [self._store.last_on(Kind.SNAP, subject) for subject in subjects]

    async def subjects(self, pattern: str = "") -> list[str]:
        return self._store.subjects(Kind.SNAP, pattern or ">")

    async def delete(self, pattern: str) -> int:
        return self._store.purge(Kind.SNAP, pattern=pattern)


class StoreBus:
    """The ledger and the snapshots of a store, answered at once."""

    def __init__(self, store: MemoryStore, cell: CellName) -> None:
        self.cell = cell
        self.ledger = _Ledger(store)
        self.snapshots = _Snapshots(store)


def as_bus(store: MemoryStore, cell: CellName) -> Bus:
    """A StoreBus for code that uses nothing else of a bus."""
    return cast(Bus, StoreBus(store, cell))


def started(store: MemoryStore, cell: CellName) -> Follower:
    """A fold that has read the ledger as a live process does at its start (protocol P1).

    Raises NoValidStart, Stopped, TooManyStarts.
    """
    follower = Follower(as_bus(store, cell))
    for _ in range(STARTS):
        try:
            drive(follower.start())
        except LOST as error:
            why = str(error)
        else:
            return follower
    raise TooManyStarts(STARTS, why)


class Archive:
    """Writes, checks and trims for one process, as `host.archivist` does; `tell` is its `done`."""

    def __init__(
        self,
        engine: Engine,
        store: MemoryStore,
        author: Author,
        tell: Callable[[Arrival], None],
    ) -> None:
        self._engine = engine
        self._store = store
        self._author = author
        self._tell = tell
        self._bus = as_bus(store, author.cell)
        self._newest = 0
        self.closed = False

    def do(self, effect: WriteSnapshot | CheckSnapshot | TrimLedger, fleet: Fleet) -> None:
        """Begin with it; `fleet` is the one the machine decided on."""
        match effect:
            case WriteSnapshot():
                self._engine.later(self._author.ordinal * STEP_S + 0.05, self._write, fleet)
            case CheckSnapshot():
                self._engine.later(0.2, self._check, effect, fleet)
            case TrimLedger(to=to):
                if self._store.ends(Kind.LEDGER).first <= to:
                    self._store.purge(Kind.LEDGER, below=to + 1)

    def tell_newest(self, fleet: Fleet) -> None:
        """Tell of the newest snapshot that is there already."""
        self._look(fleet)

    def _look(self, fleet: Fleet) -> bool:
        for found in drive(find(self._bus)):
            if found.ledger == fleet.ledger and found.seq > self._newest:
                try:
                    manifest, _ = drive(read_bytes(self._bus, found))
                except BadSnapshot:
                    return False
                self._stored(found.seq, manifest.sha256)
                return True
        return False

    def _stored(self, seq: int, sha256: str) -> None:
        self._newest = max(self._newest, seq)
        event = partial(SnapshotStored, seq=seq, sha256=sha256)
        self._tell(Arrival(event=event, name="snapshot.stored"))

    def _write(self, fleet: Fleet) -> None:
        if self.closed or (self._author.ordinal > 0 and self._look(fleet)):
            return
        data = dump(fleet)
        drive(write(self._bus, self._author, fleet, data, self._engine.now))
        self._stored(fleet.seq, digest(data))
        mine = [found for found in drive(find(self._bus)) if found.ledger == fleet.ledger]
        needed = {seq for seq, _ in fleet.verified[-2:]} | {found.seq for found in mine[:KEPT]}
        for found in mine:
            if found.seq not in needed:
                drive(remove(self._bus, found))

    def _check(self, effect: CheckSnapshot, fleet: Fleet) -> None:
        if self.closed or effect.seq + 1 < self._store.ends(Kind.LEDGER).first:
            return
        there = [found for found in drive(find(self._bus)) if found.seq == effect.seq]
        try:
            _, data = drive(read_bytes(self._bus, there[0])) if there else (None, b"")
        except BadSnapshot:
            return
        if not data:
            return
        commits = [s for s in self._store.after(Kind.LEDGER, effect.seq) if s.seq <= effect.to]
        sha256 = answer(self._author.cell, io.BytesIO(b"".join(pack(data, commits))))
        event = partial(
            SnapshotChecked,
            seq=effect.seq,
            to=effect.to,
            sha256=effect.sha256,
            equal=sha256 == effect.sha256,
        )
        self._tell(Arrival(event=event, name="snapshot.checked"))
