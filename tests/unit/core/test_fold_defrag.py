"""Entries of the noun `defrag`: a plan in one step, withdrawn or finished, and who may be in it."""

from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.core.invariants import check
from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.wire.entries.job import JobCancelled, JobFinishing, SlicePlacement
from rackwright.wire.entries.node import NodeCleaning
from rackwright.wire.entries.slice import (
    CostTerms,
    DefragFinished,
    DefragPlanned,
    DefragWithdrawn,
    SliceSwapped,
    Victim,
    VictimMove,
)
from rackwright.wire.ids import JobId, NodeId, Owner, PlanId, RackId, WorkerId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell
from tests.support.recovery import decided, drain

WHY = Reason(code="test")
PLAN = PlanId("p1")
A, B = JobId("a"), JobId("b")
COST = CostTerms(gpus=8, lost_h=0.0, restart_h=0.2, home_h=0.0, weight=1.0, repeats=0, total=1.6)


def part(rack: str, nodes: int, index: int = 0, rank: int = 0, gpus: int = 0) -> SlicePlacement:
    """A slice to be."""
    return SlicePlacement(index=index, first_rank=rank, rack=RackId(rack), nodes=nodes, gpus=gpus)


def victim(job: str = "b", *homes: SlicePlacement, membership: int = 2) -> Victim:
    """A job that makes room."""
    return Victim(
        job=JobId(job),
        membership=membership,
        move=VictimMove.RESTART,
        homes=homes or (part("r1", 0b1100),),
        cost=COST,
    )


def plan(*victims: Victim, **more: Any) -> DefragPlanned:
    """Rack r0 for job a."""
    fields: dict[str, Any] = {
        "plan": PLAN,
        "job": A,
        "membership": 1,
        "slices": (part("r0", 0xFF),),
        "victims": victims or (victim(),),
        "notice_s": 120.0,
        "expires_at": 2e6,
        "cost_gpu_h": 1.6,
        "benefit_gpu_h": 9.0,
        "reason": WHY,
    }
    return DefragPlanned(**{**fields, **more})


def fragmented(**spec: Any) -> Cell:
    """Job a wants a whole rack of 8; b sits on two nodes of r0, c on two of r1."""
    made = cell(2, nodes=8)
    made.sit("b", "r0", [0, 1], **spec)
    made.sit("c", "r1", [0, 1])
    made.queue("a", JobSpec(name=A, nodes=8))
    return made


def planned() -> Cell:
    """The plan is in flight."""
    made = fragmented()
    made.add(plan())
    return made


def withdraw(*spared: str, **more: Any) -> DefragWithdrawn:
    """The plan is off."""
    fields: dict[str, Any] = {"plan": PLAN, "spared": tuple(JobId(name) for name in spared)}
    return DefragWithdrawn(**{**fields, "reason": WHY, **more})


def legal(made: Cell, entry: Entry) -> str | None:
    """None, or why not."""
    return illegal(made.fleet, entry)


def after(made: Cell, entry: Entry) -> Any:
    """The fleet after a legal entry, checked."""
    assert illegal(made.fleet, entry) is None
    fleet = apply(made.fleet, entry)
    check(fleet)
    return fleet


# Planned


def test_plan_seats_victims_and_the_job_in_one_step() -> None:
    made = fragmented(grace_s=9.0)
    fleet = after(made, plan())
    blocked, moved = fleet.jobs[A], fleet.jobs[B]
    assert (blocked.state, blocked.slices[0].rack, blocked.plan) == (JobState.PLACED, 0, PLAN)
    assert (moved.state, moved.slices[0].rack, moved.plan) == (JobState.PLACED, 1, PLAN)
    assert moved.preempted == (made.fleet.time,)
    assert blocked.slices[0].gates == ((0, ("b/0/1",)), (1, ("b/1/1",)))
    assert moved.slices[0].gates == ((0, ("b/0/1",)), (1, ("b/1/1",)))
    assert [(one.notice_s, one.grace_s) for one in fleet.racks[0].leaving] == [(120.0, 9.0)] * 2
    assert fleet.plans[PLAN].notice_until == made.fleet.time + 120.0
    assert fleet.plan_times == (made.fleet.time,)


