"""Random cells: a plan is legal and whole, touches nobody it may not, and can be undone."""

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.invariants import check
from rackwright.core.jobs import ASSIGNED, JobState
from rackwright.core.legality import illegal
from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.defrag import Outcome, entry_of, judge
from rackwright.core.policy.defrag_course import Asked, course, spared, withdrawn
from rackwright.core.policy.placement import place, place_on
from rackwright.core.racks import refresh_use
from rackwright.wire.entries.job import JobFinished
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned
from rackwright.wire.ids import JobId, PlanId, WorkerId
from rackwright.wire.jobs import Checkpoint, CheckpointPlace, JobClass, JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell

PLAN = PlanId("plan")
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    made: Cell
    asker: JobId
    checkpoints: dict[JobId, float]


def random_spec(random: Random, name: str) -> JobSpec:
    """Small work of every sort; a fifth of it nobody may move."""
    sort = random.random()
    more: dict[str, Any] = {"priority": random.choice((0, 50, 50, 50, 80))}
    if sort < 0.15:
        more |= {"job_class": JobClass.INTERACTIVE, "preemptible": False}
    elif sort < 0.2:
        more |= {"restartable": False}
    elif sort < 0.25:
        more |= {"checkpoint": Checkpoint(where=CheckpointPlace.LOCAL)}
    elif sort < 0.3:
        more |= {"job_class": JobClass.SERVICE, "movable": random.random() < 0.5}
    else:
        saves = random.choice((None, 60.0))
        more |= {"checkpoint": Checkpoint(on_notice_s=saves, restart_s=random.choice((60, 600)))}
    shape = random.random()
    if shape < 0.3:
        more |= {"gpus": random.randint(1, 3)}
    elif shape < 0.45:
        more |= {"nodes": random.randint(4, 9), "slice_nodes": random.choice((2, 4))}
    else:
        more |= {"nodes": random.randint(1, 5)}
    return JobSpec(name=JobId(name), **more)


