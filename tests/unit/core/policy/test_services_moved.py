"""A movable service is moved with the new instance before the old one goes, or it is not moved."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.core.legality import illegal
from rackwright.core.policy.defrag import Outcome, entry_of, judge
from rackwright.core.policy.victims import may_evict
from rackwright.core.projection import assignments
from rackwright.wire.entries.job import (
    JobCancelled,
    JobRequeued,
    JobShrunk,
    JobStarted,
    SlicePlacement,
)
from rackwright.wire.entries.node import NodeUncordoned
from rackwright.wire.entries.slice import DefragPlanned, SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, Owner, PlanId, RackId
from rackwright.wire.jobs import Group, JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash, decided, drain
from tests.unit.core.policy.defrag_cells import HOUR, block, fill, pass_time

MOVABLE: dict[str, Any] = {"job_class": JobClass.SERVICE, "movable": True}
WHY = Reason(code="test")


def lines(made: Cell, rack: str) -> tuple[set[str], set[str], set[str]]:
    """Workers of a rack that are told to run, that wait at a gate, that are told to end."""
    value = assignments(made.fleet, made.fleet.rack_numbers[RackId(rack)], set())
    run = [line for node in value.nodes.values() for line in node.run]
    stop: set[str] = {line.worker for node in value.nodes.values() for line in node.stop}
    return (
        {one.worker for one in run if one.open},
        {one.worker for one in run if not one.open},
        stop,
    )


def replicas(made: Cell, *places: int) -> None:
    """A service of one-node replicas on these places of r0."""
    group = Group(name=JobId("web"), nodes=1, replicas=len(places))
    made.queue("web", JobSpec(name=JobId("web"), groups=(group,), **MOVABLE))
    parts = (
        SlicePlacement(index=at, replica=at, first_rank=at, rack=RackId("r0"), nodes=1 << place)
        for at, place in enumerate(places)
    )
    made.place("web", tuple(parts))
    made.start("web")


# A drain


def test_on_a_drained_node_it_serves_on_until_its_successor_does() -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    drain(made, "r0-n00")
    (entry,) = decided(made, "web")
    assert isinstance(entry, SliceMoved | SliceSwapped)
    assert entry.overlaps
    made.add(entry)
    assert lines(made, "r0") == ({"web/0/2"}, set(), set())
    assert JobId("web") in made.fleet.leaving_of
    made.start("web")
    assert lines(made, "r0") == ({"web/0/2"}, set(), {"web/0/1"})


def test_one_that_has_not_been_up_serves_nobody_and_leaves_as_other_work_does() -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], start=False, **MOVABLE)
    drain(made, "r0-n00")
    (entry,) = decided(made, "web")
    assert not entry.overlaps
    made.add(entry)
    assert lines(made, "r0") == (set(), {"web/0/2"}, {"web/0/1"})


def test_nobody_is_put_where_the_old_one_serves_on() -> None:
    made = cell(1, 3)
    made.sit("web", "r0", [0], **MOVABLE)
    made.sit("other", "r0", [2], preemptible=False)
    drain(made, "r0-n00")
    made.add(*decided(made, "web"))
    made.add(NodeUncordoned(node=NodeId("r0-n00"), by=Owner("op")))
    made.unfit("r0-n01")
    (entry,) = decided(made, "web")
    assert isinstance(entry, JobRequeued), "its old node is free, but it waits for the new one"
    made.add(entry)
    assert lines(made, "r0") == ({"other/0/1"}, set(), {"web/0/1", "web/0/2"})


def test_where_there_is_no_room_it_stays_and_the_drain_waits() -> None:
    made = cell(1, 2)
    made.sit("web", "r0", [0], **MOVABLE)
    made.sit("other", "r0", [1])
    drain(made, "r0-n00")
    assert decided(made, "web") == []


def test_nodes_that_somebody_still_has_to_leave_are_no_room() -> None:
    made = cell(1, 2)
    made.sit("web", "r0", [0], **MOVABLE)
    made.sit("other", "r0", [1])
    made.add(JobCancelled(job=JobId("other"), by=Owner("ann"), reason=WHY))
    drain(made, "r0-n00")
    assert decided(made, "web") == []


@pytest.mark.parametrize("spec", [{"job_class": JobClass.SERVICE}, {}])
def test_other_work_leaves_a_drained_node_before_it_starts_elsewhere(spec: dict[str, Any]) -> None:
    made = cell(1, 4)
    made.sit("a", "r0", [0], **spec)
    drain(made, "r0-n00")
    (entry,) = decided(made)
    assert not entry.overlaps
    made.add(entry)
    assert lines(made, "r0") == (set(), {"a/0/2"}, {"a/0/1"})


def test_a_failed_node_is_answered_as_ever() -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    made.unfit("r0-n00")
    (entry,) = decided(made, "web")
    assert not entry.overlaps


@pytest.mark.parametrize("lose", [Cell.unfit, drain], ids=["fails", "is drained"])
def test_a_successor_that_fails_is_replaced_and_the_old_one_serves_on(
    lose: Callable[[Cell, str], None],
) -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    drain(made, "r0-n00")
    made.add(*decided(made, "web"))
    place = made.job("web").slices[0].nodes[0]
    lose(made, f"r0-n{place:02d}")
    (entry,) = decided(made, "web")
    assert not entry.overlaps
    made.add(entry)
    assert lines(made, "r0") == (set(), {"web/0/3"}, {"web/0/2"})
    made.start("web")  # so web/0/2 has ended
    assert lines(made, "r0") == ({"web/0/3"}, set(), {"web/0/1"})


@pytest.mark.parametrize("force", [False, True])
def test_when_the_service_ends_nobody_serves_on(force: bool) -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    drain(made, "r0-n00")
    made.add(*decided(made, "web"))
    made.add(JobCancelled(job=JobId("web"), by=Owner("ann"), reason=WHY, force=force))
    assert lines(made, "r0") == (set(), set(), {"web/0/1", "web/0/2"})


# What may not be


def whole_move(made: Cell, **more: Any) -> SliceMoved:
    rung = RungTaken(rung=Rung.FREE_RACK, taken=True, reason=WHY)
    return SliceMoved(
        **{
            "job": JobId("web"),
            "membership": 2,
            "index": 0,
            "rack": RackId("r1"),
            "nodes": 1,
            "planned": True,
            "overlaps": True,
            "rungs": (rung,),
            **more,
        }
    )


def test_it_is_for_movable_services_only() -> None:
    made = cell(2, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    assert illegal(made.fleet, whole_move(made)) is None
    made = cell(2, 4)
    made.sit("web", "r0", [0])
    assert illegal(made.fleet, whole_move(made)) == "job web is no service that is movable"


def test_it_is_for_free_nodes_only() -> None:
    made = cell(2, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    made.sit("gone", "r1", [0])
    made.add(JobCancelled(job=JobId("gone"), by=Owner("ann"), reason=WHY))
    assert illegal(made.fleet, whole_move(made)) == "node r1-n00 is not free yet"
    assert illegal(made.fleet, whole_move(made, overlaps=False)) is None


def test_a_part_of_a_replica_is_not_moved_so() -> None:
    made = cell(3, 4)
    made.spread("web", [("r0", range(2)), ("r1", range(1, 3))], slice_nodes=2, **MOVABLE)
    entry = whole_move(made, rack=RackId("r2"), nodes=3)
    assert illegal(made.fleet, entry) == "slice 0 of web is a part of its replica"


def test_a_swap_of_some_of_its_ranks_is_not_one() -> None:
    made = cell(1, 6)
    made.sit("web", "r0", range(2), **MOVABLE)
    drain(made, "r0-n00")
    (entry,) = decided(made, "web") or (None,)
    assert entry is None, "one rank of two is not moved alone, and there is no other rack"
    drain(made, "r0-n01")
    (entry,) = decided(made, "web")
    assert isinstance(entry, SliceSwapped)
    assert entry.overlaps
    some = replace(entry, swaps=entry.swaps[:1])
    assert illegal(made.fleet, some) == "only 1 of 2 ranks go"


# Plans


def plan_cell(**spec: Any) -> Cell:
    """r0 has a three-node service, r1 room for four, r2 is full: a 16-node job waits."""
    made = cell(3, policy=Policy())
    made.sit("web", "r0", range(3), **(MOVABLE | spec))
    fill(made, "r1", range(14))
    fill(made, "r2", range(18))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    return made


def planned(made: Cell) -> DefragPlanned | None:
    return entry_of(judge(made.fleet, made.job("p"), {}, made.fleet.time), PlanId("x"))


def test_a_plan_lets_it_serve_on_until_it_runs_at_home() -> None:
    made = plan_cell()
    entry = planned(made)
    assert entry is not None
    (victim,) = entry.victims
    assert (victim.job, victim.overlaps, victim.cost.lost_h) == ("web", True, 0.0)
    made.add(entry)
    assert made.job("web").state == "running"
    old = {f"web/{rank}/1" for rank in range(3)}
    run, _, stop = lines(made, "r1")
    assert {f"web/{rank}/2" for rank in range(3)} <= run
    _, gated, stop = lines(made, "r0")
    assert (stop, {line.partition("/")[0] for line in gated}) == (set(), {"p"})
    made.add(JobStarted(job=JobId("web"), membership=2))
    assert lines(made, "r0")[2] == old


def test_a_plan_waits_for_one_that_is_not_up() -> None:
    made = plan_cell(retry_budget=1)
    crash(made, "web", 1)
    made.add(*decided(made, "web"))
    assert planned(made) is None
    made.start("web")
    pass_time(made, HOUR)
    assert planned(made) is not None


def test_a_plan_that_has_no_free_home_for_it_is_none() -> None:
    made = plan_cell()
    made.sit("late", "r1", [14])
    made.add(JobCancelled(job=JobId("late"), by=Owner("ann"), reason=WHY))
    made.sit("later", "r1", [15], preemptible=False)
    assert judge(made.fleet, made.job("p"), {}, made.fleet.time).outcome is Outcome.NO_HOMES


def test_one_whose_replicas_have_several_slices_stays() -> None:
    made = cell(3)
    made.spread("web", [("r0", range(2)), ("r1", range(2))], slice_nodes=2, **MOVABLE)
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=18, slice_nodes=18)
    assert judge(made.fleet, made.job("p"), {}, made.fleet.time).outcome is Outcome.NO_WAY


def test_nobody_evicts_it() -> None:
    made = cell(2)
    made.sit("web", "r0", [0], priority=0, **MOVABLE)
    made.sit("batch", "r0", [1], priority=0)
    made.sit("high", "r1", [0], priority=90)
    pass_time(made, HOUR)
    now, high = made.fleet.time, made.job("high")
    assert may_evict(made.fleet, made.job("batch"), high, now)
    assert not may_evict(made.fleet, made.job("web"), high, now)


def test_a_node_that_is_lost_ends_what_served_on() -> None:
    made = cell(1, 4)
    made.sit("web", "r0", [0], **MOVABLE)
    drain(made, "r0-n00")
    made.add(*decided(made, "web"))
    made.fail("r0-n00")
    assert not made.fleet.leaving
    after = apply(made.fleet, JobStarted(job=JobId("web"), membership=2))
    assert not after.leaving


def test_of_several_replicas_only_the_one_on_the_drained_node_is_moved() -> None:
    made = cell(1, 4)
    replicas(made, 0, 1)
    drain(made, "r0-n01")
    made.add(*decided(made, "web"))
    assert lines(made, "r0") == ({"web/0/1", "web/1/2"}, set(), set())
    made.start("web")
    assert lines(made, "r0") == ({"web/0/1", "web/1/2"}, set(), {"web/1/1"})


def test_a_replica_that_is_given_up_takes_its_old_worker_along() -> None:
    made = cell(1, 3)
    replicas(made, 0, 1)
    drain(made, "r0-n01")
    made.add(*decided(made, "web"))
    made.unfit("r0-n02")
    (entry,) = decided(made, "web")
    assert isinstance(entry, JobShrunk)
    made.add(entry)
    assert lines(made, "r0") == ({"web/0/1"}, set(), {"web/1/1", "web/1/2"})
