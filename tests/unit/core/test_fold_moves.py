"""What the fold makes of moves and restarts, and both outcomes of their rules."""

from typing import Any

import pytest

from rackwright.core.jobs import WoundKind
from rackwright.wire.entries.node import RackHeld
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from tests.support.entries import A, after, legal, moved, restarted, wounded
from tests.support.fleets import Cell, cell
from tests.support.recovery import cordon, crash, drain

# Moves


def test_move_takes_the_whole_slice_and_keeps_its_ranks() -> None:
    made = cell(3, nodes=8)
    made.spread("a", [("r0", range(4)), ("r1", range(4))])
    made.unfit("r1-n01")
    fleet = after(made, moved("r2", 0b1111, index=1))
    job = fleet.jobs[A]
    first, second = job.slices
    assert (first.incarnations, first.nodes) == ((1, 1, 1, 1), (0, 1, 2, 3))
    assert (second.rack, second.first_rank, second.incarnations) == (2, 4, (2, 2, 2, 2))
    assert [second.gates_of(rank) for rank in range(4, 8)] == [
        (f"a/{rank}/1",) for rank in range(4, 8)
    ]
    assert (job.move_count, job.moved_at, job.swap_count) == (1, made.fleet.time, 0)
    assert [one.node for one in job.swaps] == ["r1-n01"]
    assert fleet.racks[1].free == 0xFF
    assert job.wounds == ()


def test_move_of_a_failure_gives_healthy_ranks_grace_and_no_notice() -> None:
    made = wounded(checkpoint=Checkpoint(on_notice_s=20.0), grace_s=9.0)
    fleet = after(made, moved("r1", 0b1111))
    assert [(one.node, one.notice_s, one.grace_s) for one in fleet.racks[0].leaving] == [
        (0, 0.0, 9.0),
        (1, 0.0, 0.0),
        (2, 0.0, 9.0),
        (3, 0.0, 9.0),
    ]


def test_move_of_a_drain_gives_notice() -> None:
    made = cell(2, nodes=8)
    made.sit("a", "r0", range(4), checkpoint=Checkpoint(on_notice_s=20.0))
    drain(made, "r0-n01")
    fleet = after(made, moved("r1", 0b1111))
    assert {one.notice_s for one in fleet.racks[0].leaving} == {20.0}


def test_moved_part_of_a_node_keeps_its_share() -> None:
    made = cell(2, nodes=2)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.unfit("r0-n00")
    fleet = after(made, moved("r1", 0b10, gpus=0b1100))
    part = fleet.jobs[A].slices[0]
    assert (part.rack, part.mask, part.gpus) == (1, 0b10, 0b1100)
    assert fleet.racks[1].taken_gpus(1) == 0b1100


def test_moved_onto_spares_is_lent() -> None:
    made = wounded()
    fleet = after(made, moved("r1", 0b1111, lent=True))
    assert fleet.racks[1].lent == 0b1111
    assert not after(made, moved("r1", 0b1111)).racks[1].lent


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (moved("r1", 0b1111), None),
        (moved("r0", 0b11110000), None),
        (moved("r0", 0b11101), None),
        (moved("r0", 0b1111), "node r0-n01 is fit for none, rack is needed"),
        (moved("r1", 0b1111, membership=1), "membership 1 of a must be 2"),
        (moved("r1", 0b1111, index=3), "job a has no slice 3"),
        (moved("r9", 0b1111), "no rack r9"),
        (moved("r1", 0b111), "3 nodes for a slice of 4"),
        (moved("r1", 0b1111 << 6), "nodes 0x3c0 are not of rack r1"),
        (moved("r1", 0b1111, gpus=0b1), "GPUs 0x1 for a slice that has 0x0"),
        (moved("r2", 0b1111), "node r2-n00 is taken"),
        (moved("r2", 0b1111, evicted=(JobId("b"),)), None),
        (moved("r2", 0b1111, evicted=(JobId("b"), A)), "job a cannot evict itself"),
    ],
)
def test_move_is_legal_or_not(entry: Entry, why: str | None) -> None:
    made = wounded()
    made.sit("b", "r2", [0, 1])
    assert legal(made, entry) == why