def world(seed: int) -> World:
    """A cell that has filled up and lost a part of its work again, so that it is full of holes."""
    random = Random(seed)
    racks = random.randint(2, 5)
    made = cell(racks, policy=Policy(defrag_max_share=0.5), sound=False)
    names: list[str] = []
    for number in range(racks * 9):
        name = f"j{number}"
        made.queue(name, random_spec(random, name))
        wide = random.getrandbits(racks)  # spread over the racks as a busy day would
        slices = place_on(made.fleet, made.job(name), wide) or place(made.fleet, made.job(name))
        if slices is None:
            continue
        made.place(name, slices)
        made.start(name)
        names.append(name)
    _end(made, random.sample(names, len(names) // 3))
    made.fleet = evolve(made.fleet, time=made.fleet.time + 2 * HOUR)
    asker = JobSpec(name=JobId("asker"), nodes=random.choice((8, 12, 16, 16, 17)), priority=60)
    if random.random() < 0.2:
        asker = JobSpec(name=JobId("asker"), nodes=24, slice_nodes=12, priority=60)
    made.queue("asker", asker)
    check(made.fleet)
    now = made.fleet.time
    saved = {JobId(name): now - random.uniform(0, HOUR) for name in names if random.random() < 0.5}
    return World(made=made, asker=JobId("asker"), checkpoints=saved)


def _end(made: Cell, names: list[str]) -> None:
    for name in names:
        made.add(JobFinished(job=JobId(name)))


def plan_of(found: World) -> DefragPlanned | None:
    fleet = found.made.fleet
    cheap = evolve(fleet, policy=evolve(fleet.policy, defrag_kappa=1e-6))
    found.made.fleet = cheap
    verdict = judge(cheap, cheap.jobs[found.asker], found.checkpoints, cheap.time)
    entry = entry_of(verdict, PLAN)
    assert (entry is None) == (verdict.outcome is not Outcome.GO)  # what is decided is legal
    return entry


def untouchable(fleet: Fleet, name: JobId) -> bool:
    spec = fleet.jobs[name].spec
    fixed = spec.job_class is JobClass.SERVICE and not spec.movable
    local = spec.checkpoint.where is CheckpointPlace.LOCAL
    interactive = spec.job_class is JobClass.INTERACTIVE
    return interactive or fixed or local or not spec.restartable or not spec.preemptible


SEEDS = range(60)


def test_enough_of_the_random_cells_have_a_plan() -> None:
    made = [seed for seed in SEEDS if plan_of(world(seed)) is not None]
    print(f"plans in {made}")
    assert len(made) >= len(SEEDS) // 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_whole_and_touches_nobody_it_may_not(seed: int) -> None:
    print(f"seed={seed}")
    found = world(seed)
    entry = plan_of(found)
    if entry is None:
        return
    fleet = found.made.fleet
    for victim in entry.victims:
        assert not untouchable(fleet, victim.job)
        assert fleet.jobs[victim.job].spec.priority <= 60
    found.made.add(entry)
    check(found.made.fleet)
    after = found.made.fleet
    moved = {victim.job for victim in entry.victims}
    for name, job in fleet.jobs.items():
        if name in moved:
            assert after.jobs[name].state in ASSIGNED
            assert sum(part.size for part in after.jobs[name].slices) == job.ranks
        elif name != found.asker:
            assert after.jobs[name] is job
    assert after.jobs[found.asker].state is JobState.PLACED
    assert place(fleet, fleet.jobs[found.asker]) is None
    _starts(found, entry)


def _starts(found: World, entry: DefragPlanned) -> None:
    """Everybody comes up at the new place, and the plan is history."""
    made = found.made
    for name in (*(victim.job for victim in entry.victims), found.asker):
        made.start(name)
        check(made.fleet)
    plan = made.fleet.plans[PLAN]
    end = course(made.fleet, plan, lambda worker: False, made.fleet.time, Asked())
    assert end == DefragFinished(plan=PLAN)
    made.add(end)
    check(made.fleet)
    assert all(job.plan is None for job in made.fleet.jobs.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_withdrawn_plan_leaves_a_sound_cell(seed: int) -> None:
    """Any part of the victims may have stopped when it is withdrawn."""
    print(f"seed={seed}")
    found = world(seed)
    entry = plan_of(found)
    if entry is None:
        return
    made, random = found.made, Random(seed + 1)
    before = made.fleet
    made.add(entry)
    stopped = {victim.job for victim in entry.victims if random.random() < 0.3}

    def runs(worker: WorkerId) -> bool:
        return worker.partition("/")[0] not in stopped

    plan = made.fleet.plans[PLAN]
    keep = spared(made.fleet, plan, runs, made.fleet.time)
    if not stopped:
        assert set(keep) == {victim.job for victim in entry.victims}
    assert not set(keep) & stopped
    back = withdrawn(made.fleet, plan, keep, "asked")
    assert illegal(made.fleet, back) is None
    made.add(back)
    check(made.fleet)
    assert not made.fleet.plans
    assert made.fleet.jobs[found.asker].state is JobState.QUEUED
    for name in keep:
        assert made.fleet.jobs[name].slices == before.jobs[name].slices
        assert made.fleet.jobs[name].state is before.jobs[name].state
    for victim in entry.victims:
        assert made.fleet.jobs[victim.job].state in ASSIGNED


@pytest.mark.parametrize("seed", SEEDS)
def test_homes_are_placements_like_any_other(seed: int) -> None:
    """Checked node by node, by code that shares nothing with the search (lesson 7)."""
    print(f"seed={seed}")
    found = world(seed)
    entry = plan_of(found)
    if entry is None:
        return
    fleet = found.made.fleet
    found.made.add(entry)
    after = found.made.fleet
    for name in (found.asker, *(victim.job for victim in entry.victims)):
        job = after.jobs[name]
        if len(job.slices) > 1 and name != found.asker:
            continue  # only some of its slices are new
        alone = evolve(job, slices=())
        gone = evolve(after, racks=_without(after, name))
        made = entry.slices if name == found.asker else _homes(entry, name)
        assert check_placement(gone, alone, made) == [], fleet.seq


def _without(fleet: Fleet, name: JobId) -> Any:
    """The racks as this job found them; what is lent to others counts as free."""
    racks = fleet.racks
    for number, rack in fleet.racks.items():
        rest = tuple(one for one in rack.tenancies if one.job != name and not one.lent)
        if rest != rack.tenancies:
            racks = racks.set(number, refresh_use(rack, fleet.policy, tenancies=rest))
    return racks


def _homes(entry: DefragPlanned, name: JobId) -> Any:
    return next(victim.homes for victim in entry.victims if victim.job == name)
