"""What operators may stop and end: the whole cell, the breaker, a job by force."""

import pytest

from rackwright.core.machine import WakeAt
from rackwright.core.policy.breaker import breaker_open
from rackwright.core.reasons import sentence
from rackwright.wire.entries.cell import AutomationPaused, BreakerClosed, WishRefused
from rackwright.wire.entries.job import JobCancelled
from rackwright.wire.entries.node import RackHeld
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.wishes import Cancel, CloseBreaker, HoldRack, Pause, Resume, Swap, Unpause
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def codes(entries: list[Entry]) -> list[str]:
    """Codes of refusals."""
    return [one.reason.code for one in entries if isinstance(one, WishRefused)]


def test_a_cell_that_is_read_only_grants_nothing_but_the_end_of_it(at: Desk) -> None:
    at.wish(Pause(automation=Automation.ALL, for_s=60.0), owner="op")
    at.run()
    at.submit("a", nodes=1)
    at.wish(Cancel(job=JobId("b")))
    assert codes(at.run()) == ["read-only", "read-only"]
    at.wish(Unpause(automation=Automation.ALL), owner="op")
    at.submit("a", nodes=1)
    assert [one.TYPE for one in at.run()] == ["automation.resumed", "job.queued", "job.placed"]


def test_a_cell_that_is_read_only_places_nothing_that_waits_and_acts_when_it_is_over() -> None:
    made = cell(1)
    made.queue("a", JobSpec(name=JobId("a"), nodes=1))
    at = desk(made)
    until = made.fleet.time + 60.0
    at.other(AutomationPaused(automation=Automation.ALL, until=until, by=Owner("op")))
    (wake,) = at.turn()
    assert wake == WakeAt(mono=at.mono + 60.0)
    at.cell.wait(60.0)
    at.folded()
    assert [one.TYPE for one in at.run()] == ["job.placed"]


def test_the_breaker_is_closed_by_hand_only_when_it_is_open() -> None:
    made = cell(1, policy=Policy(breaker_min=2))
    at = desk(made)
    made.unfit("r0-n00")
    at.folded()
    at.wish(CloseBreaker(), owner="op")
    (no,) = at.run()
    assert isinstance(no, WishRefused)
    assert (no.reason.code, no.reason.numbers) == ("breaker-not-open", {"culprits": 1, "limit": 2})
    made.unfit("r0-n01")
    at.folded()
    assert breaker_open(at.fleet, at.fleet.time)
    at.wish(CloseBreaker(why="it is real"), owner="op")
    (closed,) = at.run()
    assert isinstance(closed, BreakerClosed)
    assert (closed.culprits, closed.by, closed.why) == (2, "op", "it is real")
    assert not breaker_open(at.fleet, at.fleet.time)
    assert (at.fleet.closed_by, at.fleet.closed_at) == ("op", at.fleet.time)


def test_by_force_a_job_ends_without_grace_also_when_it_has_been_given_some(at: Desk) -> None:
    at.cell.sit("a", "r0", [0], grace_s=600.0)
    at.folded()
    at.wish(Cancel(job=JobId("a")))
    at.run()
    assert [one.grace_s for one in at.cell.rack("r0").leaving] == [600.0]
    at.wish(Cancel(job=JobId("a")))
    assert codes(at.run()) == ["already-ended"]
    at.wish(Cancel(job=JobId("a"), force=True))
    (again,) = at.run()
    assert isinstance(again, JobCancelled)
    assert again.force
    assert [one.grace_s for one in at.cell.rack("r0").leaving] == [0.0]


def test_by_force_a_job_that_lives_ends_at_once_and_one_that_is_gone_is_refused(at: Desk) -> None:
    at.cell.sit("a", "r0", [0], grace_s=600.0)
    at.folded()
    at.wish(Cancel(job=JobId("a"), force=True))
    at.run()
    assert [one.grace_s for one in at.cell.rack("r0").leaving] == [0.0]
    at.cell.join("r0-n00")
    at.folded()
    at.wish(Cancel(job=JobId("a"), force=True))
    assert codes(at.run()) == ["already-ended"]


def test_a_job_that_has_ended_is_not_resumed_and_says_so(at: Desk) -> None:
    at.cell.sit("a", "r0", [0, 1])
    at.cell.finish("a")
    at.folded()
    at.wish(Resume(job=JobId("a")))
    at.wish(Resume(job=JobId("b")))
    told = [sentence(one.reason) for one in at.run() if isinstance(one, WishRefused)]
    assert told == ["the job is finished, only suspended ones are resumed", "there is no job b"]


def test_a_swap_in_a_job_that_has_ended_says_so(at: Desk) -> None:
    at.cell.sit("a", "r0", [0, 1])
    at.cell.finish("a")
    at.folded()
    at.wish(Swap(job=JobId("a"), rank=0))
    at.wish(Swap(job=JobId("b"), rank=0))
    said = at.run()
    assert codes(said) == ["swap.not-running", "unknown-job"]
    assert isinstance(said[0], WishRefused)
    assert said[0].reason.numbers == {"state": "finished"}


@pytest.mark.parametrize("ago", [0.0, 3600.0])
def test_a_hold_lasts_as_long_as_was_asked_though_the_clock_was_set_back(
    at: Desk, ago: float
) -> None:
    at.wish(HoldRack(rack=RackId("r0"), for_s=60.0), ago=ago)
    now = at.fleet.time
    assert [one.until for one in at.run() if isinstance(one, RackHeld)] == [now + 60.0]
