"""The defragmenter's mind: when it plans, what it offers, and how it sees a plan through."""

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.jobs import JobState
from rackwright.core.machine import Note
from rackwright.defragmenter.machine import to_look_at
from rackwright.defragmenter.state import State
from rackwright.wire.entries.cell import AutomationPaused, AutomationResumed, LedgerTicked
from rackwright.wire.entries.job import (
    JobApproved,
    JobBlocked,
    JobCancelled,
    JobFinished,
    JobQueued,
    JobStarted,
)
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned, DefragWithdrawn
from rackwright.wire.ids import JobId, Owner, WorkerId
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Cause, Reason
from rackwright.wire.signals import WorkerState
from tests.support.fleets import cell
from tests.unit.core.policy.defrag_cells import HOUR, PINNED, pass_time
from tests.unit.defragmenter.driver import (
    Driver,
    blocked_cell,
    notes,
    offer,
    offers,
    planned,
    types,
    wakes,
    with_policy,
)

P, V = JobId("p"), JobId("v")


def plan_entry(driver: Driver) -> DefragPlanned:
    (entry,) = planned(driver).entries
    assert isinstance(entry, DefragPlanned)
    return entry


def in_flight() -> Driver:
    """A plan was made and its victim told; the victim still runs."""
    driver = blocked_cell()
    driver.commit(planned(driver))
    driver.commit(offer(driver.turn()))
    driver.all_run("v")
    return driver


# The trigger


def test_nothing_before_the_block_has_lasted() -> None:
    driver = blocked_cell()
    since = driver.made.job("p").blocked_since
    assert since is not None
    effects = driver.turn()
    assert (offers(effects), wakes(effects)) == ([], [since + 30.0])
    assert types(driver.wait(29.0)) == []
    assert types(driver.wait(1.0)) == ["defrag.planned"]


def test_a_break_of_the_block_starts_the_wait_anew() -> None:
    driver = blocked_cell()
    driver.turn()
    driver.wait(20.0)
    driver.fold(JobBlocked(job=P, reason=Reason(code=Cause.CAPACITY)))
    driver.fold(JobBlocked(job=P, reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    assert types(driver.wait(15.0)) == []
    assert types(driver.wait(15.0)) == ["defrag.planned"]


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.TOPOLOGY_MOVABLE])
def test_no_other_cause_wakes_it(cause: Cause) -> None:
    driver = blocked_cell()
    driver.turn()
    driver.fold(JobBlocked(job=P, reason=Reason(code=cause)))
    assert driver.wait(HOUR) == []


