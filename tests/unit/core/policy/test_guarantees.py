"""What a queue is promised: others use it meanwhile, and give it back when it is owed."""

from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge, still_holds
from rackwright.core.policy.guarantees import below, borrowed, is_owed
from rackwright.core.policy.settings import beyond_the_cell
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.entries.slice import DefragPlanned, VictimMove
from rackwright.wire.ids import JobId, PlanId, QueueName
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, change, pass_time

RACK = 72  # GPUs
SAVED = Checkpoint(on_notice_s=60.0, restart_s=600.0)
OURS, THEIRS = QueueName("ours"), QueueName("theirs")


def lent(promises: dict[str, int], *, racks: int = 2, priority: int = 50, **spec: Any) -> Cell:
    """A cell all of whose racks are used by another queue, each by one job of it."""
    guarantee = {QueueName(queue): gpus for queue, gpus in promises.items()}
    made = cell(racks, policy=Policy(queue_guarantee=guarantee))
    for rack in range(racks):
        fields: dict[str, Any] = {"checkpoint": SAVED, "queue": THEIRS, "priority": priority} | spec
        made.sit(f"v{rack}", f"r{rack}", range(18), **fields)
    pass_time(made, HOUR)
    return made


def wants(made: Cell, since: float = 60.0, **spec: Any) -> None:
    """A job of ours waits, for the cause that it has, for a minute."""
    fields: dict[str, Any] = {"name": JobId("p"), "nodes": 16, "queue": OURS} | spec
    job = made.queue("p", JobSpec(**fields))
    reason = why_blocked(made.fleet, job, made.fleet.time)
    made.add(JobBlocked(job=JobId("p"), reason=reason))
    change(made, "p", blocked_since=made.fleet.time - since)


def look(made: Cell) -> Verdict:
    return judge(made.fleet, made.job("p"), {}, made.fleet.time)


def planned(made: Cell) -> DefragPlanned:
    verdict = look(made)
    assert verdict.outcome is Outcome.GO, verdict.outcome
    entry = entry_of(verdict, PlanId("plan"))
    assert entry is not None
    assert still_holds(made.fleet, entry, {}, made.fleet.time, made.fleet.time) is None
    return entry


@pytest.mark.parametrize("priority", [0, 50, 100])
def test_what_a_queue_is_promised_is_taken_back_from_any_priority(priority: int) -> None:
    made = lent({"ours": RACK}, priority=priority)
    wants(made)
    blocked = made.job("p").blocked
    assert blocked is not None
    assert blocked.code == Cause.CAPACITY
    entry = planned(made)
    (victim,) = entry.victims
    assert victim.move is VictimMove.QUEUE
    assert entry.notice_s == 120.0, "it may save first"
    made.add(entry)
    gone = made.job(victim.job)
    assert (gone.state, gone.retries, len(gone.preempted)) == (JobState.QUEUED, 0, 1)
    assert made.job("p").state is JobState.PLACED
    assert borrowed(made.fleet, THEIRS) == RACK


def test_without_a_promise_or_beyond_it_nothing_is_taken_back() -> None:
    for promise in ({}, {"ours": 63}):
        made = lent(promise)
        wants(made)
        assert not is_owed(made.fleet, made.job("p"))
        assert look(made).outcome is not Outcome.GO


def test_a_queue_that_has_no_more_than_it_is_promised_gives_nothing_back() -> None:
    made = lent({"ours": RACK, "theirs": 2 * RACK})
    wants(made)
    assert not is_owed(made.fleet, made.job("p"))
    assert look(made).outcome is not Outcome.GO


def test_it_gives_back_only_what_is_beyond_its_own_promise() -> None:
    made = lent({"ours": 2 * RACK, "theirs": 2 * RACK}, racks=3)
    wants(made, nodes=32)
    assert look(made).outcome is not Outcome.GO, "two racks would leave it with one"
    made = lent({"ours": 2 * RACK, "theirs": RACK}, racks=3)
    wants(made, nodes=32)
    assert len(planned(made).victims) == 2


