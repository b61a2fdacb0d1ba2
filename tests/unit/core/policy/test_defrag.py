"""Plans: whole or none, within limits, and worth it."""

from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from rackwright.core.evolve import evolve
from rackwright.core.fold import apply
from rackwright.core.legality import illegal
from rackwright.core.policy.defrag import (
    Outcome,
    Verdict,
    entry_of,
    hindrance,
    judge,
    ripe_at,
    still_holds,
)
from rackwright.core.policy.defrag_story import explain
from rackwright.wire.entries.cell import AutomationPaused
from rackwright.wire.entries.job import JobBlocked, JobPlaced, SlicePlacement
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned, VictimMove
from rackwright.wire.ids import JobId, Owner, PlanId, QueueName, RackId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Cause, Reason
from tests.support.fleets import Cell, cell, rack_spec
from tests.unit.core.policy.defrag_cells import HOUR, MINUTE, PINNED, SAVES, block, fill, pass_time

PLAN = PlanId("plan")


def look(made: Cell, job: str = "p", checkpoints: dict[JobId, float] | None = None) -> Verdict:
    return judge(made.fleet, made.job(job), checkpoints or {}, made.fleet.time)


def planned(made: Cell, job: str = "p") -> DefragPlanned:
    verdict = look(made, job)
    assert verdict.outcome is Outcome.GO, verdict.outcome
    entry = entry_of(verdict, PLAN)
    assert entry is not None
    return entry


def two_broken_racks(policy: Policy | None = None, **spec: Any) -> Cell:
    """r0 and r1 have three movable nodes each, r2 room for four: a 16-node job waits."""
    made = cell(3, policy=policy)
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(3), checkpoint=SAVES)
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16, **spec)
    return made


def test_a_plan_places_the_job_and_gives_every_victim_a_home() -> None:
    made = two_broken_racks()
    entry = planned(made)
    assert [(one.rack, one.nodes.bit_count()) for one in entry.slices] == [("r0", 16)]
    assert [(victim.job, victim.move) for victim in entry.victims] == [("v-r0", VictimMove.RESTART)]
    assert entry.victims[0].homes[0].rack == "r2"
    made.add(entry)
    old = {f"v-r0/{rank}/1" for rank in range(3)}
    assert {worker for _, one in made.job("v-r0").slices[0].gates for worker in one} == old
    waits = {worker for _, one in made.job("p").slices[0].gates for worker in one}
    assert waits
    assert waits < old


def test_nobody_else_can_take_the_nodes_while_they_drain() -> None:
    """Lesson 34: the job is on them, not a hold."""
    made = two_broken_racks()
    made.add(planned(made))
    block(made, "newcomer", nodes=16)
    part = replace(_as_placement(made, "p"), first_rank=0)
    taken = JobPlaced(
        job=JobId("newcomer"), membership=1, slices=(part,), reason=Reason(code="test")
    )
    assert illegal(made.fleet, taken) is not None


def _as_placement(made: Cell, job: str) -> SlicePlacement:
    part = made.job(job).slices[0]
    rack = made.fleet.rack_name(part.rack)
    return SlicePlacement(index=0, first_rank=0, rack=rack, nodes=part.mask)


def test_cost_and_benefit_are_in_the_entry_term_by_term() -> None:
    entry = planned(two_broken_racks())
    cost = entry.victims[0].cost
    assert (cost.gpus, cost.lost_h, cost.home_h) == (12, 0.0, 0.0)
    assert cost.total == pytest.approx(12 * 10 / 60 + 1.0)
    assert entry.hold_gpu_h == pytest.approx(15 * 4 * 2.5 / 60)
    assert entry.cost_gpu_h == pytest.approx(cost.total + entry.hold_gpu_h)
    assert (entry.benefit_gpu_h, entry.notice_s) == (32.0, 120.0)
    assert entry.next_best_gpu_h == pytest.approx(entry.cost_gpu_h)


def test_no_plan_for_a_part_of_the_job() -> None:
    """Lesson 33: one rack of two is no plan; nobody moves for nothing."""
    made = two_broken_racks()
    block(made, "wide", nodes=48)
    assert look(made, "wide").outcome is Outcome.NO_WAY


