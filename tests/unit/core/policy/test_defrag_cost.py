"""Who may be moved, and what that costs: both outcomes of each rule."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.jobs import JobState, Wound, WoundKind
from rackwright.core.policy.defrag_cost import Blocked, benefit, blocked, pays_at
from rackwright.core.policy.defrag_racks import price_of_slice
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId, PlanId, QueueName
from rackwright.wire.jobs import Checkpoint, CheckpointPlace, JobClass, JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, MINUTE, block, change, pass_time

V = JobId("v")


def scene(policy: Policy | None = None, **victim: Any) -> Cell:
    """A victim of two nodes that has run for a day, and a job of 16 nodes that waits."""
    made = cell(2, policy=policy)
    made.sit("v", "r0", range(2), **victim)
    pass_time(made, 24 * HOUR)
    block(made, "p", nodes=16)
    return made


def look(made: Cell, checkpoints: dict[JobId, float] | None = None) -> Blocked:
    found = blocked(made.fleet, made.job("p"), checkpoints or {}, made.fleet.time)
    assert isinstance(found, Blocked)
    return found


def price(made: Cell, checkpoints: dict[JobId, float] | None = None) -> CostTerms | str:
    return price_of_slice(look(made, checkpoints), V, 0)


def cost(made: Cell, checkpoints: dict[JobId, float] | None = None) -> CostTerms:
    found = price(made, checkpoints)
    assert isinstance(found, CostTerms), found
    return found


def test_ordinary_work_may_be_moved() -> None:
    assert cost(scene()).gpus == 8


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"job_class": JobClass.INTERACTIVE}, "interactive"),
        ({"job_class": JobClass.SERVICE}, "service"),
        ({"restartable": False}, "not-restartable"),
        ({"preemptible": False}, "not-preemptible"),
        ({"checkpoint": Checkpoint(where=CheckpointPlace.LOCAL)}, "checkpoint.local"),
        ({"priority": 51}, "higher-priority"),
    ],
)
def test_work_that_nobody_may_move(spec: dict[str, Any], why: str) -> None:
    assert price(scene(**spec)) == why


def test_a_service_that_declares_itself_movable() -> None:
    assert cost(scene(job_class=JobClass.SERVICE, movable=True)).gpus == 8


def test_interactive_work_moves_only_where_an_administrator_allows_it() -> None:
    lab = QueueName("lab")
    spec: dict[str, Any] = {
        "job_class": JobClass.INTERACTIVE,
        "queue": lab,
        "time_limit_s": 48 * HOUR,
    }
    assert price(scene(**spec)) == "interactive"
    assert cost(scene(Policy(interactive_movable_queues=(lab,)), **spec)).gpus == 8


def test_work_without_its_checkpoints_is_pinned() -> None:
    """Else the job that never saves would be the one that is never asked to (1.12)."""
    made = scene(checkpoint=Checkpoint(interval_s=600.0))
    now = made.fleet.time
    assert price(made) == "checkpoint.overdue"
    assert price(made, {V: now - 1201.0}) == "checkpoint.overdue"
    assert cost(made, {V: now - 1199.0}).gpus == 8


def test_equal_priority_moves_only_for_something_larger() -> None:
    """Asymmetry: A moves B moves A cannot occur."""
    made = cell(3)
    made.sit("v", "r0", range(16))
    made.spread("w", [("r1", range(4)), ("r2", range(4))], slice_nodes=4)
    pass_time(made, HOUR * 24)
    block(made, "p", nodes=16)
    assert price(made) == "not-smaller"
    block(made, "q", nodes=32)
    larger = blocked(made.fleet, made.job("q"), {}, made.fleet.time)
    assert isinstance(larger, Blocked)
    assert isinstance(price_of_slice(larger, V, 0), CostTerms)
    # One slice of a larger job leaves, and that is smaller.
    assert isinstance(price_of_slice(larger, JobId("w"), 0), CostTerms)
    assert isinstance(price_of_slice(look(made), JobId("w"), 0), CostTerms)


def test_lower_priority_moves_whatever_its_size() -> None:
    made = cell(2)
    made.sit("v", "r0", range(18), priority=49, slice_nodes=18)
    pass_time(made, 24 * HOUR)
    block(made, "p", nodes=16)
    assert cost(made).gpus == 72


@pytest.mark.parametrize(
    ("past", "why"),
    [
        ({"started_at": -15 * MINUTE + 1}, "young"),
        ({"started_at": -15 * MINUTE}, None),
        ({"moved_at": -15 * MINUTE + 1}, "young"),
        ({"preempted": (-HOUR + 1,)}, "cooldown"),
        ({"preempted": (-HOUR,)}, None),
        ({"preempted": (-9 * HOUR, -8 * HOUR, -7 * HOUR)}, "repeats"),
        ({"preempted": (-25 * HOUR, -8 * HOUR, -7 * HOUR)}, None),
    ],
)
def test_work_that_was_disturbed_lately_is_left_alone(
    past: dict[str, Any], why: str | None
) -> None:
    made = scene()
    now = made.fleet.time
    then = {
        name: tuple(now + at for at in value) if isinstance(value, tuple) else now + value
        for name, value in past.items()
    }
    change(made, "v", **then)
    found = price(made)
    assert (found if isinstance(found, str) else None) == why


def test_work_near_its_time_limit_goes_by_itself() -> None:
    limit = 24 * HOUR
    assert price(scene(time_limit_s=limit + 10 * MINUTE)) == "near-limit"
    assert cost(scene(time_limit_s=limit + 11 * MINUTE)).gpus == 8


def test_work_in_trouble_is_left_alone() -> None:
    wound = Wound(rank=0, kind=WoundKind.NODE, code="xid.79", at=0.0)
    for fields, why in (
        ({"wounds": (wound,)}, "wounded"),
        ({"plan": PlanId("other")}, "in-plan"),
        ({"state": JobState.FINISHING}, "finishing"),
        ({"started": 0}, "starting"),
    ):
        made = scene()
        change(made, "v", **fields)
        assert price(made) == why


def test_lost_work_is_what_was_not_saved() -> None:
    made = scene()
    now = made.fleet.time
    saved = {V: now - 6 * MINUTE}
    # Nothing saved: all since it got its nodes; two minutes of notice are lost too.
    assert cost(made).lost_h == pytest.approx(24.0 + 2 / 60)
    assert cost(made, saved).lost_h == pytest.approx(8 / 60)
    # A checkpoint of an earlier placement does not count.
    change(made, "v", placed_at=now - 3 * MINUTE)
    assert cost(made, saved).lost_h == pytest.approx(5 / 60)


@pytest.mark.parametrize(("takes", "lost"), [(120.0, 0.0), (121.0, 24.0 + 2 / 60)])
def test_nothing_is_lost_by_work_that_saves_within_the_notice(takes: float, lost: float) -> None:
    made = scene(checkpoint=Checkpoint(on_notice_s=takes))
    assert cost(made).lost_h == pytest.approx(lost)


def test_priority_and_repeats_make_it_dearer() -> None:
    made = scene()
    plain = cost(made, {V: made.fleet.time})
    assert plain.total == pytest.approx(8 * (2 + 10) / 60 + 1.0)
    change(made, "v", preempted=(made.fleet.time - 2 * HOUR,))
    assert cost(made, {V: made.fleet.time}).total == pytest.approx(8 * 12 / 60 * 1.5 + 1.0)
    low = scene(priority=0, checkpoint=Checkpoint(restart_s=HOUR))
    assert cost(low, {V: low.fleet.time}).weight == 0.25


def test_a_move_counts_once_as_a_repeat() -> None:
    made = scene()
    now = made.fleet.time
    change(made, "v", moved_at=now - 2 * HOUR)
    assert cost(made).repeats == 1
    change(made, "v", preempted=(now - 2 * HOUR,))
    assert cost(made).repeats == 1


def test_benefit_credits_half_an_hour_at_least() -> None:
    made = scene()
    change(made, "p", blocked_since=made.fleet.time - 60.0)
    assert benefit(look(made)) == 32.0
    change(made, "p", blocked_since=made.fleet.time - HOUR)
    assert benefit(look(made)) == 64.0
    assert pays_at(look(made), 128.0) == made.fleet.time + HOUR
    change(made, "p", spec=replace(made.job("p").spec, priority=100))
    assert benefit(look(made)) == 256.0


def test_a_job_that_cannot_be_cut_has_no_plan() -> None:
    made = scene()
    spec = JobSpec(name=JobId("p"), nodes=20, slice_nodes=30)
    found = blocked(made.fleet, evolve(made.job("p"), spec=spec), {}, made.fleet.time)
    assert not isinstance(found, Blocked)
    assert found.code == "spec.slice_nodes"
