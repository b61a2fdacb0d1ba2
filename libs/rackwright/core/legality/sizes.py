"""May a job go on with fewer slices, and may it have these more?"""

from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, Shed, Slice
from rackwright.core.legality.seats import seats, sizes
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.jobs import JobClass, JobSpec

Gang = tuple[int, int]
"""Group and replica: what is placed and leaves as a whole."""


def gang_of(part: Slice | Shed | SlicePlacement) -> Gang:
    """Which replica of which group this slice is of."""
    return part.group, part.replica


def elastic(spec: JobSpec) -> bool:
    """May its slices leave one by one? Slices of a replica leave together."""
    return spec.min_slices is not None and not spec.groups


def shrinks(job: Job, indexes: Iterable[int]) -> str | None:
    """What is wrong with going on without these slices."""
    gone = set(indexes)
    parts = [part for part in job.slices if part.index in gone]
    kept = [part for part in job.slices if part.index not in gone]
    if not gone or len(parts) != len(gone) or not kept:
        return f"job {job.id} has {len(job.slices)} slices and cannot go on without {sorted(gone)}"
    if not job.spec.restartable:
        return f"job {job.id} is not restartable"
    wounded = {job.slice_of(wound.rank).index for wound in job.wounds}
    if elastic(job.spec):
        well = sorted(gone - wounded)
        if well:
            return f"slice {well[0]} is not wounded"
        least = job.spec.min_slices or 1
        return None if len(kept) >= least else f"{len(kept)} slices are fewer than {least}"
    return _replicas(job, parts, kept, wounded)


def _replicas(job: Job, parts: list[Slice], kept: list[Slice], wounded: set[int]) -> str | None:
    """Whole replicas of a service, each of a group that keeps another one."""
    if job.spec.job_class is not JobClass.SERVICE or not job.spec.groups:
        return f"job {job.id} is neither elastic nor a service of replicas"
    staying = {gang_of(part) for part in kept}
    for gang in sorted({gang_of(part) for part in parts}):
        if gang in staying:
            return f"replica {gang[1]} of group {gang[0]} would be left in part"
        if not any(part.index in wounded for part in parts if gang_of(part) == gang):
            return f"replica {gang[1]} of group {gang[0]} is not wounded"
        if all(group != gang[0] for group, _ in staying):
            return f"group {gang[0]} would be left without a replica"
    return None


def grows(fleet: Fleet, job: Job, placements: tuple[SlicePlacement, ...]) -> str | None:
    """What is wrong with giving a running job these slices too."""
    if job.wounds or job.started != job.membership or job.plan is not None:
        return f"job {job.id} is wounded, starting or in a plan"
    shed = {one.index: one for one in job.shed}
    last = job.with_shed[-1]
    index, rank = last.index + 1, last.first_rank + last.size
    for part in sorted(placements, key=lambda part: part.index):
        size, was = part.nodes.bit_count(), shed.pop(part.index, None)
        if was is not None:
            if (part.first_rank, size, gang_of(part)) != (was.first_rank, was.size, gang_of(was)):
                return f"slice {part.index} of {job.id} comes back as another one"
            continue
        if not job.spec.groups:
            return f"slice {part.index} of {job.id} was never there"
        if (part.index, part.first_rank) != (index, rank):
            return f"slice {part.index} at rank {part.first_rank}, expected {index} at {rank}"
        index, rank = index + 1, rank + size
    return (
        _whole(job, placements)
        or _most(fleet, job, placements)
        or seats(fleet, job, placements, {}, besides=len(job.slices))
    )


def _whole(job: Job, placements: tuple[SlicePlacement, ...]) -> str | None:
    """Each index once, part of a node never, and no replica that is there already."""
    if len({part.index for part in placements}) != len(placements):
        return "a slice is given twice"
    if any(part.gpus for part in placements):
        return "whole nodes are wanted"
    if elastic(job.spec):
        return None
    there = {gang_of(part) for part in job.slices}
    again = sorted(there & {gang_of(part) for part in placements})
    return f"replica {again[0][1]} of group {again[0][0]} is there" if again else None


def _most(fleet: Fleet, job: Job, placements: tuple[SlicePlacement, ...]) -> str | None:
    """No more ranks than were asked for."""
    first = fleet.racks[job.slices[0].rack]
    most = sizes(job.spec, first.spec.gpus_per_node)[1]
    ranks = job.ranks + sum(part.nodes.bit_count() for part in placements)
    return None if ranks <= most else f"{ranks} ranks, at most {most} are wanted"