def test_no_plan_without_a_home_for_everybody() -> None:
    made = cell(3)
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(4), checkpoint=SAVES)
    fill(made, "r2", range(15))
    pass_time(made, HOUR)
    made.sit("full", "r1", range(4, 18), **PINNED)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert verdict.outcome is Outcome.NO_HOMES
    assert [why.code for _, why in verdict.failed] == ["no-home"]
    assert entry_of(verdict, PLAN) is None


def test_a_set_without_homes_leads_at_once_to_the_next() -> None:
    """The cheapest victim has no home; a dearer one has."""
    made = cell(3)
    made.sit("large", "r0", range(14), checkpoint=replace(SAVES, restart_s=60.0))
    made.sit("small", "r1", range(4), checkpoint=replace(SAVES, restart_s=1200.0))
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert verdict.outcome is Outcome.GO
    assert [(tuple(chosen.victims), why.code) for chosen, why in verdict.failed] == [
        (("large",), "no-home")
    ]
    assert verdict.settled is not None
    assert [home.job for home in verdict.settled.homes] == ["small"]


def test_interactive_and_pinned_work_is_never_touched() -> None:
    made = cell(2)
    made.sit("notebook", "r0", [0], **PINNED)
    made.sit("fragile", "r1", [0, 1, 2], restartable=False)
    fill(made, "r0", [1, 2])
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert look(made).outcome is Outcome.NO_WAY


def test_a_job_that_fits_needs_no_plan() -> None:
    made = cell(1)
    block(made, "p", nodes=16)
    assert look(made).outcome is Outcome.FITS


def test_quota_of_a_victim_makes_no_rack_untouchable() -> None:
    """Lesson 30: a victim has its GPUs already, wherever it goes."""
    queue = QueueName("tight")
    made = cell(2, policy=Policy(queue_gpus={queue: 12}))
    made.sit("v", "r0", range(3), checkpoint=SAVES, queue=queue)
    fill(made, "r1", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert planned(made).victims[0].job == "v"


def test_a_home_that_the_plan_itself_frees_costs_the_drain() -> None:
    """w leaves six nodes of which the job takes four; v has its home on the other two."""
    made = cell(3, policy=Policy(spares_large=0, spares_small=0))
    made.sit("w", "r0", range(6), checkpoint=SAVES)
    made.sit("v", "r1", range(2), checkpoint=SAVES)
    fill(made, "r1", range(2, 4))
    fill(made, "r2", range(12))
    pass_time(made, HOUR)
    block(made, "p", nodes=32)
    entry = planned(made)
    homes = {victim.job: (victim.homes[0].rack, victim.cost.home_h) for victim in entry.victims}
    assert homes == {"w": ("r2", 0.0), "v": ("r0", 30.0 / HOUR)}
    made.add(entry)
    waits = {worker for _, one in made.job("v").slices[0].gates for worker in one}
    assert {"w", "v"} == {worker.partition("/")[0] for worker in waits}


def test_slices_of_a_larger_job_move_as_slices() -> None:
    made = cell(3)
    made.spread("d", [("r0", range(4)), ("r1", range(16))], slice_nodes=16, uneven="last")
    made.sit("pin", "r2", range(12), **PINNED, slice_nodes=18)
    pass_time(made, HOUR)
    block(made, "p", nodes=16, priority=60)
    entry = planned(made)
    (victim,) = entry.victims
    assert (victim.job, victim.move) == ("d", VictimMove.SLICE)
    assert [(home.index, home.rack) for home in victim.homes] == [(0, "r2")]
    assert victim.cost.total == pytest.approx(80 * 3 / 60 * 1.0 + 1.0)
    before = made.job("d").slices[1]
    made.add(entry)
    assert made.job("d").slices[1].incarnations == before.incarnations


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        (Policy(defrag_max_victims=2), True),
        (Policy(defrag_max_victims=1), False),
    ],
)
def test_at_most_so_many_victims(policy: Policy, allowed: bool) -> None:
    made = cell(2, policy=policy)
    for number in range(2):
        made.sit(f"v{number}", "r0", [2 * number, 2 * number + 1], checkpoint=SAVES)
    made.sit("u", "r0", [4], preemptible=False)
    made.sit("w", "r0", [5], preemptible=False)
    fill(made, "r1", range(13))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert (verdict.outcome is Outcome.GO) is allowed


