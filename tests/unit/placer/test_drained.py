"""Ranks on drained nodes run on, and are judged like others, until they leave."""

import pytest

from rackwright.core.jobs import WoundKind
from rackwright.wire.entries.node import NodeCordoned
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.reasons import Reason, Rung, RungTaken
from rackwright.wire.signals import WorkerState
from tests.support.fleets import cell, node_name
from tests.unit.placer.desk import Desk, desk, failures

A = JobId("a")


@pytest.fixture
def at() -> Desk:
    """Job a runs on two nodes that are both to be left."""
    made = desk(cell(1, nodes=4))
    made.started("a", nodes=2, retry_budget=2)
    drain(made, 0, 1)
    return made


def drain(at: Desk, *places: int) -> None:
    nodes = [node_name("r0", place) for place in places]
    at.other(*(NodeCordoned(node=node, drain=True, by=Owner("op")) for node in nodes))


def swap(at: Desk) -> None:
    """Rank 1 has found a place, rank 0 has not."""
    why = RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="spare"))
    one = NodeSwap(rank=1, old=1, new=2)
    at.other(SliceSwapped(job=A, membership=2, index=0, swaps=(one,), rungs=(why,)))


def test_the_job_has_started_anew_though_a_rank_is_still_to_leave(at: Desk) -> None:
    swap(at)
    assert at.run() == []
    at.worker("a", 1, WorkerState.RUNNING)
    assert at.types() == ["job.started"]
    assert [(one.rank, one.kind) for one in at.cell.job("a").wounds] == [(0, WoundKind.DRAIN)]


def test_not_while_a_rank_has_lost_its_node(at: Desk) -> None:
    swap(at)
    at.worker("a", 1, WorkerState.RUNNING)
    at.cell.unfit("r0-n00")
    at.folded()
    assert at.run() == []


def test_an_exit_on_a_drained_node_is_told(at: Desk) -> None:
    at.worker("a", 0, WorkerState.EXITED, 1)
    assert at.run() == []
    at.wait(45.0)
    assert failures(at.run()) == [(0, "exit.1")]
    kinds = [(one.rank, one.kind) for one in at.cell.job("a").wounds]
    assert kinds == [(0, WoundKind.PROCESS), (1, WoundKind.DRAIN)]


def test_a_rank_whose_next_node_is_drained_before_it_starts_has_a_time_limit_too(at: Desk) -> None:
    swap(at)
    drain(at, 2)
    at.worker("a", 1, WorkerState.EXITED, -9, incarnation=1)
    assert at.live(59) == []
    assert failures(at.live(6)) == [(1, "start-timeout")]
