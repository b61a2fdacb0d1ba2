"""A whole cell on virtual time: a bus in memory, copies of every service, nodes, and its checks.

After every commit the safety properties of `core.audit`, `core.invariants` and `core.living` are
checked; the first broken one ends the story.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from rackwright.agent.pretend import Checkpoints
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.messages import OPERATION
from rackwright.bus.streams import Kind, declare
from rackwright.core.audit import Audit
from rackwright.core.fleet import Fleet
from rackwright.core.living import Living
from rackwright.core.snapshot import dump
from rackwright.host.commits import Sealed
from rackwright.host.flight import Lost, Settled
from rackwright.host.heartbeats import share
from rackwright.host.keybook import KINDS
from rackwright.host.reading import heard
from rackwright.host.steps import Step
from rackwright.sim.engine import Engine
from rackwright.sim.ledger import SimLedger
from rackwright.sim.paths import WindyPath
from rackwright.sim.process import Clocks, Crashed
from rackwright.wire.codec import decode, encode
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.ids import MessageId, NodeId, RackId
from rackwright.wire.message import Body, Entry, Envelope
from rackwright.wire.nodes import Hardware, RackSpec
from rackwright.wire.signals import Echo, Fault, Heartbeat
from rackwright.wire.subjects import Subjects, shard_of
from rackwright.wire.values import JobValue, RackAssignments
from tests.simulation.agents import Habits, Outside, SimNode
from tests.simulation.knobs import Knobs
from tests.simulation.members import CELL, Member, Violated
from tests.simulation.streams import Decoded


class World:
    """Everything; see the module."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self.engine = Engine(knobs.seed)
        self.random = Random(f"world {knobs.seed}")
        self.bus_ahead = 0.0  # how far the bus's clock, with which it stamps messages, is ahead
        self.store = MemoryStore(declare(CELL), clock=lambda: self.engine.now + self.bus_ahead)
        self.ledger = SimLedger(engine=self.engine, cell=CELL, store=self.store)
        self.subjects = Subjects(CELL)
        self.decoded = Decoded(CELL)
        self.audit = Audit(every=1 << 60)
        self.living = Living()
        self.checkpoints = Checkpoints()
        self.faults: Counter[str] = Counter()
        self.story: list[str] = []
        self.hash = hashlib.sha256()
        self.calm = False
        self.refused = 0
        self.won = 0
        self.turned_away: set[str] = set()  # wished for while the cell was read only
        self._in: set[MessageId] = set()
        self._lost: set[MessageId] = set()
        self._number = 0
        self._exits = Random(f"exits {knobs.seed}")
        self._told: dict[Kind, int] = {Kind.ASSIGN: 0, Kind.JOBS: 0}
        self._jobs: dict[NodeId, dict[str, JobValue]] = {}
        self.ledger.observers.append(self._commit)
        self.ledger.create(knobs.policy)
        self.nodes: dict[NodeId, SimNode] = {}
        self.racks: list[RackSpec] = []
        for kind in (Kind.ASSIGN, Kind.JOBS):
            self.store.listen(kind, self, partial(self._changed, kind))
        self.members = [
            Member(self, service, ordinal, self._clocks())
            for service, count in knobs.copies.items()
            for ordinal in range(count)
        ]
        if knobs.old_version:
            self.random.choice(self.members).old = True
        for member in self.members:
            member.start()

    # Making

    def _clocks(self) -> Clocks:
        skew, random = self.knobs.skew, self.random
        return Clocks(
            rate=1.0 + random.uniform(-skew, skew),
            booted=self.engine.now - random.uniform(10.0, 1e5),
            wall_s=random.uniform(-100.0, 100.0) if skew else 0.0,
        )

    def add_rack(self) -> RackSpec:
        """One more rack with its nodes, whose agents start; somebody must still define it."""
        name = RackId(f"r{len(self.racks)}")
        names = tuple(NodeId(f"{name}-n{place}") for place in range(self.knobs.nodes))
        spec = RackSpec(rack=name, nodes=names, gpus_per_node=self.knobs.gpus)
        self.racks.append(spec)
        for node in names:
            self._add_node(name, node)
        return spec

    def _add_node(self, rack: RackId, name: NodeId) -> None:
        random = Random(f"{name} {self.knobs.seed}")
        skew = self.knobs.skew
        path = WindyPath(self.engine, self.knobs.weather, self.happened)
        pipe = path.pipe()
        self._jobs[name] = {}
        outside = Outside(
            cell=CELL,
            job_of=partial(self._job_of, name),
            assigned=self._assigned,
            put_status=partial(self._put_status, pipe),
            put_signal=partial(self._put_signal, pipe),
            beat=lambda node, beat: node.path.toss(self._beat_at_bus, beat),
            ask=self._ask,
            told=self.happened,
        )
        node = SimNode(
            self.engine,
            rack,
            Hardware(serial=f"sn-{name}", gpus=self.knobs.gpus, gpu_model="gb200", port=7),
            name=name,
            path=path,
            habits=Habits(
                random=random, kill_s=self.knobs.policy.kill_s, exit_code=self._exit_code
            ),
            outside=outside,
            living=self.living,
            checkpoints=self.checkpoints,
            rate=1.0 + random.uniform(-skew, skew),
        )
        self.nodes[name] = node

    def _exit_code(self, _worker: str) -> int:
        bad = not self.calm and self._exits.random() < self.knobs.bad_exits
        return self._exits.choice((1, 2, 139)) if bad else 0

    # The bus, as nodes find it

    def envelope(self, source: str, body: Body) -> bytes:
        """A message of this world."""
        self._number += 1
        return encode(
            Envelope(
                id=MessageId(f"m{self._number}"),
                type=body.TYPE,
                v=body.VERSION,
                at=self.engine.now,
                source=source,
                cell=CELL,
                body=body,
            )
        )

    def _put_status(self, pipe: Any, node: SimNode) -> None:
        if node.agent is None:
            return
        data = self.envelope(f"node-agent/{node.name}", node.agent.status())
        subject = self.subjects.status(node.rack, node.name)
        pipe.push(self.store.append, Kind.STATUS, subject, data)

    def _put_signal(self, pipe: Any, node: SimNode, fault: Fault) -> None:
        data = self.envelope(f"node-agent/{node.name}", fault)
        subject = self.subjects.signal(node.rack, node.name)
        pipe.push(self.store.append, Kind.SIGNAL, subject, data)
        if self.engine.chance(self.knobs.weather.doubled):
            pipe.push(self.store.append, Kind.SIGNAL, subject, data)

    def _beat_at_bus(self, beat: Heartbeat) -> None:
        shard = shard_of(beat.rack)
        arrival = heard(beat)
        for member in self.members:
            process = member.process
            if process is None or not process.hears.heartbeats:
                continue
            if self.nodes[beat.node].heard_by not in (None, member.name):
                continue
            shards = share(*(process.standing.copies or (1, 0)))
            if shards == ("*",) or shard in shards or beat.node in member.attended:
                member.core.toss(process.hear, process.beats, arrival)

    def _ask(self, node: SimNode, witness: NodeId, nonce: str) -> None:
        there = self.nodes[witness]
        if node.island == there.island:
            node.lan.toss(there.asked, node, nonce)

    def echo_at_bus(self, echo: Echo) -> None:
        """A monitor has sent an echo."""
        for node in self.nodes.values():
            if node.rack == echo.rack and not node.deaf:
                node.path.toss(node.echoed, echo)

    def _changed(self, kind: Kind) -> None:
        """A value was written: those who watch are told."""
        stream = self.store.stream(kind)
        last = stream.last
        stored = stream.messages.get(last)
        if stored is None or OPERATION in stored.headers or last <= self._told[kind]:
            self._told[kind] = last
            return
        self._told[kind] = last
        body: Any = decode(KINDS["assign" if kind is Kind.ASSIGN else "jobs"], stored.data).body
        for node in self.nodes.values():
            if kind is Kind.ASSIGN and node.rack == body.rack:
                node.watch.push(node.assigned, body)
            elif kind is Kind.JOBS:
                node.watch.push(self._job_reached, node, body)

    def _job_reached(self, node: SimNode, value: JobValue) -> None:
        self._jobs[node.name][value.job] = value
        node.job_changed(value)

    def _job_of(self, node: NodeId, job: str) -> JobValue | None:
        return self._jobs[node].get(job)

    def _assigned(self, rack: RackId) -> RackAssignments | None:
        stored = self.store.last_on(Kind.ASSIGN, self.store.specs[Kind.ASSIGN].root + rack)
        if stored is None or OPERATION in stored.headers:
            return None
        return decode(RackAssignments, stored.data).body

    def load_jobs(self, node: SimNode) -> None:
        """A new agent reads what jobs there are."""
        for stored in self.store.after(Kind.JOBS, 0):
            if OPERATION not in stored.headers:
                value = decode(JobValue, stored.data).body
                self._jobs[node.name][value.job] = value

    def forget(self, kind: Kind) -> None:
        """The server has lost a stream that it kept in memory."""
        self.store.make(kind)
        self._told[kind] = 0

    def count_copies(self) -> None:
        """Who is present is known to everybody, a moment after it changed."""
        for service in self.knobs.copies:
            there = [
                m
                for m in self.members
                if m.service == service and m.process is not None and not m.behind
            ]
            for index, member in enumerate(there):
                if member.process is not None:
                    member.process.set_copies(len(there), index)

    # Checking

    def happened(self, what: str) -> None:
        """A fault, for the statistics."""
        self.faults[what] += 1

    def tell(self, what: str) -> None:
        """A line of the story."""
        self.story.append(f"{self.engine.now - 1e6:8.3f} {what}")

    def point(self, name: str) -> None:
        """A moment at which a process may die. Raises Crashed."""
        if not self.calm and self.engine.chance(self.knobs.crash_odds):
            raise Crashed(name)

    def settled(self, sealed: Sealed, settled: Settled) -> None:
        """A process knows what became of its commit: is it true, for ever?"""
        name = sealed.commit.id
        if not isinstance(settled, Lost):
            self.won += 1
            return
        self.refused += 1
        self._lost.add(name)
        if name in self._in:
            raise Violated(f"{sealed.commit.source} takes {name} for lost, and it is in")

    def compare_folds(self, name: str, fleet: Fleet) -> None:
        """A fold from a snapshot or from the beginning is the fold that everybody shares."""
        head = self.ledger.fleet
        if fleet.seq == head.seq and dump(fleet) != dump(head):
            raise Violated(f"{name} folds to another fleet at {fleet.seq}")

    def check_folds(self) -> None:
        """Every process that has a fold of its own agrees with the shared one."""
        for member in self.members:
            if member.process is not None and member.process.stopped is None:
                self.compare_folds(member.name, member.process.standing.fleet)

    def _commit(self, before: Fleet, step: Step) -> None:
        commit, folding = step.commit, step.folding
        self.hash.update(step.stored.data)
        self.hash.update(repr((step.stored.seq, step.stored.at, folding.void)).encode())
        self._in.add(commit.id)
        if commit.id in self._lost:
            raise Violated(f"{commit.source} took {commit.id} for lost, and it came in")
        if commit.type != "ledger.ticked":
            shown = " ".join(_short(entry) for entry in commit.entries)
            void = f" void: {folding.why}" if folding.void else ""
            self.tell(f"{step.stored.seq} {commit.source} {shown}{void}")
        foreign = commit.ledger != before.ledger
        if not (foreign and folding.void and before.last_id is not None):
            self.audit.take(before, commit, folding)
        self.living.take(before, commit, folding)
        for entry in commit.entries:
            if isinstance(entry, WishRefused) and entry.reason.code == "read-only":
                self.turned_away.add(entry.subject)
        if commit.type != "ledger.ticked":
            self.audit.scan(folding.fleet)
        self.check()

    def check(self) -> None:
        """Raises Violated for the first broken property."""
        if self.audit.violations:
            first = self.audit.violations[0]
            raise Violated(f"at {first.seq}: {first.what}")
        if self.living.violations:
            raise Violated(self.living.violations[0])

    def run(self, until: float) -> None:
        """Let time pass, checked after every step."""
        engine, violations = self.engine, self.living.violations
        while (at := engine.next_at()) is not None and at <= until:
            engine.one()
            if violations:
                self.check()
        engine.now = max(engine.now, until)


SHOWN: dict[str, Callable[[Any], object]] = {
    "swaps": lambda e: [(s.rank, s.old, s.new) for s in e.swaps],
    "slices": lambda e: [(s.rack, bin(s.nodes)) for s in e.slices],
    "ended": lambda e: list(e.ended),
    "reason": lambda e: e.reason.code,
}


def _short(entry: Entry) -> str:
    names = ("job", "node", "rack", "worker", "plan", "membership", "fenced")
    found = [str(getattr(entry, name)) for name in names if hasattr(entry, name)]
    found += [str(show(entry)) for name, show in SHOWN.items() if hasattr(entry, name)]
    return f"{entry.TYPE}({' '.join(found)})"
