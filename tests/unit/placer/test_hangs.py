"""A job that makes no progress is given up after the time its owner has set, and not before."""

import pytest

from rackwright.core.jobs import WoundKind
from rackwright.core.policy.spares import recover
from rackwright.wire.entries.job import JobFailed, WorkerFailed
from rackwright.wire.entries.node import NodeCordoned
from rackwright.wire.entries.slice import SliceRestarted
from rackwright.wire.ids import NodeId, Owner
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    made = desk(cell(1))
    made.started("a", nodes=2, progress_timeout_s=60.0, retry_budget=1)
    return made


def test_progress_of_one_rank_is_enough(at: Desk) -> None:
    for _ in range(3):
        assert at.live(50) == []
        at.progress("a", 1)
    assert at.live(59) == []


def test_all_ranks_of_a_job_that_hangs_are_given_up_and_one_pays(at: Desk) -> None:
    at.wait(10.0)
    at.progress("a", 1)
    assert at.live(59) == []
    said = [one for one in at.live(6) if isinstance(one, WorkerFailed)]
    assert [(one.rank, one.code, one.reason.code) for one in said] == [
        (0, None, "progress-timeout"),
        (1, None, "progress-timeout.peer"),
    ]
    assert said[0].reason.numbers["since_s"] == pytest.approx(60.0, abs=6.0)
    wounds = at.cell.job("a").wounds
    assert [(one.charge, one.ended) for one in wounds] == [(True, False), (False, False)]
    (entry,) = recover(at.fleet, at.cell.job("a"), at.fleet.time)
    assert isinstance(entry, SliceRestarted)
    assert (entry.ranks, entry.charge) == ((0, 1), True)
    at.other(entry)
    assert at.cell.job("a").retries == 1
    assert len(at.cell.rack("r0").leaving) == 2


def test_with_no_tries_left_it_has_failed() -> None:
    made = desk(cell(1))
    made.started("a", nodes=1, progress_timeout_s=60.0)
    (failed,) = made.live(66)
    assert isinstance(failed, JobFailed)
    assert failed.reason.code == "progress-timeout"


def test_a_clock_that_is_ahead_counts_as_now(at: Desk) -> None:
    at.progress("a", 0, at.fleet.time + 1e6)
    assert at.live(30) == []
    at.progress("a", 0, at.fleet.time)
    assert at.live(59) == []


def test_a_job_that_sets_none_may_be_silent_for_ever() -> None:
    made = desk(cell(1))
    made.started("a", nodes=1)
    assert made.live(300) == []


def test_one_that_is_being_healed_is_not_watched(at: Desk) -> None:
    at.cell.unfit("r0-n00")
    at.folded()
    assert at.live(120) == []


def drained(spares: bool) -> Desk:
    """A job that is to leave a node, and has a better place for that rank or none."""
    made = desk(cell(1, nodes=3 if spares else 2))
    made.started("a", nodes=2, progress_timeout_s=60.0, retry_budget=1)
    made.other(NodeCordoned(node=NodeId("r0-n01"), drain=True, by=Owner("op")))
    return made


def test_one_that_has_still_to_leave_a_drained_node_is_watched() -> None:
    made = drained(spares=False)
    for _ in range(3):
        assert made.live(50) == []
        made.progress("a", 1)
    assert made.live(59) == []
    said = [one for one in made.live(6) if isinstance(one, WorkerFailed)]
    assert [(one.rank, one.reason.code) for one in said] == [
        (0, "progress-timeout"),
        (1, "progress-timeout.peer"),
    ]
    kinds = [(one.rank, one.kind) for one in made.cell.job("a").wounds]
    assert kinds == [(0, WoundKind.PROCESS), (1, WoundKind.PROCESS)]


def test_what_hangs_on_a_drained_node_starts_anew_on_another() -> None:
    made = drained(spares=True)
    made.live(66)
    entries = recover(made.fleet, made.cell.job("a"), made.fleet.time)
    for entry in entries:
        made.other(entry)
    while more := recover(made.fleet, made.cell.job("a"), made.fleet.time):
        made.other(*more)
    job = made.cell.job("a")
    assert (job.wounds, job.retries) == ((), 1)
    assert job.slices[0].nodes == (0, 2)


def test_while_a_rank_is_on_its_way_to_another_node_nobody_is_watched() -> None:
    made = drained(spares=True)
    (swap,) = recover(made.fleet, made.cell.job("a"), made.fleet.time)
    made.other(swap)
    assert made.live(50) == []  # the new rank has until swap_start_s
    assert not made.cell.job("a").all_run
