"""Legality of entries of the nouns `slice` and `defrag`."""

from collections.abc import Callable
from typing import Any

from rackwright.core.fleet import Fleet, Plan
from rackwright.core.jobs import ASSIGNED, Job, JobState, Slice, WoundKind, need_of
from rackwright.core.legality.beside import overlaps
from rackwright.core.legality.seats import (
    Freed,
    evictable,
    freed_by,
    live,
    next_membership,
    node_keeps,
    node_takes,
    seats,
    taken_with,
    whole_job,
)
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.entries.slice import (
    DefragFinished,
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
    Victim,
    VictimMove,
)
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import FITNESS_ORDER


def _part(fleet: Fleet, entry: Any) -> tuple[Job, Slice] | str:
    """The job and slice a recovery entry speaks of, if it may be recovered now."""
    job = live(fleet, entry.job, JobState.PLACED, JobState.RUNNING)
    if isinstance(job, str):
        return job
    if not job.spec.restartable:
        return f"job {job.id} is not restartable"
    problem = next_membership(job, entry.membership)
    if problem is not None:
        return problem
    part = next((one for one in job.slices if one.index == entry.index), None)
    return f"job {job.id} has no slice {entry.index}" if part is None else (job, part)


def _evicts(fleet: Fleet, victims: tuple[JobId, ...], by: JobId) -> str | None:
    if len(set(victims)) != len(victims):
        return "a job is evicted twice"
    for victim in victims:
        if victim == by:
            return f"job {by} cannot evict itself"
        problem = evictable(fleet, victim)
        if problem is not None:
            return problem
    return None


def _swapped(fleet: Fleet, entry: SliceSwapped) -> str | None:
    found = _part(fleet, entry)
    if isinstance(found, str):
        return found
    job, part = found
    problem = _evicts(fleet, entry.evicted, entry.job)
    if problem is not None:
        return problem
    if part.gpus:
        return "part of a node is not swapped, it is moved"
    wounded = {wound.rank for wound in job.wounds}
    freed = freed_by(fleet, entry.evicted)
    news: set[int] = set()
    for swap in entry.swaps:
        here = swap.rank - part.first_rank
        if not 0 <= here < part.size or part.nodes[here] != swap.old:
            return f"rank {swap.rank} is not on node {swap.old} of slice {part.index}"
        if swap.rank not in wounded:
            return f"rank {swap.rank} is not wounded"
        if swap.new in news:
            return f"node {swap.new} is given twice"
        news.add(swap.new)
        problem = _spare(fleet, job, part, swap.new, freed)
        if problem is not None:
            return problem
    return _all_beside(fleet, job, part, entry) if entry.overlaps else None


def _all_beside(fleet: Fleet, job: Job, part: Slice, entry: SliceSwapped) -> str | None:
    if len(entry.swaps) < part.size:
        return f"only {len(entry.swaps)} of {part.size} ranks go"
    mask = sum(1 << swap.new for swap in entry.swaps)
    return overlaps(fleet, job, [(part, fleet.racks[part.rack], mask, 0)])


def _spare(fleet: Fleet, job: Job, part: Slice, new: int, freed: Freed) -> str | None:
    rack = fleet.racks[part.rack]
    if rack.held_until > fleet.time:
        return f"rack {rack.spec.rack} is held"
    if new >= len(rack.nodes):
        return f"rack {rack.spec.rack} has no node {new}"
    node = rack.nodes[new]
    problem = node_takes(node, need_of(job.spec, len(job.slices)))
    if problem is not None:
        return problem
    if taken_with(rack, new, freed):
        return f"node {node.name} is taken"
    return None


