"""Entries of the noun `slice`: what the fold makes of them, and both outcomes of every rule."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.core.invariants import check
from rackwright.core.jobs import JobState, WoundKind
from rackwright.core.legality import illegal
from rackwright.wire.entries.job import JobFinishing
from rackwright.wire.entries.node import RackHeld
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import Cell, cell
from tests.support.recovery import cordon, crash, drain

RUNGS = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="test")),)
A = JobId("a")


def wounded(**spec: Any) -> Cell:
    """Job a on places 0 to 3 of r0, its node at 1 bad; three racks."""
    made = cell(3, nodes=8)
    made.sit("a", "r0", range(4), **spec)
    made.unfit("r0-n01")
    return made


def swapped(*swaps: tuple[int, int, int], **more: Any) -> SliceSwapped:
    """Ranks with their old and new places."""
    made = tuple(NodeSwap(rank=rank, old=old, new=new) for rank, old, new in swaps)
    fields = {"job": A, "membership": 2, "index": 0, "swaps": made, "rungs": RUNGS, **more}
    return SliceSwapped(**fields)


def moved(rack: str, nodes: int, **more: Any) -> SliceMoved:
    """The slice goes there."""
    fields = {"job": A, "membership": 2, "index": 0, "rack": RackId(rack), "nodes": nodes}
    return SliceMoved(**{**fields, "rungs": RUNGS, **more})


def restarted(*ranks: int, **more: Any) -> SliceRestarted:
    """These ranks start anew where they are."""
    fields = {"job": A, "membership": 2, "index": 0, "ranks": ranks, "charge": False}
    return SliceRestarted(**{**fields, "rungs": RUNGS, **more})


def after(made: Cell, entry: Entry) -> Any:
    """The fleet after a legal entry, checked."""
    assert illegal(made.fleet, entry) is None
    fleet = apply(made.fleet, entry)
    check(fleet)
    return fleet


# What the fold makes of a swap


def test_swap_changes_one_rank_and_nothing_else() -> None:
    made = wounded()
    before = made.job("a")
    fleet = after(made, swapped((1, 1, 5)))
    job = fleet.jobs[A]
    part = job.slices[0]
    assert (part.nodes, part.mask) == ((0, 5, 2, 3), 0b101101)
    assert part.incarnations == (1, 2, 1, 1)
    assert (job.membership, job.started, job.state) == (2, 1, JobState.RUNNING)
    assert (job.wounds, job.retries, job.swap_count) == ((), before.retries, 1)
    assert A not in fleet.wounded
    assert A not in fleet.fresh_faults
    assert A in fleet.starting


def test_swap_gates_the_new_worker_on_the_old_one_without_grace() -> None:
    made = wounded(grace_s=9.0)
    fleet = after(made, swapped((1, 1, 5)))
    assert fleet.jobs[A].slices[0].gates == ((1, ("a/1/1",)),)
    assert [(one.worker, one.node, one.grace_s) for one in fleet.racks[0].leaving] == [
        ("a/1/1", 1, 0.0)
    ]


def test_fenced_node_leaves_nobody_to_wait_for() -> None:
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4))
    made.fail("r0-n01")
    fleet = after(made, swapped((1, 1, 5)))
    assert fleet.jobs[A].slices[0].gates == ()
    assert not fleet.leaving


def test_drained_node_gets_notice_and_grace() -> None:
    made = cell(1, nodes=8)
    made.sit("a", "r0", range(4), checkpoint=Checkpoint(on_notice_s=20.0), grace_s=9.0)
    drain(made, "r0-n01")
    fleet = after(made, swapped((1, 1, 5)))
    assert [(one.notice_s, one.grace_s) for one in fleet.racks[0].leaving] == [(20.0, 9.0)]


def test_swap_remembers_the_node_and_the_signal() -> None:
    made = wounded()
    job = after(made, swapped((1, 1, 5))).jobs[A]
    assert [(one.node, one.code, one.at) for one in job.swaps] == [
        ("r0-n01", "xid.79", made.fleet.time)
    ]


def test_evicted_job_is_queued_and_waited_for() -> None:
    made = wounded()
    made.sit("b", "r0", [5], checkpoint=Checkpoint(on_notice_s=90.0), grace_s=3.0)
    fleet = after(made, swapped((1, 1, 5), evicted=(JobId("b"),)))
    evicted = fleet.jobs[JobId("b")]
    assert (evicted.state, evicted.requeues, evicted.retries) == (JobState.QUEUED, 1, 0)
    assert evicted.preempted == (made.fleet.time,)
    assert evicted.reason == Reason(code="evicted", numbers={"by": "a"})
    assert fleet.jobs[A].slices[0].gates == ((1, ("a/1/1", "b/0/1")),)
    told = fleet.racks[0].leaving[0]
    assert (told.worker, told.notice_s, told.grace_s) == ("b/0/1", 30.0, 3.0)


def test_evicted_from_a_lent_spare_has_grace_only() -> None:
    made = wounded()
    made.sit("b", "r0", [5], lent=True, checkpoint=Checkpoint(on_notice_s=9.0), grace_s=60.0)
    told = after(made, swapped((1, 1, 5), evicted=(JobId("b"),))).racks[0].leaving[0]
    assert (told.worker, told.notice_s, told.grace_s) == ("b/0/1", 0.0, 5.0)


def test_second_swap_of_a_rank_waits_for_both_earlier_workers() -> None:
    made = wounded()
    made.add(swapped((1, 1, 5)))
    made.unfit("r0-n05")
    fleet = after(made, swapped((1, 5, 6), membership=3))
    assert fleet.jobs[A].slices[0].gates == ((1, ("a/1/1", "a/1/2")),)


# Both outcomes of every rule


def legal(made: Cell, entry: Entry) -> str | None:
    """None, or why not."""
    return illegal(made.fleet, entry)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (swapped((1, 1, 5)), None),
        (swapped((1, 1, 5), job=JobId("x")), "no job x"),
        (swapped((1, 1, 5), membership=3), "membership 3 of a must be 2"),
        (swapped((1, 1, 5), membership=1), "membership 1 of a must be 2"),
        (swapped((1, 1, 5), index=1), "job a has no slice 1"),
        (swapped((1, 2, 5)), "rank 1 is not on node 2 of slice 0"),
        (swapped((4, 4, 5)), "rank 4 is not on node 4 of slice 0"),
        (swapped((0, 0, 5)), "rank 0 is not wounded"),
        (swapped((1, 1, 5), (1, 1, 5)), "node 5 is given twice"),
        (swapped((1, 1, 8)), "rack r0 has no node 8"),
        (swapped((1, 1, 1)), "node r0-n01 is fit for none, rack is needed"),
        (swapped((1, 1, 2)), "node r0-n02 is taken"),
        (swapped((1, 1, 5), evicted=(A,)), "job a cannot evict itself"),
        (swapped((1, 1, 5), evicted=(JobId("x"),)), "no job x"),
    ],
)
def test_swap_is_legal_or_not(entry: Entry, why: str | None) -> None:
    assert legal(wounded(), entry) == why


def test_swap_needs_a_job_that_may_be_recovered() -> None:
    made = wounded()
    made.add(JobFinishing(job=A))
    assert legal(made, swapped((1, 1, 5))) == "job a is finishing, must be placed or running"
    made = wounded()
    made.finish("a")
    assert legal(made, swapped((1, 1, 5))) == "job a is finished"
    made = wounded(restartable=False)
    assert legal(made, swapped((1, 1, 5))) == "job a is not restartable"


def test_swap_needs_a_node_in_service() -> None:
    made = wounded()
    made.suspect("r0-n05")
    cordon(made, "r0-n06")
    made.fail("r0-n07")
    assert legal(made, swapped((1, 1, 5))) == "node r0-n05 is suspected"
    assert legal(made, swapped((1, 1, 6))) == "node r0-n06 is cordoned"
    assert legal(made, swapped((1, 1, 7))) == "node r0-n07 has no session"
    made.clear("r0-n05")
    assert legal(made, swapped((1, 1, 5))) is None


def test_swap_across_racks_needs_a_node_fit_for_it() -> None:
    made = cell(2, nodes=8)
    made.spread("a", [("r0", range(4)), ("r1", range(4))])
    made.unfit("r0-n01")
    made.unfit("r0-n05", Fitness.RACK)
    assert legal(made, swapped((1, 1, 5))) == "node r0-n05 is fit for rack, full is needed"
    assert legal(made, swapped((1, 1, 6))) is None


def test_swap_of_part_of_a_node_is_a_move() -> None:
    made = cell(1, nodes=2)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.unfit("r0-n00")
    assert legal(made, swapped((0, 0, 1))) == "part of a node is not swapped, it is moved"


def test_swap_in_a_held_rack_waits_for_its_release() -> None:
    made = wounded()
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("op"), until=made.fleet.time + 60))
    assert legal(made, swapped((1, 1, 5))) == "rack r0 is held"
    made.wait(61)
    assert legal(made, swapped((1, 1, 5))) is None


@pytest.mark.parametrize(
    ("victim", "why"),
    [
        ({}, None),
        ({"preemptible": False}, "job b is not preemptible and restartable"),
        ({"restartable": False}, "job b is not preemptible and restartable"),
        ({"job_class": JobClass.INTERACTIVE}, "job b is interactive"),
    ],
)
def test_who_may_be_evicted(victim: dict[str, Any], why: str | None) -> None:
    made = wounded()
    made.sit("b", "r0", [5], **victim)
    assert legal(made, swapped((1, 1, 5), evicted=(JobId("b"),))) == why
    assert legal(made, moved("r0", 0b11101000, evicted=(JobId("b"),))) == why


def test_nobody_is_evicted_twice_or_out_of_the_queue() -> None:
    made = wounded()
    made.sit("b", "r0", [5])
    twice = swapped((1, 1, 5), evicted=(JobId("b"), JobId("b")))
    assert legal(made, twice) == "a job is evicted twice"
    made.queue("q", replace(made.job("b").spec, name=JobId("q")))
    queued = swapped((1, 1, 5), evicted=(JobId("q"),))
    assert str(legal(made, queued)).startswith("job q is queued")
    made.add(JobFinishing(job=JobId("b")))
    finishing = swapped((1, 1, 5), evicted=(JobId("b"),))
    assert legal(made, finishing) == "job b is finishing"


def test_evicted_nodes_are_free_for_the_swap_and_others_are_not() -> None:
    made = wounded()
    made.sit("b", "r0", [5])
    made.sit("c", "r0", [6])
    assert legal(made, swapped((1, 1, 5), evicted=(JobId("b"),))) is None
    assert legal(made, swapped((1, 1, 6), evicted=(JobId("b"),))) == "node r0-n06 is taken"


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