def test_plan_may_move_one_slice_of_a_victim_and_leave_the_others() -> None:
    made = cell(3, nodes=8)
    made.spread("b", [("r0", [0, 1]), ("r1", [0, 1])])
    made.queue("a", JobSpec(name=A, nodes=8))
    one = victim("b", part("r2", 0b11))
    fleet = after(made, plan(one))
    job = fleet.jobs[B]
    assert [part.incarnations for part in job.slices] == [(2, 2), (1, 1)]
    assert job.state is JobState.RUNNING


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (plan(), None),
        (plan(job=JobId("x")), "no job x"),
        (plan(job=JobId("c"), membership=2), "job c is running, must be queued"),
        (plan(membership=2), "membership 2 of a must be 1"),
        (plan(victim("x")), "no job x"),
        (plan(victim(membership=1)), "membership 1 of b must be 2"),
        (plan(victim("b", part("r1", 0b1100, 1))), "job b has no slice 1 at rank 0"),
        (plan(victim("b", part("r1", 0b1100, 0, 2))), "job b has no slice 0 at rank 2"),
        (plan(victim("b", part("r1", 0b100))), "the home of slice 0 of b has another size"),
        (plan(victim("b", part("r1", 0b110))), "node r1-n01 is taken"),
        (plan(victim("b", part("r0", 0b11))), "rack r0: a node is given twice"),
        (plan(victim("b", part("r9", 0b11))), "no rack r9"),
        (plan(victim(), victim("c", part("r1", 0b110000))), None),
        (plan(victim(), victim("c", part("r1", 0b1100))), "rack r1: a node is given twice"),
        (plan(slices=(part("r0", 0x7F),)), "7 ranks, 8 to 8 are wanted"),
        (plan(slices=(part("r9", 0xFF),)), "no rack r9"),
        (plan(slices=(part("r0", 0xFF, 1),)), "slice 1 at rank 0, expected 0 at 0"),
        (plan(slices=(part("r1", 0xFF),)), "node r1-n00 is taken"),
    ],
)
def test_plan_is_legal_or_not(entry: Entry, why: str | None) -> None:
    assert legal(fragmented(), entry) == why


def test_victim_is_named_once() -> None:
    made = fragmented()
    twice = plan(victim(), victim("b", part("r1", 0b110000)))
    assert legal(made, twice) == "a victim is named twice"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"job_class": JobClass.INTERACTIVE}, "job b is interactive"),
        ({"preemptible": False}, "job b is not preemptible and restartable"),
        ({"restartable": False}, "job b is not preemptible and restartable"),
    ],
)
def test_victim_must_be_movable(spec: dict[str, Any], why: str) -> None:
    assert legal(fragmented(**spec), plan()) == why


def test_finishing_job_is_no_victim() -> None:
    made = fragmented()
    made.add(JobFinishing(job=B))
    assert legal(made, plan()) == "job b is finishing"


def test_plan_id_and_victims_are_free_only_once() -> None:
    made = planned()
    made.queue("d", JobSpec(name=JobId("d"), nodes=2))
    more = {"job": JobId("d"), "slices": (part("r1", 0b110000),)}
    again = plan(victim("c", part("r1", 0b11000000)), **more)
    assert legal(made, again) == "plan p1 is in flight"
    other = plan(victim("b", part("r1", 0b11000000), membership=3), plan=PlanId("p2"), **more)
    assert legal(made, other) == "job b is part of plan p1"


def test_homes_must_be_fit() -> None:
    made = fragmented()
    made.unfit("r1-n02", Fitness.SOLO)
    assert legal(made, plan()) == "node r1-n02 is fit for solo, rack is needed"
    assert legal(made, plan(victim("b", part("r1", 0b11000)))) is None


# Withdrawn