@pytest.mark.parametrize(("nodes", "share", "go"), [(16, 2, True), (17, 2, False), (17, 32, True)])
def test_a_small_cell_may_move_as_much_as_one_slice(nodes: int, share: int, go: bool) -> None:
    """2 % of three racks is a node; the limit is then the slice of the blocked job."""
    made = cell(3, policy=Policy(defrag_max_share=share / 100))
    made.sit("v", "r0", range(nodes), priority=10, checkpoint=SAVES, slice_nodes=18)
    fill(made, "r1", [0])
    made.sit("wall", "r2", range(18), **PINNED, slice_nodes=18)
    pass_time(made, HOUR)
    block(made, "p", nodes=16, exclude_nodes=("r1-n02", "r1-n03"))
    verdict = look(made)
    assert (verdict.outcome is Outcome.GO) is go


def test_a_dear_plan_waits_and_says_until_when() -> None:
    made = two_broken_racks(Policy(defrag_kappa=8.0))
    verdict = look(made)
    assert verdict.outcome is Outcome.DEAR
    assert verdict.settled is not None
    assert verdict.again == made.fleet.time + verdict.settled.cost * 8.0 / 64 * HOUR
    assert entry_of(verdict, PLAN) is None


@pytest.mark.parametrize(("left", "outcome"), [(5.0, Outcome.RELEASE), (25.0, Outcome.GO)])
def test_a_release_that_comes_first_is_waited_for(left: float, outcome: Outcome) -> None:
    """A plan of 5.5 GPU-hours for 64 GPUs is worth 5 minutes of waiting, not 25."""
    made = cell(3)
    made.sit("v", "r0", range(3), checkpoint=SAVES)
    fill(made, "r2", range(14))
    made.sit("ends", "r1", range(3), time_limit_s=HOUR + left * MINUTE, preemptible=False)
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert verdict.outcome is outcome
    if outcome is Outcome.RELEASE:
        assert verdict.again == made.fleet.time + left * MINUTE


def test_a_probation_that_ends_soon_is_a_release() -> None:
    made = cell(2)
    made.sit("v", "r0", range(3), checkpoint=SAVES)
    fill(made, "r1", range(2))
    pass_time(made, HOUR)
    made.unfit("r1-n17")
    made.recover("r1-n17", probation_s=120.0)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert (verdict.outcome, verdict.again) == (Outcome.RELEASE, made.fleet.time + 120.0)


def test_the_trigger_is_a_block_by_movable_topology_without_a_break() -> None:
    made = two_broken_racks()
    since = made.job("p").blocked_since
    assert since is not None
    assert ripe_at(made.fleet, made.job("p")) == since + 30.0
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code=Cause.HEALTH)))
    assert ripe_at(made.fleet, made.job("p")) is None
    pass_time(made, 10.0)
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    assert ripe_at(made.fleet, made.job("p")) == made.fleet.time + 30.0


def test_what_hinders_every_plan() -> None:
    made = two_broken_racks(Policy(defrag_per_hour=1))
    assert hindrance(made.fleet, made.fleet.time) is None
    pause = AutomationPaused(
        automation=Automation.DEFRAG,
        until=made.fleet.time + 60.0,
        by=Owner("ops"),
        why="upgrade",
    )
    paused = apply(made.fleet, pause)
    assert _code(hindrance(paused, paused.time)) == "defrag.paused"
    assert hindrance(paused, paused.time + 60.0) is None
    at = made.fleet.time
    made.add(planned(made))
    assert _code(hindrance(made.fleet, at)) == "defrag.in-flight"
    alone = evolve(made.fleet, plans=Map())
    found = hindrance(alone, at + HOUR - 1.0)
    assert found is not None
    assert (found.code, found.numbers["again"]) == ("defrag.per-hour", at + HOUR)
    assert hindrance(alone, at + HOUR) is None


