"""What the world may do to a simulated cell: write what nodes would make a monitor observe, and say
what workers do.

Leases, heartbeats and blame are not played here, the fault-injection tests of the kernel do that; a
node's fault is observed when the policy's timers say it would be.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer, StatusSeen, Wished
from rackwright.sim.engine import Engine
from rackwright.sim.ledger import SimLedger
from rackwright.sim.sending import PlainAuthor
from rackwright.simulator.minds import Minds
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.entries.node import NodeCleaning, NodeJoined, Observation, RackDefined
from rackwright.wire.ids import MessageId, NodeId, Owner, SessionId, WorkerId
from rackwright.wire.message import MAX_ENTRIES, Body, Entry
from rackwright.wire.nodes import Hardware, RackSpec
from rackwright.wire.signals import ENDED, NodeStatus, WorkerState, WorkerStatus

TICK_S = 55.0  # ledger time goes on by at most a minute a commit


@dataclass(slots=True, kw_only=True)
class Stage:
    """`workers` are what each node says of its workers; `minds` hear wishes and statuses."""

    engine: Engine
    ledger: SimLedger
    gpus_per_node: int
    minds: Minds | None = None
    workers: dict[NodeId, dict[WorkerId, WorkerStatus]] = field(default_factory=dict)
    sessions: dict[NodeId, int] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _wishes: Iterator[int] = field(default_factory=lambda: count(1))
    _said: dict[NodeId, int] = field(default_factory=dict)
    _monitor: PlainAuthor = field(init=False)
    _placer: PlainAuthor = field(init=False)

    def __post_init__(self) -> None:
        self._monitor = PlainAuthor(self.ledger.cell, "health-monitor", 0, "w")
        self._placer = PlainAuthor(self.ledger.cell, "placer", 0, "w")

    @property
    def fleet(self) -> Fleet:
        """The cell as it is."""
        return self.ledger.fleet

    # Entries

    def define(self, racks: Sequence[RackSpec]) -> None:
        """Racks, all of whose nodes join at once."""
        for start in range(0, len(racks), MAX_ENTRIES):
            entries = tuple(RackDefined(rack=one) for one in racks[start : start + MAX_ENTRIES])
            self._append(self._placer, entries, compare=True)
        for rack in racks:
            self.observe(self.joined(name) for name in rack.nodes)

    def joined(self, name: NodeId) -> NodeJoined:
        """A new session of a node, of which nothing runs."""
        number = self.sessions.get(name, 0) + 1
        self.sessions[name] = number
        self.workers[name] = {}
        return NodeJoined(
            node=name,
            of=self.fleet.node(name).last,
            session=SessionId(f"s{number}"),
            boot=f"b{number}",
            hardware=Hardware(serial=name, gpus=self.gpus_per_node),
        )

    def observe(self, entries: Iterable[Observation | Entry]) -> None:
        """What a monitor observes, in commits of one type."""
        batch: list[Entry] = []
        for entry in entries:
            if batch and (type(entry) is not type(batch[0]) or len(batch) == MAX_ENTRIES):
                self._append(self._monitor, tuple(batch), compare=False)
                batch = []
            batch.append(entry)
        if batch:
            self._append(self._monitor, tuple(batch), compare=False)

    def decide(self, entries: tuple[Entry, ...]) -> None:
        """What a monitor decides about racks, by compare."""
        self._append(self._monitor, entries, compare=True)

    def tick(self) -> None:
        """Time has gone by."""
        while self.engine.now - self.fleet.time > TICK_S:
            before = self.fleet.time
            self._append(self._monitor, (LedgerTicked(),), compare=False)
            if self.fleet.time == before:
                return

    def _append(self, author: PlainAuthor, entries: tuple[Entry, ...], *, compare: bool) -> None:
        offer = Offer(entries=entries, compare=compare)
        self.ledger.append_if_legal(author.seal(self.fleet, offer, self.engine.now))

    # Wishes and statuses

    def begin_wishes(self, numbers: Iterator[int]) -> None:
        """Wishes have these sequences from now on."""
        self._wishes = numbers

    def wish(self, owner: Owner, wish: Body) -> None:
        """Somebody wishes for something."""
        now, seq = self.engine.now, next(self._wishes)
        heard = Wished(
            now=now, mono=now, seq=seq, id=MessageId(f"wish.{seq}"), owner=owner, at=now, wish=wish
        )
        if self.minds is not None:
            self.minds.hear_wish(heard)

    def say(self, name: NodeId) -> None:
        """The node tells its last value."""
        node = self.fleet.node(name)
        if node.session is None:
            return
        number = self._said.get(name, 0) + 1
        self._said[name] = number
        said = NodeStatus(
            node=name,
            rack=self.fleet.racks[self.fleet.places[name].rack].spec.rack,
            session=node.session,
            boot=node.boot,
            n=number,
            hardware=node.hardware or Hardware(serial=name, gpus=self.gpus_per_node),
            workers=tuple(self.workers[name].values()),
        )
        now, cause = self.engine.now, MessageId(f"status.{next(self._numbers)}")
        if self.minds is not None:
            heard = StatusSeen(now=now, mono=now, id=cause, at=now, status=said)
            self.minds.hear_status(heard)

    def run_workers(self, at: Iterable[tuple[NodeId, WorkerId]], *, ready: bool) -> None:
        """These workers are up; `ready`: and can work."""
        for name, worker in at:
            made = WorkerStatus(worker=worker, state=WorkerState.RUNNING, ready=ready)
            self._drop_ended(name)
            self.workers[name][worker] = made
            self.say(name)

    def begin(self, at: Iterable[tuple[NodeId, WorkerId]]) -> None:
        """These workers run and wait for others, those that do not run yet."""
        self.run_workers([one for one in at if one[1] not in self.workers[one[0]]], ready=False)

    def end_workers(
        self, at: Iterable[tuple[NodeId, WorkerId]], state: WorkerState, code: int | None
    ) -> None:
        """These workers have ended."""
        for name, worker in at:
            here = self.workers[name]
            here[worker] = WorkerStatus(worker=worker, state=state, code=code)
            self.say(name)

    def forget(self, at: Iterable[tuple[NodeId, WorkerId]]) -> None:
        """Nobody asks for these workers any more."""
        for name, worker in at:
            self.workers[name].pop(worker, None)

    def saved(self, name: NodeId, worker: WorkerId, at: float) -> None:
        """A worker has saved a checkpoint at that time."""
        known = self.workers[name].get(worker)
        if known is None or known.checkpoint_at == at or known.state in ENDED:
            return
        self.workers[name][worker] = WorkerStatus(
            worker=worker, state=known.state, ready=known.ready, checkpoint_at=at
        )
        self.say(name)

    def _drop_ended(self, name: NodeId) -> None:
        here = self.workers[name]
        for worker in [worker for worker, one in here.items() if one.state in ENDED]:
            if worker not in self.fleet.leaving:
                del here[worker]

    def cleaned(self, gone: Iterable[tuple[NodeId, WorkerId]]) -> None:
        """Workers that left are gone, and their nodes are clean."""
        by_node: dict[NodeId, list[WorkerId]] = {}
        for name, worker in gone:
            if worker in self.fleet.leaving:
                by_node.setdefault(name, []).append(worker)
        self.observe(
            NodeCleaning(
                node=name,
                of=self.fleet.node(name).last,
                ended=tuple(workers),
                done=True,
            )
            for name, workers in by_node.items()
        )
