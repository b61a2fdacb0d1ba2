"""Cells for tests of defragmentation: work that has run for long, and a blocked job."""

from collections.abc import Iterable
from typing import Any

from rackwright.core.evolve import evolve
from rackwright.core.jobs import Job
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec
from rackwright.wire.reasons import Cause, Reason
from tests.support.fleets import Cell

MINUTE = 60.0
HOUR = 3600.0
PINNED: dict[str, Any] = {"job_class": JobClass.INTERACTIVE, "preemptible": False}
SAVES = Checkpoint(on_notice_s=60.0)


def pass_time(made: Cell, seconds: float) -> float:
    """Let time pass at once, as a quiet cell would see it; returns the ledger time then."""
    made.fleet = evolve(made.fleet, time=made.fleet.time + seconds)
    return made.fleet.time


def change(made: Cell, job: str, **fields: Any) -> None:
    """Give a job a past that would be long to act out."""
    fleet = made.fleet
    made.fleet = evolve(fleet, jobs=fleet.jobs.set(JobId(job), evolve(made.job(job), **fields)))


def fill(made: Cell, rack: str, places: Iterable[int]) -> None:
    """Work that nobody may move on each of these places."""
    for place in places:
        made.sit(f"pin-{rack}-{place}", rack, [place], **PINNED)


def block(made: Cell, job: str, since: float = 0.0, **spec: Any) -> Job:
    """A job in the queue, blocked by movable topology for so many seconds already."""
    made.queue(job, JobSpec(name=JobId(job), **spec))
    reason = Reason(code=Cause.TOPOLOGY_MOVABLE)
    made.add(JobBlocked(job=JobId(job), reason=reason))
    change(made, job, blocked_since=made.fleet.time - since)
    return made.job(job)
