"""How much of the cell a queue, pinned work and an owner's interactive work may have at once."""

from collections.abc import Iterator

from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import gpus_in_use
from rackwright.core.jobs import Job, may_not_move
from rackwright.core.policy.cut import Cut, Numbers
from rackwright.wire.ids import Owner, QueueName
from rackwright.wire.jobs import JobClass


def gpus_of(fleet: Fleet, made: Cut) -> int:
    """GPUs that a cut job takes; nodes count with the GPUs of the largest model."""
    per_node = fleet.topology.gpus_per_node
    return sum(piece.gpus or piece.nodes * per_node for piece in made.pieces)


def counts_as_pinned(job: Job) -> bool:
    """Does it take of what pinned work may have? A service is there to stay, and does not."""
    return may_not_move(job.spec) and job.spec.job_class is not JobClass.SERVICE


def pinned_limit(fleet: Fleet) -> int:
    """GPUs for pinned work of all queues: a share of the cell, but always as much as one rack, or
    a small cell would take none."""
    one_rack = fleet.topology.largest_rack * fleet.topology.gpus_per_node
    return max(int(fleet.policy.pinned_share * fleet.installed_gpus), one_rack)


def used_by(fleet: Fleet, queue: QueueName) -> int:
    """GPUs that jobs of a queue have now, lent ones not counted."""
    return sum(use.gpus for (name, _), use in fleet.usage.items() if name == queue)


def lent_to(fleet: Fleet, queue: QueueName) -> int:
    """GPUs on lent spares that jobs of a queue have now."""
    return sum(use.lent for (name, _), use in fleet.usage.items() if name == queue)


def pinned_gpus(fleet: Fleet, queue: QueueName | None = None) -> int:
    """GPUs of pinned work, of one queue or of all. Looks at every living job."""
    return _gpus(
        fleet,
        (
            job
            for job in fleet.jobs.values()
            if counts_as_pinned(job) and (queue is None or job.spec.queue == queue)
        ),
    )


def interactive_gpus(fleet: Fleet, owner: Owner) -> int:
    """GPUs of an owner's interactive jobs. Looks at every living job."""
    return _gpus(
        fleet,
        (
            job
            for job in fleet.jobs.values()
            if job.owner == owner and job.spec.job_class is JobClass.INTERACTIVE
        ),
    )


def _gpus(fleet: Fleet, jobs: Iterator[Job]) -> int:
    return sum(sum(gpus_in_use(fleet, job.slices)) for job in jobs)


def may_lend(fleet: Fleet, job: Job, gpus: int) -> bool:
    """May this job's queue have so many GPUs more on lent spares?"""
    most = fleet.policy.queue_lent_gpus.get(job.spec.queue)
    return most is None or lent_to(fleet, job.spec.queue) + gpus <= most


def over_quota(fleet: Fleet, job: Job, made: Cut) -> Numbers | None:
    """The numbers of the first limit that has no room for this job, None when all have."""
    asked = gpus_of(fleet, made)
    for limit, most, used in _limits(fleet, job):
        if used + asked > most:
            queue = job.spec.queue
            return {"limit": limit, "queue": queue, "asked": asked, "used": used, "most": most}
    return None


def _limits(fleet: Fleet, job: Job) -> Iterator[tuple[str, int, int]]:
    """Limits that bind this job: what it is, how much, and how much of it is in use."""
    policy, queue = fleet.policy, job.spec.queue
    most = policy.queue_gpus.get(queue)
    if most is not None:
        yield "queue_gpus", most, used_by(fleet, queue)
    if counts_as_pinned(job):
        most = policy.queue_pinned_gpus.get(queue)
        if most is not None:
            yield "queue_pinned_gpus", most, pinned_gpus(fleet, queue)
        yield "pinned_share", pinned_limit(fleet), pinned_gpus(fleet)
    if job.spec.job_class is JobClass.INTERACTIVE:
        most = policy.interactive_owner_gpus
        yield "interactive_owner_gpus", most, interactive_gpus(fleet, job.owner)
