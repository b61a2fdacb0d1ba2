"""Replicas of a service leave drained nodes in turn, so that enough of them serve on."""

from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.core.policy.spares import drain_waits, holds
from rackwright.core.policy.turns import least_serving
from rackwright.core.reasons import sentence
from rackwright.wire.entries.job import JobShrunk, SlicePlacement
from rackwright.wire.entries.node import MaintenanceScheduled, NodeCordoned
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Group, JobClass, JobSpec
from tests.support.fleets import Cell, cell, node_name
from tests.support.recovery import crash, decided, drain

WEB = JobId("web")
R0 = RackId("r0")


def service(
    replicas: int, least: int | None = None, *, racks: int = 2, start: bool = True, **spec: Any
) -> Cell:
    """A service of two-node replicas, all of them in r0; the other racks are free."""
    made = cell(racks, nodes=2 * replicas + 2)
    group = Group(name=WEB, nodes=2, replicas=replicas, min_replicas=least)
    fields: dict[str, Any] = {"job_class": JobClass.SERVICE, **spec}
    made.queue("web", JobSpec(name=WEB, groups=(group,), **fields))
    parts = (
        SlicePlacement(
            index=at, replica=at, first_rank=2 * at, rack=RackId("r0"), nodes=3 << 2 * at
        )
        for at in range(replicas)
    )
    made.place("web", tuple(parts))
    if start:
        made.start("web")
    return made


def drain_all(made: Cell, rack: str = "r0") -> None:
    """The whole rack is to be left."""
    nodes = len(made.rack(rack).nodes)
    made.add(
        *(NodeCordoned(node=node_name(rack, at), drain=True, by=Owner("op")) for at in range(nodes))
    )


def leave(made: Cell) -> list[int]:
    """The replicas that go now."""
    entries = decided(made, "web")
    assert all(isinstance(one, SliceMoved | SliceSwapped) for one in entries)
    found = [one.index for one in entries]
    for entry in entries:
        made.add(entry)
    return found


def serving(made: Cell) -> int:
    """Replicas of which every rank is where it was when the job ran last."""
    job = made.job("web")
    return sum(max(part.incarnations) <= job.started for part in job.slices)


@pytest.mark.parametrize(
    ("least", "rounds"),
    [
        (None, [[0], [1], [2], [3]]),
        (4, [[0], [1], [2], [3]]),
        (3, [[0], [1], [2], [3]]),
        (2, [[0, 1], [2, 3]]),
        (1, [[0, 1, 2], [3]]),
    ],
)
def test_a_rack_is_left_replica_after_replica(least: int | None, rounds: list[list[int]]) -> None:
    made = service(4, least)
    drain_all(made)
    keep = least_serving(made.job("web"), 0)
    for expected in rounds:
        assert leave(made) == expected
        assert serving(made) >= keep
        assert leave(made) == [], "nobody goes before those who went are up"
        made.start("web")
    assert leave(made) == []
    assert {part.rack for part in made.job("web").slices} == {made.fleet.rack_numbers[RackId("r1")]}


def test_one_drained_node_is_left_at_once() -> None:
    made = service(2)
    drain(made, "r0-n02")
    assert leave(made) == [1]


@pytest.mark.parametrize("spec", [{"movable": True}, {"job_class": JobClass.BATCH}])
def test_only_services_that_stop_to_move_take_turns(spec: dict[str, Any]) -> None:
    """One that is moved new before old serves on anyway, and batch needs all its groups."""
    made = service(3, **spec)
    drain_all(made)
    assert leave(made) == [0, 1, 2]


def test_the_last_replica_that_is_left_goes() -> None:
    made = service(1)
    drain_all(made)
    assert leave(made) == [0]


def test_where_nobody_serves_yet_nobody_waits() -> None:
    made = service(3, start=False)
    drain_all(made)
    assert leave(made) == [0, 1, 2]


