"""Small cells for tests: a ledger folded in memory, with racks joined and jobs on nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding, fold
from rackwright.core.index import bits
from rackwright.core.invariants import check
from rackwright.core.jobs import Job
from rackwright.core.racks import Rack
from rackwright.wire.entries.cell import LedgerCreated, LedgerTicked
from rackwright.wire.entries.job import (
    JobFinished,
    JobPlaced,
    JobQueued,
    JobStarted,
    SlicePlacement,
)
from rackwright.wire.entries.node import (
    NodeCleared,
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeSuspected,
    NodeUnfit,
    RackDefined,
)
from rackwright.wire.ids import (
    CellName,
    JobId,
    LedgerId,
    MessageId,
    NodeId,
    Owner,
    RackId,
    SessionId,
)
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Commit, Entry
from rackwright.wire.nodes import Fitness, Hardware, RackSpec, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION

EPOCH = 1_000_000.0
LEDGER = LedgerId("ledger")


def node_name(rack: str, place: int) -> NodeId:
    """`r1-n03` is the node at place 3 of rack r1."""
    return NodeId(f"{rack}-n{place:02d}")


def rack_spec(rack: str, nodes: int = 18, *, gpus: int = 4, path: tuple[str, ...] = ()) -> RackSpec:
    """A rack with named nodes."""
    names = tuple(node_name(rack, place) for place in range(nodes))
    return RackSpec(rack=RackId(rack), path=path, nodes=names, gpus_per_node=gpus)


def hardware(node: str, *, gpus: int = 4, model: str = "gb200", **more: Any) -> Hardware:
    """What an agent would find on a node."""
    return Hardware(serial=f"sn-{node}", gpus=gpus, gpu_model=model, **more)


@dataclass(slots=True, kw_only=True)
class Cell:
    """One ledger. Every entry added is folded, must be legal, and leaves a sound fleet."""

    fleet: Fleet = field(default_factory=Fleet)
    sound: bool = True
    placed: int = 0
    last: tuple[Entry, ...] = ()

    def add(self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None) -> Folding:
        """Commit these entries; they must be legal."""
        commit = self.commit(*entries, source=source, wishes_to=wishes_to)
        folding = fold(self.fleet, self.fleet.seq + 1, max(self.fleet.time, EPOCH), commit)
        assert not folding.void, folding.why
        self.fleet = folding.fleet
        self.last = entries
        if self.sound:
            check(self.fleet)
        return folding

    def commit(
        self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None
    ) -> Commit[Any]:
        """A commit of these entries that follows this fleet, if they are legal."""
        return Commit(
            id=MessageId(f"c{self.fleet.seq + 1}"),
            type=entries[0].TYPE,
            v=1,
            at=self.fleet.time,
            source=source,
            cell=CellName("cell"),
            ledger=LEDGER,
            prev=self.fleet.last_id,
            wishes_to=wishes_to,
            entries=entries,
        )

    def copy(self) -> "Cell":
        """Another future of the same cell."""
        return replace(self)

    def wait(self, seconds: float) -> None:
        """Let ledger time pass."""
        end = self.fleet.time + seconds
        while self.fleet.time < end:
            tick: Commit[Any] = Commit(
                id=MessageId(f"c{self.fleet.seq + 1}"),
                type="ledger.ticked",
                v=1,
                at=end,
                source="test/0",
                cell=CellName("cell"),
                ledger=LEDGER,
                entries=(LedgerTicked(),),
            )
            at = min(end, self.fleet.time + 60.0)
            self.fleet = fold(self.fleet, self.fleet.seq + 1, at, tick).fleet

    def rack(self, name: str) -> Rack:
        """A rack by name."""
        return self.fleet.rack(RackId(name))

    def job(self, name: str) -> Job:
        """A living job by name."""
        return self.fleet.jobs[JobId(name)]

    def define(self, *racks: RackSpec, join: bool = True) -> None:
        """Racks of the cell, their nodes joined and fit."""
        for spec in racks:
            self.add(RackDefined(rack=spec))
            for name in spec.nodes if join else ():
                self.join(name, hardware(name, gpus=spec.gpus_per_node))

    def join(self, node: str, found: Hardware | None = None, **more: Any) -> None:
        """A new session of a node."""
        known = self.fleet.node(NodeId(node))
        self.add(
            NodeJoined(
                node=NodeId(node),
                of=known.last,
                session=SessionId(f"s{self.fleet.seq + 1}"),
                boot=f"b{self.fleet.seq + 1}",
                hardware=found or hardware(node, gpus=known.gpus),
                **more,
            )
        )

    def fail(self, node: str, code: str = "xid.79") -> None:
        """The node is dead, and its workers with it."""
        known = self.fleet.node(NodeId(node))
        session = known.session or SessionId("none")
        why = Reason(code=code)
        if not known.suspected:
            self.add(NodeSuspected(node=known.name, of=known.last, session=session, reason=why))
        last = self.fleet.node(NodeId(node)).last
        failed = NodeFailed(node=NodeId(node), of=last, session=session, fenced=True, reason=why)
        self.add(failed)

    def suspect(self, node: str, code: str = "silence") -> None:
        """The lease of the node is recalled."""
        known = self.fleet.node(NodeId(node))
        session = known.session or SessionId("none")
        why = Reason(code=code)
        self.add(NodeSuspected(node=known.name, of=known.last, session=session, reason=why))

    def clear(self, node: str) -> None:
        """The node was heard again in time."""
        known = self.fleet.node(NodeId(node))
        session = known.session or SessionId("none")
        self.add(NodeCleared(node=known.name, of=known.last, session=session))

    def unfit(self, node: str, fitness: Fitness = Fitness.NONE, code: str = "xid.79") -> None:
        """The node is good for less."""
        last = self.fleet.node(NodeId(node)).last
        self.add(
            NodeUnfit(
                node=NodeId(node),
                of=last,
                fitness=fitness,
                action=RepairAction.REBOOT,
                reason=Reason(code=code),
            )
        )

    def recover(self, node: str, probation_s: float = 0.0, fitness: Fitness = Fitness.FULL) -> None:
        """The node is back."""
        last = self.fleet.node(NodeId(node)).last
        until = self.fleet.time + probation_s if probation_s else 0.0
        reason = Reason(code="repaired")
        self.add(
            NodeRecovered(
                node=NodeId(node), of=last, fitness=fitness, probation_until=until, reason=reason
            )
        )

    def queue(self, job: str, spec: JobSpec, owner: str = "ann") -> Job:
        """A job in the queue."""
        self.add(
            JobQueued(
                job=JobId(job),
                owner=Owner(owner),
                spec=spec,
                spec_hash="h",
                submitted_at=self.fleet.time,
            )
        )
        return self.job(job)

    def place(self, job: str, slices: tuple[SlicePlacement, ...]) -> Job:
        """Give a queued job these nodes."""
        membership = self.job(job).membership + 1
        reason = Reason(code="test")
        self.add(JobPlaced(job=JobId(job), membership=membership, slices=slices, reason=reason))
        return self.job(job)

    def sit(
        self,
        job: str,
        rack: str,
        places: Iterable[int],
        *,
        gpus: int = 0,
        start: bool = True,
        lent: bool = False,
        **spec: Any,
    ) -> Job:
        """A job of one slice on these places of a rack, running."""
        mask = sum(1 << place for place in places)
        size: dict[str, Any] = {"gpus": gpus.bit_count()} if gpus else {"nodes": mask.bit_count()}
        self.queue(job, JobSpec(**({"name": job} | size | spec)))
        one = SlicePlacement(
            index=0, first_rank=0, rack=RackId(rack), nodes=mask, gpus=gpus, lent=lent
        )
        self.place(job, (one,))
        if start:
            self.start(job)
        return self.job(job)

    def spread(
        self, job: str, parts: list[tuple[str, Iterable[int]]], *, start: bool = True, **spec: Any
    ) -> Job:
        """A job of several slices, each on these places of a rack, running."""
        slices: list[SlicePlacement] = []
        rank = 0
        for rack, places in parts:
            mask = sum(1 << place for place in places)
            slices.append(
                SlicePlacement(index=len(slices), first_rank=rank, rack=RackId(rack), nodes=mask)
            )
            rank += mask.bit_count()
        fields: dict[str, Any] = {"name": job, "nodes": rank, **spec}
        self.queue(job, JobSpec(**fields))
        self.place(job, tuple(slices))
        if start:
            self.start(job)
        return self.job(job)

    def finish(self, job: str) -> None:
        """All ranks have ended well."""
        self.add(JobFinished(job=JobId(job)))

    def start(self, job: str) -> None:
        """All ranks are up."""
        self.add(JobStarted(job=JobId(job), membership=self.job(job).membership))


def cell(
    racks: int = 2,
    nodes: int = 18,
    *,
    gpus: int = 4,
    policy: Policy | None = None,
    blocks: int = 0,
    sound: bool = True,
    fold_version: int = FOLD_VERSION,
) -> Cell:
    """Racks r0, r1, ... of so many nodes, all joined and fit, in blocks of `blocks` racks."""
    made = Cell(sound=False)
    made.add(LedgerCreated(ledger=LEDGER, fold_version=fold_version, policy=policy or Policy()))
    for number in range(racks):
        path = (f"b{number // blocks}",) if blocks else ()
        made.define(rack_spec(f"r{number}", nodes, gpus=gpus, path=path))
    made.sound = sound
    if sound:
        check(made.fleet)
    return made


def where(slices: Iterable[SlicePlacement] | None) -> list[tuple[str, int]]:
    """Rack and number of nodes of each slice."""
    return [(part.rack, part.nodes.bit_count()) for part in slices or ()]


def names(fleet: Fleet, part: SlicePlacement) -> list[str]:
    """Nodes of a slice in rank order."""
    rack = fleet.rack(part.rack)
    return [rack.nodes[place].name for place in bits(part.nodes)]
