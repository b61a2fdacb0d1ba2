"""Recovery as tests tell it: what wounds a job, what is decided, and that it is sound."""

from typing import Any

from rackwright.core.fold import apply
from rackwright.core.invariants import check
from rackwright.core.legality import illegal
from rackwright.core.policy.spares import recover
from rackwright.wire.entries.job import WorkerFailed
from rackwright.wire.entries.node import NodeCordoned, RackDegraded
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, Owner, RackId
from rackwright.wire.message import Entry
from rackwright.wire.nodes import RackFitness
from rackwright.wire.reasons import Reason, Rung
from tests.support.fleets import Cell, cell

YOUNG = 900.0  # seconds after which work may be evicted


def decided(made: Cell, job: str = "a") -> list[Any]:
    """What recovery decides; every entry must be legal and leave a sound fleet."""
    fleet = made.fleet
    entries = recover(fleet, made.job(job), fleet.time)
    for entry in entries:
        assert illegal(fleet, entry) is None
        fleet = apply(fleet, entry)
        check(fleet)
    return entries


def swap(entry: Entry) -> list[tuple[int, int, int]]:
    """Ranks with their old and new places."""
    assert isinstance(entry, SliceSwapped)
    return [(one.rank, one.old, one.new) for one in entry.swaps]


def rungs(entry: Any) -> list[tuple[Rung, bool, str]]:
    """What was judged, in order."""
    return [(one.rung, one.taken, one.reason.code) for one in entry.rungs]


def crash(made: Cell, job: str, *ranks: int, code: int | None = 1, why: str = "exit.1") -> None:
    """These ranks lose their process."""
    for rank in ranks:
        made.add(
            WorkerFailed(
                job=JobId(job),
                rank=rank,
                worker=made.job(job).worker(rank),
                code=code,
                reason=Reason(code=why),
            )
        )


def drain(made: Cell, node: str) -> None:
    """An operator wants it empty."""
    made.add(NodeCordoned(node=NodeId(node), drain=True, by=Owner("op")))


def cordon(made: Cell, node: str) -> None:
    """An operator wants no new work on it."""
    made.add(NodeCordoned(node=NodeId(node), by=Owner("op")))


def degrade(made: Cell, rack: str = "r0", fitness: RackFitness = RackFitness.DEGRADED) -> None:
    """The rack as a whole is good for less."""
    made.add(RackDegraded(rack=RackId(rack), fitness=fitness, reason=Reason(code="culprits")))


def moved(entry: Any) -> tuple[str, int]:
    """Rack and number of nodes it went to."""
    assert isinstance(entry, SliceMoved)
    return entry.rack, entry.nodes.bit_count()


def without_spares(racks: int = 2, **spec: Any) -> Cell:
    """Rack r0 is full of job a, one of whose nodes is bad."""
    made = cell(racks)
    made.sit("a", "r0", range(18), **spec)
    return made
