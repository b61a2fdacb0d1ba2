"""Running jobs that lack slices get them before the queued jobs of their priority."""

import pytest

from rackwright.core.machine import Offer
from rackwright.core.policy.spares import recover
from rackwright.wire.entries.job import JobCancelled, JobGrown, JobPlaced
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import Group, JobClass
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import WorkerState
from tests.support.fleets import cell, rack_spec
from tests.unit.placer.desk import Desk, desk


@pytest.fixture
def at() -> Desk:
    """Job a has lost one of its two slices; job b, which nobody moves, has the other rack."""
    at = desk(cell(3, nodes=4))
    at.started("a", nodes=8, slice_nodes=4, min_slices=1)
    at.started("b", nodes=4, preemptible=False)
    at.cell.unfit("r1-n02")
    at.folded()
    (entry,) = recover(at.fleet, at.cell.job("a"), at.fleet.time)
    at.other(entry)
    at.run()
    assert at.cell.job("a").started == 2
    return at


def told(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(one.TYPE, one.job) for one in entries if isinstance(one, JobGrown | JobPlaced)]


def gone(job: str) -> JobCancelled:
    return JobCancelled(job=JobId(job), by=Owner("op"), reason=Reason(code="x"))


def test_it_grows_when_a_rack_comes_free(at: Desk) -> None:
    assert told(at.run()) == []
    at.other(gone("b"))
    assert told(at.run()) == [("job.grown", "a")]
    at.all_up("a")
    at.run()
    assert at.cell.job("a").started == 3
    assert told(at.run()) == []


def test_before_queued_jobs_of_its_priority_and_after_those_of_a_higher(at: Desk) -> None:
    at.submit("equal", nodes=4)
    at.run()
    high = at.cell.copy()
    at.other(gone("b"))
    assert told(at.run()) == [("job.grown", "a")]

    other = desk(high)
    other.seq = at.seq
    other.submit("high", nodes=4, priority=60)
    other.run()
    other.other(gone("b"))
    assert told(other.run())[0] == ("job.placed", "high")


def test_what_was_refused_is_tried_again(at: Desk) -> None:
    at.other(gone("b"))
    (offer,) = [one for one in at.offers() if isinstance(one.entries[0], JobGrown)]
    assert at.refuse(offer) == [Offer(entries=offer.entries)]
    assert told(at.run()) == [("job.grown", "a")]


def test_not_while_it_is_wounded(at: Desk) -> None:
    at.worker("a", 0, WorkerState.EXITED, code=1)
    at.cell.unfit("r0-n00")
    at.folded()
    at.other(gone("b"))
    assert told(at.run()) == []


def test_a_service_gets_the_rest_of_its_replicas_later() -> None:
    at = desk(cell(2, nodes=4))
    groups = (Group(name=JobId("decode"), nodes=4, replicas=3, min_replicas=1),)
    at.started("serve", groups=groups, job_class=JobClass.SERVICE)
    assert len(at.cell.job("serve").slices) == 2
    at.cell.define(rack_spec("r7", 4))
    at.folded()
    at.state.queue.helped()
    assert told(at.run()) == [("job.grown", "serve")]
    assert [part.replica for part in at.cell.job("serve").slices] == [0, 1, 2]
