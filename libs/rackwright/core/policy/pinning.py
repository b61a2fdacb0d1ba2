"""Which work nobody may move, whatever the price: one list for causes, plans and recovery."""

from collections.abc import Mapping
from types import MappingProxyType

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.policy.beside import moves_beside
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import CheckpointPlace, JobClass
from rackwright.wire.policy import Policy

OVERDUE_INTERVALS = 2.0  # without a checkpoint for so many declared intervals work is pinned

Checkpoints = Mapping[JobId, float]
"""Ledger time of the last checkpoint of each job that has reported one."""
UNTOLD: Checkpoints = MappingProxyType({})


def never_moves(policy: Policy, job: Job) -> str | None:
    """The code of what forbids moving this job for another, now and later; None: it may be moved.

    Interactive work moves only where an administrator lists its queue.
    """
    spec = job.spec
    if job.pinned_by:
        return "pinned"
    if spec.job_class is JobClass.INTERACTIVE:
        if spec.queue not in policy.interactive_movable_queues:
            return "interactive"
    elif spec.job_class is JobClass.SERVICE and not spec.movable:
        return "service"
    elif spec.job_class is JobClass.SERVICE and not moves_beside(job):
        return "service.parts"
    if not spec.restartable:
        return "not-restartable"
    if not spec.preemptible:
        return "not-preemptible"
    if spec.checkpoint.where is CheckpointPlace.LOCAL:
        return "checkpoint.local"
    return None


def stays(fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float) -> str | None:
    """As `never_moves`, and besides work whose checkpoints are overdue: nobody knows what moving it
    would lose, and work that never saves would never be a victim."""
    never = never_moves(fleet.policy, job)
    interval = job.spec.checkpoint.interval_s
    if never is not None or interval is None:
        return never
    late = unsaved(job, checkpoints, now) > OVERDUE_INTERVALS * interval
    return "checkpoint.overdue" if late else None


def unsaved(job: Job, checkpoints: Checkpoints, now: float, later_s: float = 0.0) -> float:
    """Seconds of work since the last checkpoint, or since it got its nodes, in `later_s` seconds.

    Counted from the placement and not from the last `job.started`: a swap in between lost nothing.
    """
    since = job.placed_at if job.placed_at is not None else now
    saved = checkpoints.get(job.id)
    if saved is not None:
        since = max(since, min(saved, now))
    return max(0.0, now + later_s - since)


def lowest_priority(fleet: Fleet) -> int:
    """The lowest priority of work that has nodes and may be moved; 101 when there is none.

    Looks at every living job.
    """
    found = (
        job.spec.priority
        for job in fleet.jobs.values()
        if job.slices and never_moves(fleet.policy, job) is None
    )
    return min(found, default=101)
