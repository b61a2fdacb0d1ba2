"""Nodes that are kept for the owner of a failed job: from whom, for how long, and who ends it."""

from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.occupancy import NodeUse, node_use
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.placement import place
from rackwright.core.snapshot import dump, load
from rackwright.wire.entries.job import JobFailed, JobPlaced, JobReleased, SlicePlacement
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell

WHY = Reason(code="exit.1")


def failed(keep_s: float = 600.0, **spec: Any) -> Cell:
    """Job a on two of four nodes of the only rack has failed."""
    made = cell(1, nodes=4)
    made.sit("a", "r0", [0, 1], keep_on_failure=True, **spec)
    made.add(JobFailed(job=JobId("a"), reason=WHY, keep_s=keep_s))
    return made


def waiting(made: Cell, nodes: int = 4) -> JobSpec:
    return made.queue("b", JobSpec(name=JobId("b"), nodes=nodes)).spec


def use(made: Cell) -> list[NodeUse]:
    return [node_use(made.rack("r0"), place, made.fleet.time) for place in range(4)]


def clean(made: Cell) -> None:
    """Its workers have ended."""
    for number in (0, 1):
        made.join(f"r0-n{number:02d}")


def test_other_work_does_not_get_them() -> None:
    made = failed()
    clean(made)
    assert use(made) == [NodeUse.KEPT, NodeUse.KEPT, NodeUse.FREE, NodeUse.FREE]
    assert made.fleet.tombstones[JobId("a")].state is JobState.FAILED
    waiting(made)
    job = made.job("b")
    assert place(made.fleet, job) is None
    reason = why_blocked(made.fleet, job, made.fleet.time)
    assert (reason.code, reason.numbers["kept_for_failed"]) == ("held", "a")
    part = SlicePlacement(index=0, first_rank=0, rack=RackId("r0"), nodes=0b1111)
    entry = JobPlaced(job=JobId("b"), membership=1, slices=(part,), reason=WHY)
    assert illegal(made.fleet, entry) == "node r0-n00 is kept for a"


def test_the_others_of_its_rack_are_free() -> None:
    made = failed()
    waiting(made, nodes=2)
    found = place(made.fleet, made.job("b"))
    assert found is not None
    assert found[0].nodes == 0b1100


def test_they_are_free_when_the_time_is_over() -> None:
    made = failed(keep_s=120.0)
    clean(made)
    waiting(made)
    made.wait(110.0)
    assert place(made.fleet, made.job("b")) is None
    made.wait(20.0)
    assert use(made) == [NodeUse.FREE] * 4
    assert dict(made.fleet.kept) == {}
    assert place(made.fleet, made.job("b")) is not None


def test_released_by_hand() -> None:
    made = failed()
    clean(made)
    made.add(JobReleased(job=JobId("a"), by=Owner("ann")))
    assert use(made) == [NodeUse.FREE] * 4
    again = JobReleased(job=JobId("a"), by=Owner("ann"))
    assert illegal(made.fleet, again) == "no nodes are kept for a"


def test_without_it_nothing_is_kept() -> None:
    made = cell(1, nodes=4)
    made.sit("a", "r0", [0, 1])
    entry = JobFailed(job=JobId("a"), reason=WHY, keep_s=600.0)
    assert illegal(made.fleet, entry) == "job a does not ask to keep its nodes"
    made.add(JobFailed(job=JobId("a"), reason=WHY))
    assert dict(made.fleet.kept) == {}


def test_two_failures_on_one_node_keep_it_for_the_later() -> None:
    made = cell(1, nodes=2)
    for name, gpus in (("a", 0b0011), ("b", 0b1100)):
        made.sit(name, "r0", [0], gpus=gpus, keep_on_failure=True)
    for name in ("a", "b"):
        made.add(JobFailed(job=JobId(name), reason=WHY, keep_s=600.0))
    assert set(made.fleet.kept) == {"b"}


def test_a_snapshot_knows_them() -> None:
    made = failed()
    loaded = load(dump(made.fleet))
    assert dump(loaded) == dump(made.fleet)
    assert loaded.kept == made.fleet.kept


@pytest.mark.parametrize("keep", [0.0])
def test_a_failure_of_old_ledgers_keeps_nothing(keep: float) -> None:
    assert dict(failed(keep_s=keep).fleet.kept) == {}
