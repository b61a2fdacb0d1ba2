"""May a movable service be moved with the new instance beside the old one?

Two workers of one rank live at the same time then, so it is for replicas that are moved as a whole,
to GPUs that nobody has to leave first: what waits for what could go in a circle otherwise.
"""

from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, Slice, is_movable
from rackwright.core.racks import Rack


def whole_replica(job: Job, part: Slice) -> bool:
    """Is this slice a replica by itself, or all of the job?"""
    alike = (one for one in job.slices if (one.group, one.replica) == (part.group, part.replica))
    return sum(1 for _ in alike) == 1


def overlaps(fleet: Fleet, job: Job, moves: Iterable[tuple[Slice, Rack, int, int]]) -> str | None:
    """What is wrong with serving on beside these new places: (slice, rack, nodes, GPUs or 0)."""
    if not is_movable(job.spec):
        return f"job {job.id} is no service that is movable"
    for part, rack, nodes, gpus in moves:
        if not whole_replica(job, part):
            return f"slice {part.index} of {job.id} is a part of its replica"
        busy = not_free(rack, nodes, gpus)
        if busy is not None:
            return f"node {busy} is not free yet"
    return None


def not_free(rack: Rack, nodes: int, gpus: int) -> str | None:
    """The first of these nodes of which a GPU is taken, or has a worker that is still leaving."""
    for place in bits(nodes):
        wanted = gpus or (1 << rack.nodes[place].gpus) - 1
        taken = rack.taken_gpus(place)
        for one in rack.leaving:
            if one.node == place:
                taken |= one.gpus or wanted
        if taken & wanted:
            return rack.nodes[place].name
    return None