def test_a_replica_that_is_down_goes_at_once_and_the_others_wait_for_it() -> None:
    made = service(3, 2)
    made.unfit("r0-n02")
    drain_all(made)
    entries = decided(made, "web")
    assert {one.index for one in entries} == {1}
    for entry in entries:
        made.add(entry)
    assert leave(made) == []
    made.start("web")
    assert leave(made) == [0]


def test_a_decision_that_was_refused_does_not_hold_when_another_replica_fell_meanwhile() -> None:
    made = service(2)
    drain(made, "r0-n00")
    (entry,) = decided(made, "web")
    assert holds(made.fleet, entry, made.fleet.time)
    crash(made, "web", 2)
    assert not holds(made.fleet, entry, made.fleet.time)


def test_what_is_waited_for_is_told() -> None:
    made = service(3, 2)
    drain_all(made)
    assert drain_waits(made.fleet, made.job("web"), 0, made.fleet.time) is None
    assert leave(made) == [0]
    made.wait(40.0)
    reason = drain_waits(made.fleet, made.job("web"), 1, made.fleet.time)
    assert reason is not None
    assert sentence(reason) == (
        "replica 1 of web leaves when replica 0 is up, awaited for 40 s:"
        " 2 of 3 serve, and 2 must; drained 40 s ago"
    )
    made.start("web")
    assert drain_waits(made.fleet, made.job("web"), 1, made.fleet.time) is None
    assert drain_waits(made.fleet, made.job("web"), 0, made.fleet.time) is None


# Maintenance


def window(made: Cell, in_s: float, *racks: str) -> None:
    begin = made.fleet.time + in_s
    names = tuple(RackId(name) for name in racks)
    made.add(MaintenanceScheduled(racks=names, begin=begin, end=begin + 1e4, by=Owner("op")))


def test_in_a_window_that_has_begun_all_go_at_once() -> None:
    made = service(3)
    window(made, 100.0, "r0")
    drain_all(made)
    assert leave(made) == [0]
    made.wait(101.0)
    assert leave(made) == [1, 2]


def test_only_nodes_in_the_window_count() -> None:
    made = service(3, racks=3)
    window(made, 100.0, "r2")
    drain_all(made)
    made.wait(101.0)
    assert leave(made) == [0]


def given_up(made: Cell) -> list[int]:
    """Replicas that go into the queue alone."""
    entries = decided(made, "web")
    assert all(isinstance(one, JobShrunk) for one in entries)
    for entry in entries:
        assert (entry.reason.code, len(entry.indexes)) == ("maintenance", 1)
        made.add(entry)
    return [one.indexes[0] for one in entries]


def test_replicas_without_a_place_are_given_up_in_turn_and_the_rest_when_it_begins() -> None:
    made = service(3, 2, racks=1)
    window(made, 400.0, "r0")
    drain_all(made)
    made.wait(99.0)
    assert given_up(made) == []
    made.wait(2.0)
    assert given_up(made) == [0]
    assert made.job("web").state is JobState.RUNNING
    made.start("web")
    assert given_up(made) == [], "two must serve until it begins"
    made.wait(300.0)
    assert given_up(made) == [1], "the last takes the job along, and that is the placer's work"


def test_a_replica_of_several_slices_leaves_whole() -> None:
    made = cell(2, nodes=4)
    group = Group(name=WEB, nodes=4, replicas=2)
    made.queue("web", JobSpec(name=WEB, groups=(group,), slice_nodes=2, job_class=JobClass.SERVICE))
    places = [("r0", 3), ("r0", 12), ("r1", 3), ("r1", 12)]
    parts = (
        SlicePlacement(index=at, replica=at // 2, first_rank=2 * at, rack=RackId(rack), nodes=mask)
        for at, (rack, mask) in enumerate(places)
    )
    made.place("web", tuple(parts))
    made.start("web")
    window(made, 100.0, "r0")
    drain_all(made)
    made.wait(101.0)
    (entry,) = decided(made, "web")
    assert isinstance(entry, JobShrunk)
    assert entry.indexes == (0, 1)
