"""Legality of entries of the noun `job`."""

from collections.abc import Callable
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import TRANSITIONS, Job, JobState, WoundKind
from rackwright.core.legality.seats import live, next_membership, seats, whole_job
from rackwright.core.legality.sizes import grows, shrinks
from rackwright.wire.entries.job import (
    JobApproved,
    JobBlocked,
    JobCancelled,
    JobFailed,
    JobGrown,
    JobPinned,
    JobPlaced,
    JobQueued,
    JobRejected,
    JobReleased,
    JobRequeued,
    JobShrunk,
    JobStarted,
    WorkerFailed,
)
from rackwright.wire.ids import JobId


def _new(fleet: Fleet, name: JobId) -> str | None:
    if name in fleet.jobs or name in fleet.tombstones:
        return f"job id {name} is in use"
    return None


def _queued(fleet: Fleet, entry: JobQueued | JobRejected) -> str | None:
    return _new(fleet, entry.job)


def edge(fleet: Fleet, name: JobId, type_name: str) -> str | None:
    """Is there an edge for this entry from the state the job is in?"""
    job = live(fleet, name)
    if isinstance(job, str):
        return job
    if (job.state, type_name) not in TRANSITIONS:
        return f"job {name} is {job.state}: no {type_name} from there"
    return None


def _edge(fleet: Fleet, entry: Any) -> str | None:
    job = fleet.jobs.get(entry.job)
    if job is not None and (job.state, entry.TYPE) in TRANSITIONS:
        return None
    return edge(fleet, entry.job, entry.TYPE)


def _placed(fleet: Fleet, entry: JobPlaced) -> str | None:
    problem = _edge(fleet, entry)
    if problem is not None:
        return problem
    job = fleet.jobs[entry.job]
    return (
        next_membership(job, entry.membership)
        or whole_job(fleet, job, entry.slices)
        or seats(fleet, job, entry.slices, {})
    )


def _blocked(fleet: Fleet, entry: JobBlocked) -> str | None:
    return _edge(fleet, entry)


def too_hurt_to_start(fleet: Fleet, job: Job) -> bool:
    """Is it wounded so that it cannot be said to run as a whole?

    Until fold version 2 any wound forbade it; since then a rank whose node is only drained runs.
    """
    return job.hurt if fleet.fold_version >= 2 else bool(job.wounds)


def _started(fleet: Fleet, entry: JobStarted) -> str | None:
    problem = _edge(fleet, entry)
    if problem is not None:
        return problem
    job = fleet.jobs[entry.job]
    if entry.membership != job.membership or job.started == job.membership:
        return f"{job.id} is at membership {job.membership}, started {job.started}"
    if too_hurt_to_start(fleet, job):
        return f"job {job.id} is wounded"
    return None


def _cancelled(fleet: Fleet, entry: JobCancelled) -> str | None:
    if entry.job not in fleet.jobs and entry.job not in fleet.tombstones:
        return None
    if entry.force and entry.job in fleet.tombstones and entry.job in fleet.leaving_of:
        return None
    return _edge(fleet, entry)


def _requeued(fleet: Fleet, entry: JobRequeued) -> str | None:
    problem = _edge(fleet, entry)
    if problem is None and not fleet.jobs[entry.job].spec.restartable:
        return f"job {entry.job} is not restartable"
    return problem


def _shrunk(fleet: Fleet, entry: JobShrunk) -> str | None:
    problem = _edge(fleet, entry)
    if problem is None:
        problem = next_membership(fleet.jobs[entry.job], entry.membership)
    return problem or shrinks(fleet.jobs[entry.job], entry.indexes)


def _grown(fleet: Fleet, entry: JobGrown) -> str | None:
    problem = _edge(fleet, entry)
    if problem is None:
        problem = next_membership(fleet.jobs[entry.job], entry.membership)
    return problem or grows(fleet, fleet.jobs[entry.job], entry.slices)


def _failed(fleet: Fleet, entry: JobFailed) -> str | None:
    problem = _edge(fleet, entry)
    if problem is None and entry.keep_s and not fleet.jobs[entry.job].spec.keep_on_failure:
        return f"job {entry.job} does not ask to keep its nodes"
    return problem


def _released(fleet: Fleet, entry: JobReleased) -> str | None:
    return None if entry.job in fleet.kept else f"no nodes are kept for {entry.job}"


def _notified(fleet: Fleet, entry: Any) -> str | None:
    job = live(fleet, entry.job)
    return job if isinstance(job, str) else None


def _pinned(fleet: Fleet, entry: JobPinned) -> str | None:
    job = live(fleet, entry.job)
    if isinstance(job, str):
        return job
    if entry.pinned and (job.spec.gpus == 0 or any(part.lent for part in job.slices)):
        return f"job {job.id} is on lent spares: it leaves when they are needed"
    if entry.pinned == bool(job.pinned_by):
        return f"job {job.id} is {'pinned' if entry.pinned else 'not pinned'} already"
    return None


def _approved(fleet: Fleet, entry: JobApproved) -> str | None:
    job = live(fleet, entry.job, JobState.QUEUED)
    if isinstance(job, str):
        return job
    return f"an approval until {entry.until} is over" if entry.until <= fleet.time else None


def _worker_failed(fleet: Fleet, entry: WorkerFailed) -> str | None:
    job = live(fleet, entry.job)
    if isinstance(job, str):
        return job
    if not job.has_rank(entry.rank):
        return f"job {job.id} has no rank {entry.rank}"
    if job.worker(entry.rank) != entry.worker:
        return f"{entry.worker} is old, rank {entry.rank} is {job.worker(entry.rank)}"
    for wound in job.wounds:
        if wound.rank == entry.rank and wound.kind is WoundKind.PROCESS:
            return f"rank {entry.rank} has no process already"
    return None


RULES: dict[str, Callable[[Fleet, Any], str | None]] = {
    "job.queued": _queued,
    "job.rejected": _queued,
    "job.placed": _placed,
    "job.blocked": _blocked,
    "job.started": _started,
    "job.finishing": _edge,
    "job.finished": _edge,
    "job.failed": _failed,
    "job.released": _released,
    "job.cancelled": _cancelled,
    "job.requeued": _requeued,
    "job.shrunk": _shrunk,
    "job.grown": _grown,
    "job.suspended": _edge,
    "job.resumed": _edge,
    "job.notified": _notified,
    "job.pinned": _pinned,
    "job.approved": _approved,
    "worker.failed": _worker_failed,
}
