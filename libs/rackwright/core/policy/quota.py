"""How much of the cell a queue, pinned work and an owner's interactive work may have at once."""

from collections.abc import Iterator

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, counts_as_pinned
from rackwright.core.policy.cut import Cut
from rackwright.core.policy.refusing import Numbers
from rackwright.core.shares import Limited
from rackwright.wire.jobs import JobClass


def gpus_of(fleet: Fleet, made: Cut) -> int:
    """GPUs that a cut job takes; nodes count with the GPUs of the largest model."""
    per_node = fleet.topology.gpus_per_node
    return sum(piece.gpus or piece.nodes * per_node for piece in made.pieces)


def pinned_limit(fleet: Fleet) -> int:
    """GPUs for pinned work of all queues: a share of the cell, but always as much as one rack, or
    a small cell would take none."""
    one_rack = fleet.topology.largest_rack * fleet.topology.gpus_per_node
    return max(int(fleet.policy.pinned_share * fleet.installed_gpus), one_rack)


def may_lend(fleet: Fleet, job: Job, gpus: int) -> bool:
    """May this job's queue have so many GPUs more on lent spares?"""
    most = fleet.policy.queue_lent_gpus.get(job.spec.queue)
    return most is None or _used(fleet, Limited.QUEUE_LENT, job.spec.queue) + gpus <= most


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
    if job.spec.gpus == 0:
        lent = policy.queue_lent_gpus.get(queue)
        if lent is not None:
            yield "queue_lent_gpus", lent, _used(fleet, Limited.QUEUE_LENT, queue)
        return
    most = policy.queue_gpus.get(queue)
    if most is not None:
        yield "queue_gpus", most, _used(fleet, Limited.QUEUE, queue)
    if counts_as_pinned(job.spec):
        most = policy.queue_pinned_gpus.get(queue)
        if most is not None:
            yield "queue_pinned_gpus", most, _used(fleet, Limited.QUEUE_PINNED, queue)
        yield "pinned_share", pinned_limit(fleet), _used(fleet, Limited.PINNED)
    if job.spec.job_class is JobClass.INTERACTIVE:
        most = policy.interactive_owner_gpus
        yield "interactive_owner_gpus", most, _used(fleet, Limited.INTERACTIVE, job.owner)


def _used(fleet: Fleet, what: Limited, whose: str = "") -> int:
    return fleet.counts.get((what, whose), 0)
