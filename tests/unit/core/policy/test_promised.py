"""Whole racks are left to a job that waits for what its queue is promised."""

from typing import Any

import pytest

from rackwright.core.policy.promised import kept_for_promised, owed_and_waiting
from rackwright.core.policy.starvation import Kept, kept_from
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell

OURS, THEIRS = QueueName("ours"), QueueName("theirs")
RACK = 72  # GPUs


def waiting(promise: int = 3 * RACK, code: str = "capacity", **spec: Any) -> Cell:
    """Of four racks, r0 is theirs, r1 has a small job of theirs, r2 and r3 are empty; a job of ours
    asks for three."""
    guarantee = {OURS: promise, THEIRS: RACK}
    made = cell(4, policy=Policy(queue_guarantee=guarantee))
    made.sit("v", "r0", range(18), queue=THEIRS)
    made.sit("w", "r1", [0], queue=THEIRS)
    fields: dict[str, Any] = {"nodes": 54, "slice_nodes": 18, "queue": OURS} | spec
    made.queue("p", JobSpec(name=JobId("p"), **fields))
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code=code)))
    return made


def kept_all(made: Cell) -> list[Kept]:
    return kept_for_promised(made.fleet, owed_and_waiting(made.fleet))


def kept(made: Cell) -> int:
    """The racks that are kept."""
    return sum(1 << number for one in kept_all(made) for number in one.racks)


@pytest.mark.parametrize("code", ["capacity", "topology.movable", "topology.pinned"])
def test_empty_racks_are_kept_for_it(code: str) -> None:
    (one,) = kept_all(waiting(code=code))
    assert (one.job, one.queue, sorted(one.racks)) == ("p", OURS, [2, 3])


@pytest.mark.parametrize("code", ["quota", "health", "held"])
def test_not_while_it_waits_for_something_else(code: str) -> None:
    assert kept(waiting(code=code)) == 0


def test_no_more_than_it_has_slices() -> None:
    assert kept(waiting(nodes=18)) == 0b0100
    assert kept(waiting(nodes=1)) == 0, "any node would do"
    assert owed_and_waiting(waiting(nodes=1).fleet) == ()


def test_not_for_what_is_not_promised() -> None:
    assert kept(waiting(promise=3 * RACK - 1)) == 0
    assert kept(waiting(queue=QueueName("else"))) == 0


def test_jobs_of_a_queue_are_kept_as_much_as_it_is_promised() -> None:
    made = waiting(promise=2 * RACK, nodes=18)
    for name, priority in (("q", 40), ("r", 60)):
        spec = JobSpec(name=JobId(name), nodes=18, slice_nodes=18, queue=OURS, priority=priority)
        made.queue(name, spec)
        made.add(JobBlocked(job=JobId(name), reason=Reason(code="capacity")))
    found = {one.job: sorted(one.racks) for one in kept_all(made)}
    assert found == {"r": [2], "p": [3]}, "by priority, and the third is beyond the promise"


def test_spare_racks_of_the_cell_are_not_kept_as_well() -> None:
    made = waiting()
    guarantee = made.fleet.policy.queue_guarantee
    spare = cell(4, policy=Policy(queue_guarantee=guarantee, spare_racks=1))
    spare.queue("p", JobSpec(name=JobId("p"), nodes=54, slice_nodes=18, queue=OURS))
    spare.add(JobBlocked(job=JobId("p"), reason=Reason(code="capacity")))
    assert kept(spare) == 0b0111


@pytest.mark.parametrize(
    ("spec", "off"),
    [
        ({"queue": THEIRS}, 0b1100),
        ({"queue": THEIRS, "priority": 100}, 0b1100),
        ({"queue": THEIRS, "job_class": JobClass.INTERACTIVE}, 0b1100),
        ({"queue": QueueName("owed")}, 0),
        ({"queue": QueueName("owed"), "nodes": 3}, 0b1100),
        ({"queue": OURS}, 0),
    ],
    ids=["theirs", "higher priority", "pinned", "owed too", "beyond its promise", "same queue"],
)
def test_who_leaves_them_alone(spec: dict[str, Any], off: int) -> None:
    made = waiting()
    policy = Policy(queue_guarantee={OURS: 3 * RACK, THEIRS: RACK, QueueName("owed"): 8})
    other = cell(4, policy=policy)
    other.sit("v", "r0", range(18), queue=THEIRS)
    found = kept_all(made)
    fields: dict[str, Any] = {"name": JobId("o"), "nodes": 1} | spec
    job = other.queue("o", JobSpec(**fields))
    assert kept_from(other.fleet, found, job, other.fleet.time) == off
