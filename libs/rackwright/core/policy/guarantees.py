"""GPUs that a queue is promised: others may use them while it does not, and give them back.

A job is *owed* its place if its queue has, with it, no more than its guarantee. For such a job work
of other queues makes room that have more than theirs, whatever its priority; and no queue is left
with less than its guarantee for the sake of work that is not owed its place, or of another queue.
GPUs on lent spares count for nobody: who has them gives them back anyway.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.quota import gpus_of
from rackwright.core.shares import Limited
from rackwright.wire.ids import JobId, QueueName


def guaranteed(fleet: Fleet, queue: QueueName) -> int:
    """GPUs that this queue is promised."""
    return fleet.policy.queue_guarantee.get(queue, 0)


def used(fleet: Fleet, queue: QueueName) -> int:
    """GPUs that its jobs have, those on lent spares apart."""
    return fleet.counts.get((Limited.QUEUE, queue), 0)


def borrowed(fleet: Fleet, queue: QueueName) -> int:
    """GPUs that it has beyond what it is promised."""
    return max(0, used(fleet, queue) - guaranteed(fleet, queue))


def below(fleet: Fleet) -> Iterator[QueueName]:
    """Queues that have less than they are promised."""
    for queue, gpus in fleet.policy.queue_guarantee.items():
        if used(fleet, queue) < gpus:
            yield queue


def owed(fleet: Fleet, job: Job, gpus: int) -> bool:
    """Is a job that asks for so many GPUs owed its place?"""
    queue = job.spec.queue
    return used(fleet, queue) + gpus <= guaranteed(fleet, queue)


def is_owed(fleet: Fleet, job: Job) -> bool:
    """The same for a queued job, by its own size; and is there anything to take back?"""
    if not guaranteed(fleet, job.spec.queue):
        return False
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not isinstance(made, Cut) or not owed(fleet, job, gpus_of(fleet, made)):
        return False
    queues = (QueueName(name) for what, name in fleet.counts if what is Limited.QUEUE)
    return any(queue != job.spec.queue and borrowed(fleet, queue) for queue in queues)


def counting(fleet: Fleet, job: Job) -> int:
    """GPUs of a job with nodes that count for its queue."""
    found = 0
    for part in job.slices:
        rack = fleet.racks[part.rack]
        whole = sum(rack.nodes[place].gpus for place in part.nodes)
        found += 0 if part.lent else part.gpus.bit_count() or whole
    return found


def takes_back(fleet: Fleet, queue: QueueName, victim: Job, gone: int = 0) -> bool:
    """May an owed job of `queue` have what this one has, whose queue loses `gone` GPUs besides?"""
    other = victim.spec.queue
    return queue != other and counting(fleet, victim) + gone <= borrowed(fleet, other)


def left_whole(fleet: Fleet, queue: QueueName, victims: Iterable[JobId]) -> bool:
    """Do all other queues keep what they are promised when these jobs make room for one of
    `queue`? What sits on lent spares counts for nobody."""
    if not fleet.policy.queue_guarantee:
        return True
    gone: Counter[QueueName] = Counter()
    for name in victims:
        victim = fleet.jobs[name]
        if victim.spec.queue != queue:
            gone[victim.spec.queue] += counting(fleet, victim)
    return all(
        not gpus or used(fleet, other) - gpus >= guaranteed(fleet, other)
        for other, gpus in gone.items()
    )


def falls_short(fleet: Fleet, victim: Job, gone: int = 0) -> bool:
    """Would its queue have less than it is promised without it, and without `gone` GPUs besides?"""
    promise = guaranteed(fleet, victim.spec.queue)
    left = used(fleet, victim.spec.queue) - gone - counting(fleet, victim)
    return promise > 0 and left < promise
