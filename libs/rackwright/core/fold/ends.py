"""How jobs end badly: they leave their nodes, which may be kept for a look at them."""

from rackwright.core.fleet import Fleet
from rackwright.core.fold.keeping import keep, let_go
from rackwright.core.fold.seats import end_job, vacate
from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobFailed, JobReleased


def job_failed(fleet: Fleet, entry: JobFailed) -> None:
    """Over, and what still runs of it is to end."""
    job = fleet.jobs[entry.job]
    vacate(fleet, job, notice_s=0.0, grace_s=job.spec.grace_s)
    if entry.keep_s > 0.0 and job.slices:
        keep(fleet, job, entry.keep_s)
    end_job(fleet, job, JobState.FAILED, entry.reason)


def job_released(fleet: Fleet, entry: JobReleased) -> None:
    """Its nodes take other work again."""
    let_go(fleet, entry.job)
