"""Nodes that are kept for the owner of a failed job, until a time or until they are let go."""

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import put_rack
from rackwright.core.jobs import Job
from rackwright.core.rackhealth import refresh_health, without_kept
from rackwright.core.racks import Rack
from rackwright.wire.ids import JobId


def _put(fleet: Fleet, before: Rack, after: Rack) -> None:
    put_rack(fleet, before, refresh_health(after, fleet.policy, fleet.time))


def keep(fleet: Fleet, job: Job, seconds: float) -> None:
    """The nodes of a job that has just left them go to nobody for so long."""
    until = fleet.time + seconds
    racks = sorted({part.rack for part in job.slices})
    for number in racks:
        rack = fleet.racks[number]
        mask = 0
        for part in job.slices:
            mask |= part.mask if part.rack == number else 0
        nodes = tuple(
            evolve(node, kept_for=job.id, kept_until=until) if mask >> place & 1 else node
            for place, node in enumerate(rack.nodes)
        )
        _put(fleet, rack, evolve(rack, nodes=nodes))
        fleet.timers = tuple(sorted({*fleet.timers, (until, number)}))
    fleet.kept = fleet.kept.set(job.id, tuple(racks))
    forget_kept(fleet)


def forget_kept(fleet: Fleet) -> None:
    """Only jobs for which a node is still kept are remembered."""
    for name, racks in fleet.kept.items():
        there = (node.kept_for for number in racks for node in fleet.racks[number].nodes)
        if name not in there:
            fleet.kept = fleet.kept.delete(name)


def let_go(fleet: Fleet, name: JobId) -> None:
    """Nothing is kept for this job any more."""
    for number in fleet.kept[name]:
        rack = fleet.racks[number]
        _put(fleet, rack, without_kept(rack, fleet.time, name))
    fleet.kept = fleet.kept.delete(name)