def _moved(fleet: Fleet, entry: SliceMoved) -> str | None:
    found = _part(fleet, entry)
    if isinstance(found, str):
        return found
    job, part = found
    problem = _evicts(fleet, entry.evicted, entry.job)
    if problem is not None:
        return problem
    problem = _may_leave(job, part, entry)
    if problem is not None:
        return problem
    if entry.nodes.bit_count() != part.size:
        return f"{entry.nodes.bit_count()} nodes for a slice of {part.size}"
    if entry.gpus.bit_count() != part.gpus.bit_count():
        return f"GPUs {entry.gpus:#x} for a slice that has {part.gpus:#x}"
    place = SlicePlacement(
        index=part.index,
        first_rank=part.first_rank,
        rack=entry.rack,
        nodes=entry.nodes,
        gpus=entry.gpus,
    )
    freed = freed_by(fleet, entry.evicted)
    # Its own nodes are free too: a slice may move within a rack when it is part of a node.
    freed.setdefault(part.rack, []).append((part.mask, part.gpus))
    problem = seats(fleet, job, (place,), freed)
    if problem is not None or not entry.overlaps:
        return problem
    return overlaps(fleet, job, [(part, fleet.rack(entry.rack), entry.nodes, entry.gpus)])


def _may_leave(job: Job, part: Slice, entry: SliceMoved) -> str | None:
    """A wounded slice leaves; one that is well only while all of its job is, and takes nobody's
    place."""
    if entry.planned:
        settled = job.started == job.membership and job.plan is None and not job.wounds
        return None if settled and not entry.evicted else f"job {job.id} is not settled"
    ranks = range(part.first_rank, part.first_rank + part.size)
    if not any(wound.rank in ranks for wound in job.wounds):
        return f"slice {part.index} is not wounded"
    return None


def _restarted(fleet: Fleet, entry: SliceRestarted) -> str | None:
    found = _part(fleet, entry)
    if isinstance(found, str):
        return found
    job, part = found
    ended = {wound.rank for wound in job.wounds if wound.kind is WoundKind.PROCESS}
    need = need_of(job.spec, len(job.slices))
    for rank in entry.ranks:
        here = rank - part.first_rank
        if not 0 <= here < part.size:
            return f"rank {rank} is not of slice {part.index}"
        if rank not in ended:
            return f"rank {rank} has not lost its process"
        problem = node_keeps(fleet.node_at(part.rack, part.nodes[here]), need)
        if problem is not None:
            return problem
    return None


def _planned(fleet: Fleet, entry: DefragPlanned) -> str | None:
    blocked = live(fleet, entry.job, JobState.QUEUED)
    if isinstance(blocked, str):
        return blocked
    if entry.plan in fleet.plans:
        return f"plan {entry.plan} is in flight"
    problem = next_membership(blocked, entry.membership)
    if problem is not None:
        return problem
    freed: Freed = {}
    for victim in entry.victims:
        problem = _victim(fleet, victim, freed)
        if problem is not None:
            return problem
    if len({victim.job for victim in entry.victims}) != len(entry.victims):
        return "a victim is named twice"
    return whole_job(fleet, blocked, entry.slices) or _together(fleet, blocked, entry, freed)


def _victim(fleet: Fleet, victim: Victim, freed: Freed) -> str | None:
    problem = evictable(fleet, victim.job)
    if problem is not None:
        return problem
    job = fleet.jobs[victim.job]
    if job.plan is not None:
        return f"job {job.id} is part of plan {job.plan}"
    if victim.move is VictimMove.QUEUE:
        return _queued(job, victim, freed)
    problem = next_membership(job, victim.membership)
    if problem is not None:
        return problem
    if not victim.homes:
        return f"job {job.id} has no home"
    by_index = {part.index: part for part in job.slices}
    for home in victim.homes:
        part = by_index.pop(home.index, None)
        if part is None or part.first_rank != home.first_rank:
            return f"job {job.id} has no slice {home.index} at rank {home.first_rank}"
        if part.size != home.nodes.bit_count() or part.gpus.bit_count() != home.gpus.bit_count():
            return f"the home of slice {home.index} of {job.id} has another size"
        freed.setdefault(part.rack, []).append((part.mask, part.gpus))
    return _beside(fleet, job, victim) if victim.overlaps else None


def _beside(fleet: Fleet, job: Job, victim: Victim) -> str | None:
    moves = [
        (job.part(home.index), fleet.racks[fleet.rack_numbers[home.rack]], home.nodes, home.gpus)
        for home in victim.homes
        if home.rack in fleet.rack_numbers
    ]
    return overlaps(fleet, job, moves)


def _queued(job: Job, victim: Victim, freed: Freed) -> str | None:
    """All of it goes, and nowhere."""
    if victim.homes or victim.membership != job.membership:
        return f"job {job.id} goes into the queue at membership {job.membership}, without a home"
    for part in job.slices:
        freed.setdefault(part.rack, []).append((part.mask, part.gpus))
    return None