def test_the_plan_names_the_block_as_its_cause() -> None:
    driver = blocked_cell()
    driver.turn()
    driver.fold(JobBlocked(job=P, reason=Reason(code=Cause.HEALTH)))
    driver.fold(JobBlocked(job=P, reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    blocked_by = driver.made.fleet.last_id
    driver.fold(LedgerTicked())
    (entry,) = offer(driver.wait(31.0)).entries
    assert entry.cause == blocked_by


def test_checkpoints_of_the_nodes_enter_the_cost() -> None:
    driver = blocked_cell()
    plain = Checkpoint(restart_s=60.0)
    job = evolve(driver.made.job("v"), spec=evolve(driver.made.job("v").spec, checkpoint=plain))
    driver.made.fleet = evolve(driver.made.fleet, jobs=driver.made.fleet.jobs.set(V, job))
    driver.all_run("v", checkpoint=driver.now - 60.0)
    driver.turn()
    (entry,) = offer(driver.wait(31.0)).entries
    assert isinstance(entry, DefragPlanned)
    assert entry.victims[0].cost.lost_h == pytest.approx((60.0 + 31.0 + 120.0) / HOUR)


# What holds it back


def test_a_pause_stops_plans_until_its_end() -> None:
    driver = blocked_cell()
    driver.turn()
    end = driver.now + 100.0
    pause = AutomationPaused(automation=Automation.DEFRAG, until=end, by=Owner("ops"))
    driver.fold(pause)
    effects = driver.wait(40.0)
    assert (types(effects), wakes(effects)) == ([], [end])
    assert types(driver.wait(60.0)) == ["defrag.planned"]


def test_an_early_end_of_the_pause_is_enough() -> None:
    driver = blocked_cell()
    driver.turn()
    by = Owner("ops")
    end = driver.now + 1000.0
    driver.fold(AutomationPaused(automation=Automation.DEFRAG, until=end, by=by))
    driver.wait(40.0)
    driver.fold(AutomationResumed(automation=Automation.DEFRAG, by=by))
    assert types(driver.turn()) == ["defrag.planned"]


def test_recovery_comes_first_for_a_moment() -> None:
    driver = blocked_cell()
    driver.turn()
    driver.wait(29.95)
    driver.made.sit("hurt", "r2", [14], priority=80, checkpoint=Checkpoint(on_notice_s=1.0))
    driver.made.fail("r2-n14")
    effects = driver.wait(0.06)
    assert types(effects) == []
    assert wakes(effects) == [pytest.approx(driver.now + 0.04)]
    assert types(driver.wait(0.05)) == ["defrag.planned"]


def test_one_plan_at_a_time() -> None:
    driver = in_flight()
    driver.fold(
        JobQueued(
            job=JobId("q"),
            owner=Owner("ann"),
            spec=JobSpec(name=JobId("q"), nodes=16, priority=90),
            spec_hash="h",
            submitted_at=driver.now,
        )
    )
    driver.fold(JobBlocked(job=JobId("q"), reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    driver.all_run("v")
    assert types(driver.wait(60.0)) == []


def test_so_many_plans_an_hour() -> None:
    driver = blocked_cell(Policy(defrag_per_hour=1))
    times = (driver.now - 100.0,)
    driver.made.fleet = evolve(driver.made.fleet, plan_times=times)
    driver.turn()
    effects = driver.wait(31.0)
    assert (types(effects), wakes(effects)) == ([], [times[0] + HOUR])


def test_a_dear_plan_is_looked_at_again_when_it_pays() -> None:
    driver = blocked_cell(Policy(defrag_kappa=8.0))
    driver.turn()
    effects = driver.wait(31.0)
    assert types(effects) == []
    assert notes(effects) == ["defrag.judged"]
    again = driver.state.looks[P].again
    assert again is not None
    assert types(driver.wait(again - driver.now - 1.0)) == []
    assert types(driver.wait(1.5)) == ["defrag.planned"]


def test_approval_is_asked_for_once_and_nothing_is_offered() -> None:
    driver = blocked_cell(Policy(defrag_approve=True))
    driver.turn()
    effects = driver.wait(31.0)
    assert types(effects) == []
    (note,) = [effect for effect in effects if isinstance(effect, Note)]
    assert note.fields["outcome"] == "awaits approval: r0"
    assert note.fields["victims"] == ["v"]
    for _ in range(3):
        driver.fold(LedgerTicked())
        assert notes(driver.wait(10.0)) == []


def test_a_job_that_nothing_helps_is_not_thought_about_at_every_commit() -> None:
    driver = blocked_cell()
    driver.made.sit("wall", "r2", range(14, 18), **PINNED)
    driver.made.sit("wall2", "r1", range(3, 18), **PINNED)
    driver.turn()
    driver.wait(31.0)
    looked = driver.state.looks[P]
    driver.fold(LedgerTicked())
    driver.wait(1.0)
    assert driver.state.looks[P] is looked
    driver.wait(4.5)
    assert driver.state.looks[P] is not looked


# Offering


def test_a_refused_plan_is_offered_again_as_it_is() -> None:
    """Lesson of F12: a slow thinker must not start anew whenever somebody was faster."""
    driver = blocked_cell()
    first = planned(driver)
    for number in range(5):
        driver.fold(LedgerTicked())
        driver.made.sit(f"busy{number}", "r1", [4 + number])
        assert offers(driver.refuse(first)) == [first]
    assert offers(driver.turn()) == [first]
    driver.commit(first)
    assert driver.made.job("p").state is JobState.PLACED


def test_a_refused_plan_whose_reasons_are_gone_is_dropped_and_decided_anew() -> None:
    driver = blocked_cell()
    first = planned(driver)
    driver.fold(JobFinished(job=V))
    effects = driver.refuse(first)
    assert (offers(effects), notes(effects)) == ([], ["defrag.plan_dropped"])
    assert driver.state.decided is None


def test_a_plan_that_was_never_taken_is_decided_anew() -> None:
    driver = blocked_cell()
    first = planned(driver)
    effects = driver.wait(31.0)
    assert "defrag.plan_dropped" in notes(effects)
    assert offers(effects) == []
    (again,) = offer(driver.wait(1.0)).entries
    assert again != first.entries[0]


def test_a_copy_keeps_to_its_plan_while_it_is_patient() -> None:
    """The host lets it go only when the same plan has waited long enough."""
    driver = blocked_cell(copy=1)
    first = planned(driver)
    driver.fold(LedgerTicked())
    assert offers(driver.wait(0.25)) == [first]


def test_the_plan_of_another_copy_ends_its_own() -> None:
    driver, other = blocked_cell(), blocked_cell(copy=1)
    theirs, mine = planned(driver), planned(other)
    assert theirs != mine
    other.made.add(*theirs.entries)
    other.told(theirs.entries, "defragmenter/0")
    assert offers(other.refuse(mine)) == []
    assert types(other.turn()) == ["job.notified"]


# A plan in flight


def test_victims_are_told_after_the_plan_and_because_of_it() -> None:
    driver = blocked_cell()
    driver.commit(planned(driver))
    plan_id = driver.made.fleet.last_id
    effects = driver.turn()
    assert types(effects) == ["job.notified"]
    (entry,) = offer(effects).entries
    assert entry.cause == plan_id
    driver.commit(offer(effects))
    assert types(driver.turn()) == []


def test_after_a_restart_victims_are_told_rather_twice_than_never() -> None:
    driver = blocked_cell()
    driver.commit(planned(driver))
    fresh = Driver(made=driver.made)
    assert types(fresh.turn()) == ["job.notified"]
    late = Driver(made=driver.made)
    assert types(late.wait(130.0)) == []


def test_finished_as_soon_as_the_job_has_started() -> None:
    driver = in_flight()
    assert types(driver.wait(1.0)) == []
    driver.fold(JobStarted(job=P, membership=1), source="placer/0")
    (entry,) = offer(driver.turn()).entries
    assert isinstance(entry, DefragFinished)
    driver.commit(offer(driver.turn()))
    assert not driver.made.fleet.plans


def test_withdrawn_when_the_job_is_cancelled_and_running_victims_are_spared() -> None:
    driver = in_flight()
    driver.fold(JobCancelled(job=P, by=Owner("ann"), reason=Reason(code="owner")))
    (entry,) = offer(driver.turn()).entries
    assert isinstance(entry, DefragWithdrawn)
    assert entry.spared == ("v",)
    driver.commit(offer(driver.turn()))
    assert driver.made.job("v").state is JobState.RUNNING
    assert driver.made.fleet.rack_name(driver.made.job("v").slices[0].rack) == "r0"


@pytest.mark.parametrize("state", [WorkerState.EXITED, WorkerState.STOPPED, WorkerState.FENCED])
def test_a_victim_of_which_one_worker_has_ended_is_not_spared(state: WorkerState) -> None:
    driver = in_flight()
    driver.status("r0-n01", ("v/1/1", state, None))
    driver.fold(JobCancelled(job=P, by=Owner("ann"), reason=Reason(code="owner")))
    (entry,) = offer(driver.turn()).entries
    assert isinstance(entry, DefragWithdrawn)
    assert entry.spared == ()


def test_the_word_of_another_session_does_not_count() -> None:
    driver = in_flight()
    driver.status("r0-n01", ("v/1/1", WorkerState.RUNNING, None), session="old")
    worker = WorkerId("v/1/1")
    assert not driver.state.seen.runs(driver.made.fleet, worker)


def test_withdrawn_when_a_node_of_the_freed_rack_fails() -> None:
    """Recovery has its moment first."""
    driver = in_flight()
    node = driver.made.job("p").slices[0].nodes[-1]
    driver.made.fail(f"r0-n{node:02d}")
    assert types(driver.turn()) == []
    (entry,) = offer(driver.wait(1.0)).entries
    assert isinstance(entry, DefragWithdrawn)
    assert entry.reason.code == "defrag.node-failed"


def test_withdrawn_at_expiry_and_then_planned_for_anew() -> None:
    driver = in_flight()
    assert types(driver.wait(599.0)) == []
    (entry,) = offer(driver.wait(1.5)).entries
    assert isinstance(entry, DefragWithdrawn)
    assert entry.reason.code == "defrag.expired"
    driver.commit(offer(driver.wait(1.0)))
    assert driver.made.job("p").state is JobState.QUEUED


def test_what_ends_a_plan_is_offered_at_each_turn_until_it_is_in() -> None:
    """Else the host of a second copy would take it for answered and forget its patience."""
    driver = in_flight()
    driver.fold(JobStarted(job=P, membership=1), source="placer/0")
    assert types(driver.turn()) == ["defrag.finished"]
    assert types(driver.wait(0.25)) == ["defrag.finished"]
    driver.made.add(DefragFinished(plan=next(iter(driver.made.fleet.plans))))
    assert types(driver.turn()) == []


def test_a_plan_in_flight_is_asked_again_twice_a_second() -> None:
    driver = in_flight()
    effects = driver.wait(1.0)
    assert wakes(effects) == [driver.now + 0.5]


def test_an_operators_change_of_policy_reaches_the_next_plan() -> None:
    driver = blocked_cell()
    driver.turn()
    with_policy(driver, defrag_notice_s=30.0)
    (entry,) = offer(driver.wait(31.0)).entries
    assert isinstance(entry, DefragPlanned)
    assert entry.notice_s == 30.0


def test_an_approved_plan_goes_ahead_while_the_approval_lasts() -> None:
    driver = blocked_cell(Policy(defrag_approve=True))
    assert types(driver.wait(31.0)) == []
    until = driver.now + 60.0
    driver.fold(JobApproved(job=P, until=until, by=Owner("op")))
    assert types(driver.wait(30.0)) == ["defrag.planned"]
    late = blocked_cell(Policy(defrag_approve=True))
    late.fold(JobApproved(job=P, until=late.now + 10.0, by=Owner("op")))
    assert types(late.wait(31.0)) == []


def test_for_capacity_only_the_oldest_of_a_priority_is_looked_at_if_lower_work_runs() -> None:
    made = cell(1)
    made.sit("low", "r0", range(18), priority=10)
    state = State(copy=0)
    for name, priority in (("a", 10), ("b", 50), ("c", 50), ("d", 60)):
        made.queue(name, JobSpec(name=JobId(name), nodes=8, priority=priority))
        made.add(JobBlocked(job=JobId(name), reason=Reason(code=Cause.CAPACITY)))
        state.follow(made.fleet, JobId(name))
        pass_time(made, 1.0)
    assert sorted(to_look_at(state, made.fleet, made.fleet.time)) == ["b", "d"]
    made.finish("low")
    assert to_look_at(state, made.fleet, made.fleet.time + 60.0) == []
