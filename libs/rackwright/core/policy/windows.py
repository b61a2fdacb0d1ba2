"""Planned maintenance: is there room elsewhere for what must move, and who is to be told when."""

from collections.abc import Iterator, Set

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import ASSIGNED, Job, JobState, Slice
from rackwright.wire.ids import JobId, NodeId, RackId
from rackwright.wire.jobs import JobClass
from rackwright.wire.reasons import Reason

DAY = 86_400.0
HOUR = 3_600.0


def leaves(job: Job) -> bool:
    """Is it moved out of the way of maintenance, or does it stay to its end?"""
    return job.spec.restartable and job.spec.job_class is not JobClass.INTERACTIVE


def nodes_of(fleet: Fleet, racks: Set[RackId], nodes: Set[NodeId]) -> dict[int, int]:
    """These racks and nodes as masks by the rack's number; unknown names are left out."""
    found: dict[int, int] = {}
    for name in racks:
        number = fleet.rack_numbers.get(name)
        if number is not None:
            found[number] = (1 << len(fleet.racks[number].nodes)) - 1
    for node in nodes:
        place = fleet.places.get(node)
        if place is not None:
            found[place.rack] = found.get(place.rack, 0) | 1 << place.node
    return found


def parts_there(fleet: Fleet, away: dict[int, int]) -> Iterator[tuple[Job, Slice]]:
    """Slices with a node there, of jobs that have nodes, in the order of their names."""
    for number in sorted(away):
        for tenancy in fleet.racks[number].tenancies:
            job = fleet.jobs[tenancy.job]
            if tenancy.mask & away[number] and job.state in ASSIGNED:
                yield job, job.part(tenancy.slice)


def missing_room(fleet: Fleet, racks: Set[RackId], nodes: Set[NodeId]) -> Reason | None:
    """What of the work that must move has no room in other racks now; None: all of it has.

    Whole nodes only, the largest slice first, each into the rack where it leaves the fewest over.
    Spares are not kept: what must leave may take them. Parts of nodes are not looked at.
    """
    away = nodes_of(fleet, racks, nodes)
    sizes = sorted(
        (part.size for job, part in parts_there(fleet, away) if leaves(job) and not part.gpus),
        reverse=True,
    )
    if not sizes:
        return None
    free = sorted(
        (rack.usable & ~away.get(number, 0)).bit_count() for number, rack in fleet.racks.items()
    )
    homeless = [size for size in sizes if not _take(free, size)]
    if not homeless:
        return None
    numbers: dict[str, int | float | str] = {
        "slices": len(homeless),
        "nodes": sum(homeless),
        "largest": homeless[0],
    }
    return Reason(code="maintenance.no-room", numbers=numbers)


def _take(free: list[int], size: int) -> bool:
    """Take so many nodes from the rack with the fewest that has them; `free` stays sorted."""
    for place, nodes in enumerate(free):
        if nodes >= size:
            free[place] = nodes - size
            free.sort()
            return True
    return False


def to_tell(fleet: Fleet, window: Maintenance, now: float) -> list[tuple[JobId, Reason]]:
    """Jobs in the window's racks that are to be told of it now.

    What leaves is told at the notice; owners of what stays (interactive work, and what cannot be
    restarted) a day and an hour before.
    """
    ahead = window.begin - now
    if not 0 < ahead <= DAY:
        return []
    told = dict(window.told)  # the last that was said counts
    away = nodes_of(fleet, set(window.racks), set(window.nodes))
    found: dict[JobId, Reason] = {}
    for job, _ in parts_there(fleet, away):
        before = told.get(job.id)
        if job.state is JobState.FINISHING or job.id in found:
            continue
        if leaves(job):
            due, code = before is None and ahead <= window.notice_s, "maintenance.leave"
        else:
            due = before is None or (ahead <= HOUR < before)
            code = "maintenance.stays"
        if due:
            found[job.id] = Reason(code=code, numbers={"window": window.seq})
    return list(found.items())


def next_telling(window: Maintenance, now: float) -> float | None:
    """Ledger time at which somebody may be to be told; None: no more."""
    times = (window.begin - DAY, window.begin - HOUR, window.begin - window.notice_s)
    return min((at for at in times if at > now), default=None)
