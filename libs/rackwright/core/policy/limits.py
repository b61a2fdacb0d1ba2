"""How long a job may keep its nodes, counted from when it got them."""

from rackwright.core.jobs import Job
from rackwright.wire.jobs import CheckpointPlace, JobClass, JobSpec
from rackwright.wire.policy import Policy


def longest(policy: Policy, spec: JobSpec) -> float | None:
    """Seconds that work of this kind may ask for; None for a service, which has no end.

    Work that nobody may move has less, so that racks it pins come free again.
    """
    if spec.job_class is JobClass.INTERACTIVE:
        return policy.time_limit_interactive_s
    if spec.job_class is JobClass.SERVICE:
        return None
    local = spec.checkpoint.where is CheckpointPlace.LOCAL
    if not spec.restartable or not spec.preemptible or local:
        return policy.time_limit_pinned_s
    return policy.time_limit_batch_s


def limit(policy: Policy, spec: JobSpec) -> float | None:
    """Seconds from placement after which the job is ended; None: never."""
    return spec.time_limit_s if spec.time_limit_s is not None else longest(policy, spec)


def ends_at(policy: Policy, job: Job) -> float | None:
    """Ledger time at which a placed job is ended by its limit; None: it has no end."""
    seconds = limit(policy, job.spec)
    if seconds is None or job.placed_at is None or not job.slices:
        return None
    return job.placed_at + seconds
