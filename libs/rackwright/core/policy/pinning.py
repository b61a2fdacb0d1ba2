"""Which work nobody may move, whatever the price: one list for causes, plans and recovery."""

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.wire.jobs import CheckpointPlace, JobClass
from rackwright.wire.policy import Policy


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
    if not spec.restartable:
        return "not-restartable"
    if not spec.preemptible:
        return "not-preemptible"
    if spec.checkpoint.where is CheckpointPlace.LOCAL:
        return "checkpoint.local"
    return None


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