def _code(reason: Reason | None) -> str | None:
    return None if reason is None else reason.code


def test_a_moves_b_moves_a_cannot_occur() -> None:
    """Lesson 32: who was moved is left alone, and nobody moves for something smaller."""
    made = two_broken_racks()
    made.add(planned(made))
    made.start("p")
    made.start("v-r0")
    made.add(DefragFinished(plan=PLAN))
    pass_time(made, HOUR - MINUTE)
    block(made, "q", nodes=16, exclude_nodes=tuple(f"r1-n{n:02d}" for n in range(18)))
    verdict = look(made, "q")
    assert verdict.outcome is Outcome.NO_WAY
    assert verdict.case is not None
    assert verdict.case.price(JobId("v-r0")) == "cooldown"
    assert verdict.case.price(JobId("p")) == "not-smaller"


def test_a_plan_holds_until_something_of_it_changes() -> None:
    made = two_broken_racks()
    entry, at = planned(made), made.fleet.time
    now = pass_time(made, 5.0)
    assert still_holds(made.fleet, entry, {}, at, now) is None


def _victim_ends(made: Cell) -> None:
    made.fail("r0-n00")


def _home_is_taken(made: Cell) -> None:
    made.sit("late", "r2", [14, 15, 16, 17], **PINNED)


def _job_fits(made: Cell) -> None:
    made.define(rack_spec("r8"))


def _blocked_otherwise(made: Cell) -> None:
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code=Cause.HELD)))


def _victim_moved(made: Cell) -> None:
    job = made.job("v-r0")
    jobs = made.fleet.jobs.set(job.id, evolve(job, preempted=(made.fleet.time,)))
    made.fleet = evolve(made.fleet, jobs=jobs)


def _dearer(made: Cell) -> None:
    job = made.job("v-r0")
    spec = replace(job.spec, checkpoint=Checkpoint(on_notice_s=60.0, restart_s=900.0))
    made.fleet = evolve(made.fleet, jobs=made.fleet.jobs.set(job.id, evolve(job, spec=spec)))


@pytest.mark.parametrize(
    "change",
    [_victim_ends, _home_is_taken, _job_fits, _blocked_otherwise, _victim_moved, _dearer],
)
def test_a_plan_is_dropped_when_its_reasons_are_gone(change: Any) -> None:
    made = two_broken_racks()
    entry, at = planned(made), made.fleet.time
    change(made)
    made.sound = False
    now = made.fleet.time
    assert still_holds(made.fleet, entry, {}, at, now) is not None


def test_what_does_not_concern_a_plan_does_not_drop_it() -> None:
    made = two_broken_racks()
    entry, at = planned(made), made.fleet.time
    made.add(JobBlocked(job=JobId("p"), reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))
    made.sit("elsewhere", "r1", [5])
    assert still_holds(made.fleet, entry, {}, at, made.fleet.time) is None


def test_the_explanation_offers_nothing_and_shows_all() -> None:
    made = two_broken_racks()
    fill(made, "r1", range(3, 6))
    found = explain(made.fleet, made.job("p"), {}, made.fleet.time)
    assert (found.outcome, list(found.racks)) == (Outcome.GO, ["r0"])
    assert found.cost == pytest.approx(5.5)
    assert found.hindered is not None
    assert found.hindered.code == "defrag.too-soon"
    assert [(home.job, home.rack, home.nodes) for home in found.homes] == [("v-r0", "r2", 3)]
    by_rack = {row.rack: row for row in found.rows}
    assert found.rows[0].rack == "r0"
    assert by_rack[RackId("r0")].cost == pytest.approx(5.5)
    assert by_rack[RackId("r1")].cost is None
    told = {tenant.job: tenant.forbidden for tenant in by_rack[RackId("r1")].tenants}
    assert told == {"v-r1": None, **{f"pin-r1-{n}": "interactive" for n in range(3, 6)}}
    assert [tenant.leaves for tenant in found.rows[0].tenants] == [True]
