"""What a simulated process and the nodes hear from the streams of the store, as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import Stored
from rackwright.bus.streams import Kind
from rackwright.host.hearing import AHEAD_S, SIGNALS_BACK_S
from rackwright.host.reading import Arrival, Read, SetAside, read_signal, read_status, read_wish
from rackwright.host.sources import Arrivals
from rackwright.sim.paths import Path
from rackwright.sim.process import Process
from rackwright.wire.ids import CellName

READERS: dict[Kind, Callable[[CellName, Stored, float], Read]] = {
    Kind.STATUS: read_status,
    Kind.SIGNAL: read_signal,
    Kind.WISH: read_wish,
}


class Decoded:
    """Messages of the streams, each decoded once for everybody. `aside` counts the unreadable."""

    def __init__(self, cell: CellName) -> None:
        self._cell = cell
        self._known: dict[tuple[Kind, int, int], Read] = {}
        self.aside = 0

    def read(self, kind: Kind, created: int, stored: Stored) -> Arrival | None:
        """What the machine is told of it, if anything."""
        key = (kind, created, stored.seq)
        found = self._known.get(key)
        if found is None:
            self._known[key] = found = READERS[kind](self._cell, stored, 0.0)
        if isinstance(found, SetAside):
            self.aside += 1
            return found.instead
        return found


class Follow:
    """One process reads one stream: what is there, then each change, in order."""

    def __init__(
        self,
        store: MemoryStore,
        kind: Kind,
        path: Path,
        decoded: Decoded,
        process: Process[Any],
        source: Arrivals,
        start: int = 1,
    ) -> None:
        self._store = store
        self._kind = kind
        self._pipe = path.pipe()
        self._decoded = decoded
        self._process = process
        self._source = source
        self._next = start
        self._created = store.stream(kind).created
        self._pipe.push(self._read)
        store.listen(kind, self, lambda: self._pipe.push(self._read))

    def close(self) -> None:
        """The process is gone."""
        self._store.unlisten(self._kind, self)
        self._pipe.close()

    def _read(self) -> None:
        stream = self._store.stream(self._kind)
        if stream.created != self._created:
            self._created, self._next = stream.created, 1
        for stored in self._store.after(self._kind, self._next - 1):
            self._next = stored.seq + 1
            arrival = self._decoded.read(self._kind, self._created, stored)
            if arrival is not None:
                until = self._process.mono() + AHEAD_S
                waits = arrival.obeyed > self._process.standing.fleet.seq
                self._process.hear(
                    self._source, replace(arrival, until=until) if waits else arrival
                )
        self._source.end_history()


def signals_from(store: MemoryStore, now: float) -> int:
    """The first signal that a process hears which starts now."""
    since = now - SIGNALS_BACK_S
    stream = store.stream(Kind.SIGNAL)
    return next((s.seq for s in store.after(Kind.SIGNAL, 0) if s.at >= since), stream.last + 1)