def _together(fleet: Fleet, blocked: Job, entry: DefragPlanned, freed: Freed) -> str | None:
    """Homes and the blocked job's slices must not meet; each is checked for its own need."""
    used: set[tuple[str, int, int]] = set()
    for job, places in (
        *((fleet.jobs[victim.job], victim.homes) for victim in entry.victims),
        (blocked, entry.slices),
    ):
        problem = seats(fleet, job, places, freed)
        if problem is not None:
            return problem
        for place in places:
            number = fleet.rack_numbers[place.rack]
            seated = _cells(place, fleet, number)
            if not used.isdisjoint(seated):
                return f"rack {place.rack}: a node is given twice"
            used |= seated
    return None


def _cells(place: SlicePlacement, fleet: Fleet, number: int) -> set[tuple[str, int, int]]:
    cells: set[tuple[str, int, int]] = set()
    for node in range(place.nodes.bit_length()):
        if place.nodes >> node & 1:
            gpus = place.gpus or (1 << fleet.node_at(number, node).gpus) - 1
            cells |= {
                (place.rack, node, gpu) for gpu in range(gpus.bit_length()) if gpus >> gpu & 1
            }
    return cells


def _withdrawn(fleet: Fleet, entry: DefragWithdrawn) -> str | None:
    plan = fleet.plans.get(entry.plan)
    if plan is None:
        return f"no plan {entry.plan} is in flight"
    served = fleet.jobs.get(plan.job)
    if served is not None and served.plan == plan.id and served.started == served.membership:
        return f"job {plan.job} has started"
    victims = {victim.job: victim for victim in plan.victims}
    unknown = [name for name in entry.spared if name not in victims]
    if unknown:
        return f"{unknown[0]} is no victim of {entry.plan}"
    return _spared(fleet, plan, entry)


def _spared(fleet: Fleet, plan: Plan, entry: DefragWithdrawn) -> str | None:
    """The spared can only go back where nobody but the plan's own jobs has been seated."""
    victims = {victim.job: victim for victim in plan.victims}
    freed: Freed = {}
    served = fleet.jobs.get(plan.job)
    if served is not None and served.plan == plan.id:
        freed = freed_by(fleet, (plan.job,))
    for name in entry.spared:
        for rack, masks in freed_by(fleet, (name,) if name in fleet.jobs else ()).items():
            freed.setdefault(rack, []).extend(masks)
    for name in entry.spared:
        job = live(fleet, name, *sorted(ASSIGNED))
        if isinstance(job, str):
            return job
        if job.membership != victims[name].membership or job.plan != plan.id:
            return f"job {name} has changed since the plan"
        for part in victims[name].before:
            problem = _can_return(fleet, job, part, freed)
            if problem is not None:
                return problem
    return None


def _can_return(fleet: Fleet, job: Job, part: Slice, freed: Freed) -> str | None:
    rack = fleet.racks[part.rack]
    need = FITNESS_ORDER[need_of(job.spec, len(job.slices))]
    for rank, place in enumerate(part.nodes, part.first_rank):
        node = rack.nodes[place]
        if part.worker(job.id, rank) not in fleet.leaving:
            return f"{part.worker(job.id, rank)} has ended"
        if node.session is None or node.suspected or node.draining:
            return f"node {node.name} is not in service"
        if FITNESS_ORDER[node.fitness] < need:
            return f"node {node.name} is fit for {node.fitness} only"
        wanted = part.gpus or (1 << node.gpus) - 1
        if taken_with(rack, place, freed) & wanted:
            return f"node {node.name} is taken"
    return None


def _finished(fleet: Fleet, entry: DefragFinished) -> str | None:
    return None if entry.plan in fleet.plans else f"no plan {entry.plan} is in flight"


RULES: dict[str, Callable[[Fleet, Any], str | None]] = {
    "slice.swapped": _swapped,
    "slice.moved": _moved,
    "slice.restarted": _restarted,
    "defrag.planned": _planned,
    "defrag.withdrawn": _withdrawn,
    "defrag.finished": _finished,
}
