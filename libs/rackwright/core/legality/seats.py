"""May these nodes be given to this job? Used by placements, swaps, moves and plans alike."""

from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import ASSIGNED, Job, JobState, need_of
from rackwright.core.racks import Node, Rack
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.nodes import FITNESS_ORDER, Fitness

Freed = dict[int, list[tuple[int, int]]]
"""By rack number: (node mask, GPU mask or 0 for all) that earlier parts of the entry set free."""


def live(fleet: Fleet, name: JobId, *states: JobState) -> Job | str:
    """The job if it is in one of these states, else what is wrong."""
    job = fleet.jobs.get(name)
    if job is None:
        stone = fleet.tombstones.get(name)
        return f"job {name} is {stone.state}" if stone is not None else f"no job {name}"
    if states and job.state not in states:
        return f"job {name} is {job.state}, must be {' or '.join(states)}"
    return job


def next_membership(job: Job, membership: int) -> str | None:
    """Memberships go up by one."""
    if membership != job.membership + 1:
        return f"membership {membership} of {job.id} must be {job.membership + 1}"
    return None


def freed_by(fleet: Fleet, jobs: Iterable[JobId]) -> Freed:
    """What these jobs would give back if all of their slices left."""
    freed: Freed = {}
    for name in jobs:
        for part in fleet.jobs[name].slices:
            freed.setdefault(part.rack, []).append((part.mask, part.gpus))
    return freed


def evictable(fleet: Fleet, name: JobId) -> str | None:
    """May this job be taken off its nodes for the sake of another? Interactive work never."""
    job = live(fleet, name, *sorted(ASSIGNED))
    if isinstance(job, str):
        return job
    spec = job.spec
    if job.state is JobState.FINISHING:
        return f"job {name} is finishing"
    if job.pinned_by:
        return f"job {name} is pinned by {job.pinned_by}"
    if not spec.preemptible or not spec.restartable:
        return f"job {name} is not preemptible and restartable"
    movable = spec.queue in fleet.policy.interactive_movable_queues
    if spec.job_class is JobClass.INTERACTIVE and not movable:
        return f"job {name} is interactive"
    return None


def node_takes(node: Node, need: Fitness) -> str | None:
    """May this node have new work: in service, not cordoned, and fit enough?"""
    if node.kept_for is not None:
        return f"node {node.name} is kept for {node.kept_for}"
    return f"node {node.name} is cordoned" if node.cordoned else node_keeps(node, need)


def node_keeps(node: Node, need: Fitness) -> str | None:
    """May work that has this node start on it again? A cordon is about new work, a drain is not."""
    if node.session is None:
        return f"node {node.name} has no session"
    if node.suspected or node.draining:
        return f"node {node.name} is {'suspected' if node.suspected else 'drained'}"
    if FITNESS_ORDER[node.fitness] < FITNESS_ORDER[need]:
        return f"node {node.name} is fit for {node.fitness}, {need} is needed"
    return None


def taken_with(rack: Rack, place: int, freed: Freed) -> int:
    """Mask of the GPUs of a node that stay taken when `freed` is given back."""
    whole = (1 << rack.nodes[place].gpus) - 1
    taken = rack.taken_gpus(place)
    for mask, gpus in freed.get(rack.number, ()):
        if mask >> place & 1:
            taken &= ~(gpus or whole)
    return taken


def seats(
    fleet: Fleet,
    job: Job,
    placements: Iterable[SlicePlacement],
    freed: Freed,
    *,
    besides: int = 0,
) -> str | None:
    """May all these slices be seated together, when `freed` is given back first?

    `besides`: slices of the job that stay where they are and are not among these.
    """
    parts = list(placements)
    need = need_of(job.spec, max(len(parts) + besides, len(job.slices)))
    if _ordinary(fleet, parts, need):
        return None
    given: dict[int, dict[int, int]] = {}
    for part in parts:
        number = fleet.rack_numbers.get(part.rack)
        if number is None:
            return f"no rack {part.rack}"
        problem = _seat(fleet, fleet.racks[number], part, need, freed, given)
        if problem is not None:
            return problem
    return None