def test_withdrawn_plan_gives_the_spared_their_workers_back() -> None:
    made = fragmented()
    before = made.job("b")
    made.add(plan())
    fleet = after(made, withdraw("b"))
    job = fleet.jobs[B]
    assert (job.state, job.slices, job.plan) == (JobState.RUNNING, before.slices, None)
    assert (job.membership, job.preempted) == (3, ())
    assert fleet.jobs[A].state is JobState.QUEUED
    assert sorted(fleet.leaving) == [
        *(f"a/{rank}/1" for rank in range(8)),
        "b/0/2",
        "b/1/2",
    ]
    assert not fleet.plans


def test_withdrawn_plan_leaves_others_at_their_homes() -> None:
    fleet = after(planned(), withdraw())
    job = fleet.jobs[B]
    assert (job.slices[0].rack, job.plan, job.state) == (1, None, JobState.PLACED)
    assert fleet.jobs[A].state is JobState.QUEUED


def test_unknown_plan_and_unknown_victim() -> None:
    made = planned()
    assert legal(made, withdraw(plan=PlanId("p9"))) == "no plan p9 is in flight"
    assert legal(made, withdraw("c")) == "c is no victim of p1"
    assert legal(made, withdraw("b")) is None


def gone(made: Cell, *workers: str) -> None:
    """These workers have ended, as their node says."""
    last = made.fleet.node(NodeId("r0-n00")).last
    ended = tuple(WorkerId(worker) for worker in workers)
    made.add(NodeCleaning(node=NodeId("r0-n00"), of=last, ended=ended))


def test_victim_that_has_stopped_cannot_be_spared() -> None:
    made = planned()
    gone(made, "b/1/1")
    assert legal(made, withdraw("b")) == "b/1/1 has ended"
    assert legal(made, withdraw()) is None


def test_victim_that_changed_or_ended_cannot_be_spared() -> None:
    made = planned()
    made.unfit("r1-n02")
    (swap,) = decided(made, "b")
    made.add(swap)
    assert legal(made, withdraw("b")) == "job b has changed since the plan"
    made = planned()
    made.add(JobCancelled(job=B, by=Owner("ann"), reason=WHY))
    assert legal(made, withdraw("b")) == "job b is cancelled"


def test_plan_whose_job_has_started_is_not_withdrawn() -> None:
    made = planned()
    gone(made, "b/0/1", "b/1/1")
    made.start("a")
    assert legal(made, withdraw()) == "job a has started"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("suspect", "node r0-n00 is not in service"),
        ("unfit", "node r0-n00 is fit for none only"),
        ("drain", "node r0-n00 is not in service"),
    ],
)
def test_spared_only_onto_nodes_that_are_still_good(fault: str, why: str) -> None:
    made = planned()
    match fault:
        case "suspect":
            made.suspect("r0-n00")
        case "unfit":
            made.unfit("r0-n00")
        case _:
            drain(made, "r0-n00")
    assert legal(made, withdraw("b")) == why


def test_spared_only_where_nobody_else_was_seated() -> None:
    made = planned()
    made.add(JobCancelled(job=A, by=Owner("ann"), reason=WHY))
    assert legal(made, withdraw("b")) is None
    made.sit("d", "r0", [0], start=False)
    assert legal(made, withdraw("b")) == "node r0-n00 is taken"


# Finished


def test_finished_plan_is_history() -> None:
    made = planned()
    gone(made, "b/0/1", "b/1/1")
    made.start("a")
    made.start("b")
    fleet = after(made, DefragFinished(plan=PLAN))
    assert (fleet.jobs[A].plan, fleet.jobs[B].plan) == (None, None)
    assert not fleet.plans
    assert legal(made, DefragFinished(plan=PlanId("p9"))) == "no plan p9 is in flight"


def test_failed_home_of_a_victim_climbs_the_ladder() -> None:
    made = planned()
    made.unfit("r1-n02")
    (entry,) = decided(made, "b")
    assert isinstance(entry, SliceSwapped)
    fleet = after(made, entry)
    assert fleet.jobs[B].plan == PLAN
    assert fleet.jobs[B].slices[0].gates_of(0) == ("b/0/1", "b/0/2")
