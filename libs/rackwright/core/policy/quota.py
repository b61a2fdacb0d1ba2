"""How much of the cell a queue may have at once."""

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.policy.cut import Cut, Numbers
from rackwright.wire.ids import QueueName


def gpus_of(fleet: Fleet, made: Cut) -> int:
    """GPUs that a cut job takes; nodes count with the GPUs of the largest model."""
    per_node = fleet.topology.gpus_per_node
    return sum(piece.gpus or piece.nodes * per_node for piece in made.pieces)


def used_by(fleet: Fleet, queue: QueueName) -> int:
    """GPUs that jobs of a queue have now, lent ones not counted. Looks at every living job."""
    used = 0
    for job in fleet.jobs.values():
        for part in job.slices if job.spec.queue == queue else ():
            if not part.lent:
                rack = fleet.racks[part.rack]
                used += part.gpus.bit_count() or sum(rack.nodes[place].gpus for place in part.nodes)
    return used


def over_quota(fleet: Fleet, job: Job, made: Cut) -> Numbers | None:
    """The numbers of a queue that has no room for this job, None when it has or has no limit."""
    queue = job.spec.queue
    most = fleet.policy.queue_gpus.get(queue)
    if most is None:
        return None
    asked, used = gpus_of(fleet, made), used_by(fleet, queue)
    if used + asked <= most:
        return None
    return {"queue": queue, "asked": asked, "used": used, "most": most}