def test_it_need_not_pay_but_the_cheapest_goes() -> None:
    made = lent({"ours": RACK}, priority=100, checkpoint=Checkpoint(interval_s=None))
    change(made, "v1", placed_at=made.fleet.time - 40 * HOUR)
    pass_time(made, 30 * HOUR)
    wants(made, since=31.0, priority=0)
    entry = planned(made)
    assert [victim.job for victim in entry.victims] == ["v0"]
    assert entry.cost_gpu_h > entry.benefit_gpu_h


@pytest.mark.parametrize(
    "spec",
    [{"restartable": False}, {"preemptible": False}, {"job_class": JobClass.INTERACTIVE}],
    ids=["not-restartable", "not-preemptible", "interactive"],
)
def test_pinned_work_gives_nothing_back(spec: dict[str, Any]) -> None:
    made = lent({"ours": RACK}, **spec)
    wants(made)
    assert look(made).outcome is not Outcome.GO


def test_young_work_stays_for_a_quarter_of_an_hour() -> None:
    made = lent({"ours": RACK})
    for job in ("v0", "v1"):
        change(made, job, started_at=made.fleet.time - 890.0)
    wants(made)
    assert look(made).outcome is not Outcome.GO
    pass_time(made, 20.0)
    planned(made)


def test_work_of_the_same_queue_gives_way_by_priority_only() -> None:
    made = lent({"ours": 3 * RACK}, queue=OURS)
    wants(made)
    assert look(made).outcome is not Outcome.GO
    made = lent({"ours": 3 * RACK}, queue=OURS, priority=0)
    wants(made)
    planned(made)


def test_higher_priority_of_another_queue_does_not_take_what_is_promised() -> None:
    made = lent({"theirs": 2 * RACK}, priority=0)
    wants(made, priority=100)
    assert look(made).outcome is not Outcome.GO
    made = lent({"theirs": RACK}, priority=0)
    wants(made, priority=100)
    assert len(planned(made).victims) == 1, "but what is beyond it"


def test_fragments_are_moved_for_it_whatever_their_priority() -> None:
    """Enough is free, in the wrong racks, and work of a higher priority is in the way."""
    made = cell(2, policy=Policy(queue_guarantee={OURS: RACK}, defrag_max_share=1.0))
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(8), priority=100, queue=THEIRS, checkpoint=SAVED)
    pass_time(made, HOUR)
    wants(made)
    blocked = made.job("p").blocked
    assert blocked is not None
    assert blocked.code == Cause.TOPOLOGY_MOVABLE
    (victim,) = planned(made).victims
    assert victim.move is VictimMove.RESTART
    free = cell(2, policy=Policy(defrag_max_share=1.0))
    for rack in ("r0", "r1"):
        free.sit(f"v-{rack}", rack, range(8), priority=100, queue=THEIRS, checkpoint=SAVED)
    pass_time(free, HOUR)
    wants(free)
    blocked = free.job("p").blocked
    assert blocked is not None
    assert blocked.code == Cause.TOPOLOGY_PINNED


def test_who_has_less_than_promised() -> None:
    made = lent({"ours": RACK, "theirs": RACK})
    assert list(below(made.fleet)) == [OURS]
    assert (borrowed(made.fleet, OURS), borrowed(made.fleet, THEIRS)) == (0, RACK)


@pytest.mark.parametrize(
    ("policy", "field", "ask"),
    [
        ({"queue_guarantee": {OURS: 100, THEIRS: 45}}, "queue_guarantee", "144 or fewer in all"),
        ({"queue_guarantee": {OURS: 72}, "queue_gpus": {OURS: 71}}, "queue_guarantee.ours", "71"),
    ],
)
def test_queues_that_are_promised_more_than_there_is_or_than_they_may_have(
    policy: dict[str, Any], field: str, ask: str
) -> None:
    fleet = cell(2).fleet
    found = beyond_the_cell(fleet, Policy(**policy))
    assert found is not None
    assert found.numbers["field"] == field
    assert str(found.numbers["ask"]).startswith(ask)


def test_promises_that_can_be_kept_stand() -> None:
    policy = Policy(queue_guarantee={OURS: 100, THEIRS: 44}, queue_gpus={OURS: 100})
    assert beyond_the_cell(cell(2).fleet, policy) is None
