"""Racks that are left to a job which waits: for its queue's guarantee, or because it starves."""

from rackwright.core.reasons import sentence
from rackwright.wire.entries.job import JobBlocked, JobCancelled, JobPlaced
from rackwright.wire.ids import JobId, Owner, QueueName
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk


def placed(entries: list[Entry]) -> list[str]:
    return [one.job for one in entries if isinstance(one, JobPlaced)]


def blocked(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(one.job, one.reason.code) for one in entries if isinstance(one, JobBlocked)]


def told(entries: list[Entry]) -> list[str]:
    """Why jobs wait; nothing else may have happened but submits."""
    assert placed(entries) == []
    return [sentence(one.reason) for one in entries if isinstance(one, JobBlocked)]


def promising() -> Desk:
    """A cell of three racks that are promised to a queue; another one has one of them."""
    ours = QueueName("ours")
    at = desk(cell(3, policy=Policy(queue_guarantee={ours: 3 * 72})))
    at.started("fill", nodes=18, queue=QueueName("theirs"))
    at.submit("p", nodes=54, slice_nodes=18, queue=ours)
    assert blocked(at.run()) == [("p", "capacity")]
    at.wait(5.0)
    at.submit("x", nodes=18, queue=QueueName("theirs"), priority=90)
    assert told(at.run()) == ["would fit, but 2 racks are left to p: its queue is promised them"]
    return at


def test_racks_that_come_free_are_left_to_a_job_that_is_promised_them() -> None:
    at = promising()
    at.exit_all("fill")
    assert placed(at.run()) == ["p"]


def test_what_was_kept_from_goes_on_when_that_job_does_not_wait_any_more() -> None:
    at = promising()
    at.other(JobCancelled(job=JobId("p"), by=Owner("op"), reason=Reason(code="x")))
    assert placed(at.run()) == ["x"]


def test_what_was_kept_from_goes_on_when_the_starved_job_does_not_wait_any_more() -> None:
    policy = Policy(starve_after_s=30.0, defrag_expiry_s=10.0, starve_racks=0.5)
    at = desk(cell(3, policy=policy))
    at.started("fill", nodes=18, time_limit_s=3_600.0)
    at.submit("starves", nodes=54, slice_nodes=18, priority=60)
    at.run()
    at.live(45)
    at.submit("x", nodes=36, slice_nodes=18)
    assert told(at.run()) == [
        "would fit, but 1 rack is kept for what has waited too long (starves)"
    ]
    at.other(JobCancelled(job=JobId("starves"), by=Owner("op"), reason=Reason(code="x")))
    assert placed(at.run()) == ["x"]