def _ordinary(fleet: Fleet, parts: list[SlicePlacement], need: Fitness) -> bool:
    """Whole nodes that are free and fit, each slice in a rack of its own: two masks say so."""
    seen = set()
    for part in parts:
        number = fleet.rack_numbers.get(part.rack)
        if number is None or part.gpus or not part.nodes:
            return False
        rack = fleet.racks[number]
        takes = rack.takes_full if need is Fitness.FULL else rack.takes
        if part.nodes & ~(rack.free & takes) or rack.held_until > fleet.time:
            return False
        seen.add(number)
    return len(seen) == len(parts)


def _seat(
    fleet: Fleet,
    rack: Rack,
    part: SlicePlacement,
    need: Fitness,
    freed: Freed,
    given: dict[int, dict[int, int]],
) -> str | None:
    """`given` holds, by rack and place, the GPUs that earlier slices of the entry got."""
    if part.nodes == 0 or part.nodes >> len(rack.nodes):
        return f"nodes {part.nodes:#x} are not of rack {part.rack}"
    if rack.held_until > fleet.time:
        return f"rack {part.rack} is held"
    if part.gpus and part.nodes & (part.nodes - 1):
        return "part of a node means one node"
    here = given.setdefault(rack.number, {})
    for place in bits(part.nodes):
        problem = _seat_node(rack, place, part.gpus, need, freed, here)
        if problem is not None:
            return problem
    return None


def _seat_node(
    rack: Rack, place: int, gpus: int, need: Fitness, freed: Freed, here: dict[int, int]
) -> str | None:
    node = rack.nodes[place]
    problem = node_takes(node, need)
    if problem is not None:
        return problem
    whole = (1 << node.gpus) - 1
    wanted = gpus or whole
    taken = taken_with(rack, place, freed) | here.get(place, 0)
    if wanted & ~whole or taken & wanted or (not gpus and taken):
        return f"node {node.name} is taken"
    here[place] = here.get(place, 0) | wanted
    return None


def sizes(spec: JobSpec, gpus_per_node: int) -> tuple[int, int]:
    """Fewest and most ranks this job may be placed with."""
    if spec.groups:
        least = sum(
            group.nodes * (group.min_replicas if group.min_replicas is not None else group.replicas)
            for group in spec.groups
        )
        return least, sum(group.nodes * group.replicas for group in spec.groups)
    if spec.nodes is not None:
        return spec.nodes, spec.nodes
    gpus = spec.gpus or 1
    if gpus <= gpus_per_node:
        return 1, 1
    ranks = -(-gpus // gpus_per_node)
    return ranks, ranks


def whole_job(fleet: Fleet, job: Job, placements: tuple[SlicePlacement, ...]) -> str | None:
    """A gang is placed whole: ranks without a gap, slices in order, no more and no fewer."""
    rank = 0
    for index, part in enumerate(placements):
        if part.index != index or part.first_rank != rank:
            return f"slice {part.index} at rank {part.first_rank}, expected {index} at {rank}"
        rank += part.nodes.bit_count()
    first = placements[0]
    if first.rack not in fleet.rack_numbers:
        return f"no rack {first.rack}"
    per_node = fleet.rack(first.rack).spec.gpus_per_node
    least, most = sizes(job.spec, per_node)
    if not least <= rank <= most:
        return f"{rank} ranks, {least} to {most} are wanted"
    return _gpus(job, placements, per_node)


def _gpus(job: Job, placements: tuple[SlicePlacement, ...], per_node: int) -> str | None:
    wanted = job.spec.gpus
    if wanted == 0:
        alone = len(placements) == 1 and placements[0].gpus and placements[0].lent
        return None if alone else "work without GPUs is lent the share of some GPUs of one node"
    if wanted is not None and wanted <= per_node:
        got = placements[0].gpus.bit_count() or per_node
        if len(placements) != 1 or got != wanted:
            return f"{got} GPUs, {wanted} are wanted"
    elif any(part.gpus for part in placements):
        return "whole nodes are wanted"
    return None
