"""Work of lower priority makes room for what lacks capacity, or has waited too long: by the same
planner and formula as defragmentation."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge, still_holds
from rackwright.core.policy.starvation import kept_for_starved, kept_from, starved
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.entries.slice import DefragPlanned, DefragWithdrawn, VictimMove
from rackwright.wire.ids import JobId, PlanId
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause, Reason
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, block, change, pass_time

PLAN = PlanId("plan")
DAY = 24 * HOUR
SAVED = Checkpoint(on_notice_s=60.0, restart_s=600.0)


def short_of(made: Cell, job: str = "p", since: float = 60.0, **spec: Any) -> None:
    """A job in the queue, blocked by capacity for a minute."""
    fields: dict[str, Any] = {"name": JobId(job), "nodes": 16} | spec
    made.queue(job, JobSpec(**fields))
    made.add(JobBlocked(job=JobId(job), reason=Reason(code=Cause.CAPACITY)))
    change(made, job, blocked_since=made.fleet.time - since)


def full(priority: int = 0, **policy: Any) -> Cell:
    """Two racks, all of whose nodes are taken by work of this priority."""
    made = cell(2, policy=Policy(**policy))
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(18), priority=priority, checkpoint=SAVED)
    pass_time(made, HOUR)
    return made


def look(made: Cell, job: str = "p") -> Verdict:
    return judge(made.fleet, made.job(job), {}, made.fleet.time)


def planned(made: Cell) -> DefragPlanned:
    verdict = look(made)
    assert verdict.outcome is Outcome.GO, verdict.outcome
    entry = entry_of(verdict, PLAN)
    assert entry is not None
    return entry


def test_strictly_lower_priority_goes_into_the_queue() -> None:
    made = full(priority=0)
    short_of(made, priority=50)
    entry = planned(made)
    (victim,) = entry.victims
    assert (victim.job, victim.move, victim.homes) == ("v-r0", VictimMove.QUEUE, ())
    # 72 GPUs x 10 min x w(0) + 1 GPU-h for its owner
    assert victim.cost.total == pytest.approx(72 / 6 * 0.25 + 1.0)
    assert still_holds(made.fleet, entry, {}, made.fleet.time, made.fleet.time) is None
    made.add(entry)
    gone = made.job("v-r0")
    assert (gone.state, gone.requeues, gone.retries) == (JobState.QUEUED, 1, 0)
    assert len(gone.preempted) == 1
    told = {one.notice_s for one in made.rack("r0").leaving}
    assert told == {120.0}
    assert made.job("p").state is JobState.PLACED
    assert all(gates for _, gates in made.job("p").slices[0].gates)


@pytest.mark.parametrize("priority", [50, 51])
def test_equal_or_higher_priority_is_never_evicted(priority: int) -> None:
    made = full(priority=priority)
    short_of(made, nodes=8, priority=50)
    assert look(made).outcome is not Outcome.GO


def test_pinned_work_is_never_evicted() -> None:
    made = cell(1)
    made.sit("v", "r0", range(18), priority=0, restartable=False)
    pass_time(made, HOUR)
    short_of(made, priority=100)
    assert look(made).outcome is Outcome.NO_WAY


def test_a_home_is_used_where_there_is_one() -> None:
    made = cell(2)
    made.sit("v", "r0", range(4), priority=0, checkpoint=SAVED)
    made.sit("big", "r1", range(12), priority=100)
    pass_time(made, HOUR)
    short_of(made, priority=50)
    (victim,) = planned(made).victims
    assert (victim.move, victim.homes[0].rack) == (VictimMove.RESTART, "r1")


def test_without_a_home_topology_alone_evicts_nobody() -> None:
    made = full(priority=0, defrag_max_share=1.0)
    block(made, "p", since=60.0, nodes=16, priority=50)
    assert look(made).outcome is Outcome.NO_HOMES


def test_a_job_of_several_slices_goes_as_a_whole() -> None:
    made = cell(2)
    made.spread("v", [("r0", range(16)), ("r1", range(16))], priority=0, checkpoint=SAVED)
    pass_time(made, HOUR)
    short_of(made, priority=100)
    entry = planned(made)
    (victim,) = entry.victims
    assert victim.move is VictimMove.QUEUE
    # It starts anew, as all of it stops: 128 GPUs x 10 min x w(0) + 1
    assert victim.cost.total == pytest.approx(128 / 6 * 0.25 + 1.0)
    made.add(entry)
    assert made.job("v").slices == ()


def test_it_must_pay() -> None:
    made = full(priority=0)
    for name in ("v-r0", "v-r1"):
        change(made, name, placed_at=made.fleet.time - 90 * HOUR)
    for name in list(made.fleet.jobs):
        spec = JobSpec(name=JobId(name), nodes=18, priority=0)
        change(made, name, spec=spec)
    short_of(made, priority=1)
    assert look(made).outcome is Outcome.DEAR


def test_more_than_a_share_of_the_cell_may_go_but_not_more_than_twice_what_it_asks_for() -> None:
    made = full(priority=0, defrag_max_share=0.01)
    short_of(made, nodes=8, priority=100)
    verdict = look(made)
    assert (verdict.outcome, verdict.reason and verdict.reason.code) == (Outcome.NO_WAY, "limits")
    made = full(priority=0, defrag_max_share=0.01)
    short_of(made, nodes=36, slice_nodes=18, priority=100)
    assert len(planned(made).victims) == 2


def test_a_plan_that_evicts_can_be_withdrawn_and_leaves_the_evicted_in_the_queue() -> None:
    made = full()
    short_of(made, priority=50)
    made.add(planned(made))
    entry = DefragWithdrawn(plan=PLAN, reason=Reason(code="defrag.expired"))
    made.add(entry)
    assert (made.job("v-r0").state, made.job("p").state) == (JobState.QUEUED, JobState.QUEUED)


@pytest.mark.parametrize(
    ("change_of", "problem"),
    [
        ({"membership": 2}, "goes into the queue at membership 1, without a home"),
        ({"move": VictimMove.RESTART}, "membership 1 of v-r0 must be 2"),
        ({"move": VictimMove.RESTART, "membership": 2}, "has no home"),
    ],
)
def test_what_is_no_eviction(change_of: dict[str, Any], problem: str) -> None:
    made = full()
    short_of(made, priority=50)
    entry = planned(made)
    wrong = replace(entry, victims=(replace(entry.victims[0], **change_of),))
    assert problem in str(illegal(made.fleet, wrong))


# Starvation


def test_the_starved_of_each_priority_is_the_one_that_waits_longest() -> None:
    made = cell(1)
    made.queue("a", JobSpec(name=JobId("a"), nodes=1))
    pass_time(made, 60.0)
    made.queue("b", JobSpec(name=JobId("b"), nodes=1))
    made.queue("c", JobSpec(name=JobId("c"), nodes=1, priority=10))
    assert starved(made.fleet, made.fleet.time + 6 * HOUR - 61.0) == {}
    found = starved(made.fleet, made.fleet.time + 6 * HOUR)
    assert {priority: job.id for priority, job in found.items()} == {50: "a", 10: "c"}


def test_a_starved_job_may_evict_lower_priority_whatever_it_costs() -> None:
    made = full(priority=0, defrag_max_share=1.0)
    for name in ("v-r0", "v-r1"):
        change(made, name, spec=JobSpec(name=JobId(name), nodes=18, priority=0))
    block(made, "p", since=60.0, nodes=16, priority=1)
    change(made, "v-r0", placed_at=made.fleet.time - 90 * HOUR)
    change(made, "v-r1", placed_at=made.fleet.time - 90 * HOUR)
    assert look(made).outcome is Outcome.NO_HOMES
    change(made, "p", submitted_at=made.fleet.time - 7 * HOUR)
    assert look(made).outcome is Outcome.GO


def waiting() -> Cell:
    """Of forty racks r0 ends in an hour, r1 in two, all others are pinned; p has waited long."""
    made = cell(40, nodes=4, policy=Policy(slice_nodes=4, pinned_share=1.0))
    for number in range(40):
        hours = {0: 1.0, 1: 2.0}.get(number, 3.0)
        made.sit(
            f"t{number}",
            f"r{number}",
            range(4),
            time_limit_s=hours * HOUR,
            restartable=number < 3,
            priority=50,
        )
    made.queue("p", JobSpec(name=JobId("p"), nodes=8, slice_nodes=4))
    change(made, "p", submitted_at=made.fleet.time - 7 * HOUR)
    return made


def test_racks_are_kept_for_it_where_no_plan_came() -> None:
    made = waiting()
    now = made.fleet.time
    (kept,) = kept_for_starved(made.fleet, now)
    assert (kept.job, kept.racks) == ("p", {0: now + HOUR, 1: now + 2 * HOUR})
    change(made, "p", submitted_at=now - 6 * HOUR - 300.0)
    assert kept_for_starved(made.fleet, now) == []  # a plan may still come


def test_at_most_a_share_of_the_racks_is_kept() -> None:
    made = waiting()
    change(made, "p", spec=JobSpec(name=JobId("p"), nodes=16, slice_nodes=4))
    (kept,) = kept_for_starved(made.fleet, made.fleet.time)
    assert sorted(kept.racks) == [0, 1]


@pytest.mark.parametrize(
    ("spec", "off"),
    [
        ({"priority": 50}, 0b11),
        ({"priority": 51}, 0),
        ({"time_limit_s": 90 * 60.0}, 0b01),
        ({"time_limit_s": 60.0}, 0),
    ],
)
def test_others_leave_them_alone_unless_they_end_in_time(spec: dict[str, Any], off: int) -> None:
    made = waiting()
    kept = kept_for_starved(made.fleet, made.fleet.time)
    fields: dict[str, Any] = {"name": JobId("o"), "nodes": 1} | spec
    other = made.queue("o", JobSpec(**fields))
    assert kept_from(made.fleet, kept, other, made.fleet.time) == off
    assert kept_from(made.fleet, kept, made.job("p"), made.fleet.time) == 0