def test_move_needs_a_wound_in_that_slice() -> None:
    made = cell(3, nodes=8)
    made.spread("a", [("r0", range(4)), ("r1", range(4))])
    made.unfit("r1-n01")
    assert legal(made, moved("r2", 0b1111)) == "slice 0 is not wounded"
    assert legal(made, moved("r2", 0b1111, index=1)) is None


def test_move_into_a_held_rack_is_not_legal() -> None:
    made = wounded()
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=made.fleet.time + 60))
    assert legal(made, moved("r1", 0b1111)) == "rack r1 is held"
    assert legal(made, moved("r2", 0b1111)) is None


def test_moved_part_of_a_node_needs_free_gpus() -> None:
    made = cell(2, nodes=2)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.sit("b", "r1", [0], gpus=0b0001)
    made.unfit("r0-n00")
    assert legal(made, moved("r1", 0b01, gpus=0b0110)) is None
    assert legal(made, moved("r1", 0b01, gpus=0b0011)) == "node r1-n00 is taken"
    assert legal(made, moved("r1", 0b01, gpus=0b0111)) == "GPUs 0x7 for a slice that has 0x3"
    assert legal(made, moved("r1", 0b11, gpus=0b0110)) == "2 nodes for a slice of 1"


# Restarts


def test_restart_raises_the_incarnation_of_its_ranks_only() -> None:
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4), retry_budget=1)
    crash(made, "a", 1, 2)
    job = after(made, restarted(1, 2, charge=True)).jobs[A]
    assert job.slices[0].incarnations == (1, 2, 2, 1)
    assert job.slices[0].gates == ()
    assert (job.wounds, job.retries, job.swaps) == ((), 1, ())


def test_restart_of_a_hung_rank_waits_for_its_end() -> None:
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4), grace_s=9.0)
    crash(made, "a", 1, code=None, why="progress-timeout")
    fleet = after(made, restarted(1))
    assert fleet.jobs[A].slices[0].gates == ((1, ("a/1/1",)),)
    assert [(one.worker, one.grace_s) for one in fleet.racks[0].leaving] == [("a/1/1", 9.0)]


def crashed(**spec: Any) -> Cell:
    """Job a on places 0 to 3 of r0, rank 1 without a process."""
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4), **spec)
    crash(made, "a", 1)
    return made


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (restarted(1), None),
        (restarted(1, membership=4), "membership 4 of a must be 2"),
        (restarted(1, index=1), "job a has no slice 1"),
        (restarted(0), "rank 0 has not lost its process"),
        (restarted(1, 0), "rank 0 has not lost its process"),
        (restarted(4), "rank 4 is not of slice 0"),
    ],
)
def test_restart_is_legal_or_not(entry: Entry, why: str | None) -> None:
    assert legal(crashed(), entry) == why


def test_restart_needs_a_node_that_is_good() -> None:
    made = crashed()
    made.suspect("r0-n01")
    assert legal(made, restarted(1)) == "node r0-n01 is suspected"
    made.clear("r0-n01")
    cordon(made, "r0-n01")
    assert legal(made, restarted(1)) is None
    drain(made, "r0-n01")
    assert legal(made, restarted(1)) == "node r0-n01 is drained"
    made = crashed()
    made.unfit("r0-n01")
    assert legal(made, restarted(1)) == "rank 1 has not lost its process"
    made = crashed()
    made.unfit("r0-n01", Fitness.SOLO)
    assert made.job("a").wounds[0].kind is WoundKind.NODE


# Wounds that go away


def test_recovered_node_is_no_wound_any_more() -> None:
    made = wounded()
    made.recover("r0-n01")
    assert made.job("a").wounds == ()
    assert not made.fleet.wounded


def test_recovered_node_leaves_a_lost_process() -> None:
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4))
    made.fail("r0-n01")
    made.join("r0-n01")
    made.recover("r0-n01")
    (wound,) = made.job("a").wounds
    assert (wound.kind, wound.ended, wound.charge) == (WoundKind.PROCESS, True, False)
    assert A not in made.fleet.fresh_faults


def test_node_that_is_still_too_weak_stays_a_wound() -> None:
    made = cell(2, nodes=8)
    made.spread("a", [("r0", range(4)), ("r1", range(4))])
    made.unfit("r0-n01")
    made.recover("r0-n01", fitness=Fitness.RACK)
    assert [wound.rank for wound in made.job("a").wounds] == [1]
