"""Counts of jobs, racks and nodes that answers and metrics share."""

from collections import Counter

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, Slice
from rackwright.core.occupancy import node_use, spares
from rackwright.core.policy.ask import spare_racks
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.quota import gpus_of
from rackwright.core.racks import Rack
from rackwright.gateway import views


def node_states(fleet: Fleet, now: float) -> dict[str, int]:
    """Nodes by their one word. Looks at every node."""
    found: Counter[str] = Counter()
    whole = spare_racks(fleet)
    for rack in fleet.racks.values():
        kept = spares(rack, whole)
        found.update(node_use(rack, place, now, kept).value for place in range(len(rack.nodes)))
    return dict(sorted(found.items()))


def queue(fleet: Fleet) -> dict[str, views.QueuedBy]:
    """Queued jobs by the cause the ledger has; `none`: not blocked, or not looked at yet."""
    jobs: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for name in fleet.queued:
        job = fleet.jobs[name]
        cause = "none" if job.blocked is None else job.blocked.code
        jobs[cause] += 1
        gpus[cause] += size_of(fleet, job)[1]
    return {cause: views.QueuedBy(jobs=jobs[cause], gpus=gpus[cause]) for cause in sorted(jobs)}


def size_of(fleet: Fleet, job: Job) -> tuple[int, int]:
    """Nodes and GPUs that a job has, or asks for while it has none.

    Work without GPUs has none, though it holds the cores of some.
    """
    if job.spec.gpus == 0:
        return 1, 0
    if job.slices:
        return job.ranks, sum(slice_gpus(fleet, part) for part in job.slices)
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not isinstance(made, Cut):
        return job.spec.nodes or 0, job.spec.gpus or 0
    return sum(piece.nodes for piece in made.pieces), gpus_of(fleet, made)


def slice_gpus(fleet: Fleet, part: Slice) -> int:
    """GPUs of one slice."""
    rack = fleet.racks[part.rack]
    return part.gpus.bit_count() or sum(rack.nodes[place].gpus for place in part.nodes)


def spares_view(rack: Rack, now: float) -> views.SparesView:
    """Wanted beside protected slices, free there (none while the rack is held), lent, and missing:
    what is lent comes back at once, if its node is good."""
    wanted = rack.shape.target
    free = 0 if rack.held_until > now else min(wanted, rack.usable.bit_count())
    return views.SparesView(
        wanted=wanted,
        free=free,
        lent=rack.lent.bit_count(),
        short=max(0, wanted - free - (rack.lent & rack.takes).bit_count()),
        probation=_on_probation(rack),
    )


def _on_probation(rack: Rack) -> int:
    """Free nodes that gangs do not get yet, but a swap does when there is no other."""
    doubtful = rack.free & rack.takes_one & ~rack.takes
    return sum(1 for place in bits(doubtful) if rack.nodes[place].probation_until)
