"""Copies of services in the simulated cell: a process while it lives, and all that serves it."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Protocol

from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import Stored
from rackwright.bus.streams import Kind
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Attend,
    CheckSnapshot,
    Deed,
    Note,
    Project,
    SendEcho,
    TrimLedger,
    TrimWishes,
    WriteSnapshot,
)
from rackwright.defragmenter.config import HEARS as DEFRAGMENTER_HEARS
from rackwright.defragmenter.machine import Defragmenter
from rackwright.dispatcher.machine import Dispatcher
from rackwright.health_monitor.config import HEARS as MONITOR_HEARS
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.host.commits import Author, Sealed
from rackwright.host.errors import NoValidStart
from rackwright.host.flight import Settled
from rackwright.host.hearing import Hears
from rackwright.host.patience import STEP_S
from rackwright.host.steps import Steps
from rackwright.placer.config import HEARS as PLACER_HEARS
from rackwright.placer.machine import Placer
from rackwright.sim.engine import Engine
from rackwright.sim.ledger import SimLedger
from rackwright.sim.paths import WindyPath
from rackwright.sim.process import Clocks, Crashed, Process
from rackwright.sim.projecting import SimProjector
from rackwright.sim.starting import Archive, started
from rackwright.spare_manager.config import HEARS as SPARE_HEARS
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.codec import UnknownType
from rackwright.wire.ids import CellName, NodeId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.signals import Echo
from rackwright.wire.versions import FOLD_VERSION
from tests.simulation.knobs import Knobs
from tests.simulation.streams import Decoded, Follow, signals_from

CELL = CellName("sim")
MACHINES: dict[str, tuple[Any, Hears, float]] = {
    "placer": (Placer, PLACER_HEARS, STEP_S),
    "health-monitor": (HealthMonitor, MONITOR_HEARS, 0.0),
    "spare-manager": (SpareManager, SPARE_HEARS, STEP_S),
    "defragmenter": (Defragmenter, DEFRAGMENTER_HEARS, STEP_S),
    "dispatcher": (Dispatcher, Hears(status=True, snapshots=True), STEP_S),
}
GONE_S = 3.5
UNKNOWN_TO_OLD = frozenset({"rack.held", "cell.upgraded"})
# What the software of this world knows; its ledger begins with one version less.
UPGRADED = FOLD_VERSION + 1


class Violated(AssertionError):
    """A safety property does not hold, or the cell did not come to rest."""


class OldSteps:
    """A reader of a version before one entry type was known: it must stop there."""

    @staticmethod
    def make(reader: Steps) -> Steps:
        """Take the knowledge from this reader."""
        known = reader.decode

        def decode_old(stored: Stored) -> Commit[Entry]:
            commit = known(stored)
            if commit.type in UNKNOWN_TO_OLD:
                raise UnknownType("type", f"no entry {commit.type!r} is known")
            return commit

        reader.decode = decode_old  # type: ignore[method-assign]
        return reader


class Around(Protocol):
    """What a member finds in its world."""

    engine: Engine
    knobs: Knobs
    random: Random
    store: MemoryStore
    ledger: SimLedger
    decoded: Decoded

    def happened(self, what: str) -> None: ...

    def point(self, name: str) -> None: ...

    def settled(self, sealed: Sealed, settled: Settled) -> None: ...

    def compare_folds(self, name: str, fleet: Fleet) -> None: ...

    def count_copies(self) -> None: ...

    def echo_at_bus(self, echo: Echo) -> None: ...


class Member:
    """A service's copy: its process while it lives, and what serves it."""

    def __init__(self, world: Around, service: str, ordinal: int, clocks: Clocks) -> None:
        self.world = world
        self.service = service
        self.ordinal = ordinal
        self.clocks = clocks
        self.path = WindyPath(world.engine, world.knobs.weather, world.happened)
        self.core = WindyPath(world.engine, world.knobs.weather, world.happened)
        self.behind = False  # heartbeats and echoes go on, nothing of the ledger reaches it
        self.attended: frozenset[NodeId] = frozenset()
        self.process: Process[Any] | None = None
        self.starts = 0
        self.old = False
        self._follows: list[Follow] = []
        self._projector: SimProjector | None = None
        self._archive: Archive | None = None

    @property
    def name(self) -> str:
        """`<service>/<ordinal>`."""
        return f"{self.service}/{self.ordinal}"

    def start(self) -> None:
        """Read the ledger as a live process does, and live on from there."""
        world = self.world
        if self.process is not None:
            return
        self.starts += 1
        self.attended = frozenset()
        try:
            reader: Steps = started(world.store, CELL)
        except NoValidStart as error:
            raise Violated(f"{self.name} cannot start: {error}") from error
        world.compare_folds(self.name, reader.fleet)
        own = self.old or world.random.random() < world.knobs.own_folds
        if self.old:
            reader = OldSteps.make(reader)
        make, hears, patience = MACHINES[self.service]
        self.process = process = Process(
            world.engine,
            world.ledger,
            make(),
            hears,
            token=f"t{self.starts}",
            ordinal=self.ordinal,
            present=world.knobs.copies[self.service],
            patience_s=patience,
            path=self.path,
            clocks=self.clocks,
            reader=reader if own else None,
            do=self._do,
            point=world.point,
            settled=world.settled,
            died=self._died,
        )
        author = Author(CELL, self.service, self.ordinal, f"v{self.starts}")
        self._projector = SimProjector(world.engine, world.store, self.path, author, self._point)
        tell = partial(process.hear, process.done)
        self._archive = Archive(world.engine, world.store, author, tell)
        self._listen(process, hears)
        if hears.snapshots:
            world.engine.later(0.1, self._archive.tell_newest, process.standing.fleet)
        world.engine.later(STEP_S, world.count_copies)

    def _listen(self, process: Process[Any], hears: Hears) -> None:
        world = self.world
        answers = process.standing.fleet.answers.get(self.service)
        wanted = (
            (hears.status, Kind.STATUS, process.status, 1),
            (
                hears.signals,
                Kind.SIGNAL,
                process.signals,
                signals_from(world.store, world.engine.now),
            ),
            (hears.wishes, Kind.WISH, process.wishes, 1 + (answers.floor if answers else 0)),
        )
        self._follows = [
            Follow(world.store, kind, self.path, world.decoded, process, source, begin)
            for want, kind, source, begin in wanted
            if want
        ]

    def kill(self) -> None:
        """SIGKILL, and a restart a while later."""
        if self.process is None:
            return
        self.process.kill()
        self._cleared()

    def upgrade(self) -> None:
        """An older version is replaced."""
        if self.old:
            self.old = False
            self.kill()

    def _point(self, name: str) -> None:
        """It may die at a moment at which its machine does nothing."""
        try:
            self.world.point(name)
        except Crashed as error:
            self.world.happened(f"crash: {error}")
            self.kill()

    def _died(self, _process: Process[Any], why: str) -> None:
        self.world.happened(f"crash: {why}")
        self._cleared()

    def _cleared(self) -> None:
        self.process = None
        for follow in self._follows:
            follow.close()
        for closing in (self._projector, self._archive):
            if isinstance(closing, SimProjector):
                closing.close()
            elif closing is not None:
                closing.closed = True
        world = self.world
        world.engine.later(0.2 + world.random.random() * 2.0, self.start)
        world.engine.later(GONE_S, world.count_copies)

    def values_lost(self) -> None:
        """The buckets are empty after a reconnect: write what is missing."""
        if self._projector is not None:
            self._projector.look_again()

    def _do(self, process: Process[Any], deed: Deed) -> None:
        match deed:
            case SendEcho(echo=echo):
                self.core.toss(self.world.echo_at_bus, echo)
            case Project() if self._projector is not None:
                fleet = process.standing.fleet
                self._projector.project(deed, fleet.ledger, fleet.seq)
            case WriteSnapshot() | CheckSnapshot() | TrimLedger() if self._archive is not None:
                self._archive.do(deed, process.standing.fleet)
            case Attend(nodes=nodes):
                self.attended = frozenset(node for _, node in nodes)
            case TrimWishes(to=to):
                self.world.store.purge(Kind.WISH, below=to + 1)
            case Note(level="error", event=event, fields=fields):
                raise Violated(f"{self.name} says {event}: {fields}")
            case _:
                pass
