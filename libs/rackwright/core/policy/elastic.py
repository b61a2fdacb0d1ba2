"""Going on with less: an elastic job without a slice, a service without a replica.

`min_slices` makes a job elastic; slices of a replica leave together, and only of a service: there
each replica is a gang of its own, and the others serve on.
"""

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, Slice
from rackwright.core.legality.sizes import elastic, gang_of
from rackwright.core.policy.prices import HOUR, stall, weight
from rackwright.wire.jobs import JobClass


def goes_on_without(job: Job, part: Slice) -> str | None:
    """Why this job cannot go on without one of its slices; None: it can."""
    if not elastic(job.spec):
        return "not-elastic"
    left = len(job.slices) - 1
    return None if left >= max(1, job.spec.min_slices or 1) else "slices.min"


def replica_of(job: Job, part: Slice) -> tuple[int, ...]:
    """The slices, by index, of a replica that can leave alone; empty if the whole job must.

    The last replica of a group takes the others along: without it they are of no use.
    """
    if job.spec.job_class is not JobClass.SERVICE or not job.spec.groups:
        return ()
    mine = gang_of(part)
    others = any(one.group == part.group and one.replica != part.replica for one in job.slices)
    return tuple(one.index for one in job.slices if gang_of(one) == mine) if others else ()


def shrink_price(fleet: Fleet, job: Job, part: Slice) -> float:
    """All others join anew, and the GPUs of this slice are missed for as long as a wait counts
    (`defrag_wait0_s`), since nobody knows when there is room again. GPU-hours by priority.
    """
    policy = fleet.policy
    missed = gpus_of_slices(fleet, job, (part.index,)) * policy.defrag_wait0_s / HOUR
    return stall(fleet, job, policy.swap_cost_s) + missed * weight(job.spec.priority)


def replica_price(fleet: Fleet, job: Job, indexes: tuple[int, ...]) -> float:
    """A replica waits and starts again; the others do not notice. GPU-hours by priority."""
    seconds = fleet.policy.defrag_wait0_s + job.spec.checkpoint.restart_s
    gpus = gpus_of_slices(fleet, job, indexes)
    return gpus * seconds / HOUR * weight(job.spec.priority)


def gpus_of_slices(fleet: Fleet, job: Job, indexes: tuple[int, ...]) -> int:
    """GPUs that these slices have."""
    return sum(
        part.gpus.bit_count() or part.size * fleet.racks[part.rack].spec.gpus_per_node
        for part in job.slices
        if part.index in indexes
    )
