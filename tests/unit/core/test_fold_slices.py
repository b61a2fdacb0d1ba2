"""Entries of the noun `slice`: what the fold makes of them, and both outcomes of every rule."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobFinishing
from rackwright.wire.entries.node import RackHeld
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Reason
from tests.support.entries import A, after, legal, moved, swapped, wounded
from tests.support.fleets import cell
from tests.support.recovery import cordon, drain

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
