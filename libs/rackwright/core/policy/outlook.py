"""Whether a job would fit if some things were otherwise: repaired, released, moved."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import inf

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, need_of
from rackwright.core.policy.ask import Ask, Same
from rackwright.core.policy.cut import Cut
from rackwright.core.policy.draft import Draft
from rackwright.core.policy.guarantees import owed, takes_back
from rackwright.core.policy.nominal import bins_of, fitting, scattered
from rackwright.core.policy.pinning import Checkpoints, stays
from rackwright.core.rackhealth import refresh_health, without_kept
from rackwright.core.racks import Rack
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import Fitness

NodesOf = Callable[[Rack], int]
"""The nodes of a rack that a job could have if something were otherwise."""


def held_racks(fleet: Fleet) -> list[Rack]:
    """Racks that an operator holds now."""
    closed = 0
    for shape, racks in fleet.index.by_shape.items():
        if not shape.open:
            closed |= racks
    held = (fleet.racks[number] for number in bits(closed))
    return [rack for rack in held if rack.held_until > fleet.time]


def released(fleet: Fleet) -> Fleet:
    """The fleet without holds, maintenance and nodes that are kept for failed jobs."""
    held = held_racks(fleet)
    if not held and not fleet.maintenance and not fleet.kept:
        return fleet
    racks, index = fleet.racks, fleet.index
    numbers = {rack.number for rack in held} | {one for kept in fleet.kept.values() for one in kept}
    for rack in (racks[number] for number in sorted(numbers)):
        free = evolve(without_kept(rack, inf), held_until=0.0)
        after = refresh_health(free, fleet.policy, fleet.time)
        racks, index = racks.set(rack.number, after), index.moved(rack, after)
    return evolve(fleet, racks=racks, index=index, maintenance=())


def fitting_slices(fleet: Fleet, ask: Ask, made: Cut, nodes_of: NodesOf) -> int:
    """How many slices of the job fit on nodes that are alike; at most as many as it has."""
    asked = [piece.nodes for piece in made.pieces]
    largest, most = max(asked), ask.spec.max_per_rack
    found: dict[Same, list[int]] = {}
    slots: dict[Same, int] = {}
    for same, free in _free(fleet, ask, nodes_of):
        found.setdefault(same, []).append(free)
        here = free // largest if most is None else min(most, free // largest)
        slots[same] = slots.get(same, 0) + here
        if slots[same] >= len(asked):
            return len(asked)
    loose = scattered(made) and not made.pieces[0].gpus
    return max(
        (
            len(asked) if loose and sum(free) >= sum(asked) else _packed(free, asked, most)
            for free in found.values()
        ),
        default=0,
    )


def _packed(free: list[int], asked: list[int], most: int | None) -> int:
    return fitting(bins_of((nodes, 1) for nodes in free), asked, most)


def _free(fleet: Fleet, ask: Ask, nodes_of: NodesOf) -> Iterator[tuple[Same, int]]:
    draft = Draft(fleet=fleet, ask=ask)
    for number in bits(ask.racks):
        rack = fleet.racks[number]
        nodes = nodes_of(rack) & ~ask.barred.get(number, 0)
        for alike in draft.alike(rack, nodes) if nodes else ():
            same = ask.same_of(rack.nodes[alike.bit_length() - 1])
            if same is not None:
                yield same, alike.bit_count()


def built(ask: Ask) -> NodesOf:
    """Every node that the job could ever have: they have joined, and are what it asks for."""

    def nodes(rack: Rack) -> int:
        return sum(1 << place for place, node in enumerate(rack.nodes) if node.hardware is not None)

    return nodes


def healthy(fleet: Fleet, ask: Ask) -> NodesOf:
    """Nodes that are fit, whoever has them."""
    solo = need_of(ask.spec, 1) is Fitness.SOLO
    one = ask.spec.gpus is not None or ask.spec.nodes == 1

    def nodes(rack: Rack) -> int:
        if ask.across:
            return rack.takes_full
        odd = rack.takes_one & ~rack.takes if one else 0
        fit = rack.takes
        for place in bits(odd):
            fit |= (solo or rack.nodes[place].fitness is not Fitness.SOLO) << place
        return fit

    return nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class InTheWay:
    """A blocked job, what it asks for, and when others saved their last checkpoints."""

    fleet: Fleet
    blocked: Job
    slices: int
    gpus: int
    checkpoints: Checkpoints


def movable(case: InTheWay, ask: Ask, made: Cut) -> NodesOf:
    """Fit nodes that are free, or have only work that may make room for this job. Each rack of the
    fleet and each job in it is looked at once, however often it is asked for."""
    fit = healthy(case.fleet, ask)
    part = made.pieces[0].gpus

    @cache
    def stands(victim: JobId) -> bool:
        return pins(case, victim)

    @cache
    def look(number: int) -> int:
        rack = case.fleet.racks[number]
        found = fit(rack)
        stays: dict[int, int] = {}
        for tenancy in rack.tenancies:
            if found & tenancy.mask and stands(tenancy.job):
                for place in bits(tenancy.mask):
                    whole = (1 << rack.nodes[place].gpus) - 1
                    stays[place] = stays.get(place, 0) | (tenancy.gpus or whole)
        for place, taken in stays.items():
            left = rack.nodes[place].gpus - taken.bit_count()
            if not part or left < part:
                found &= ~(1 << place)
        return found

    return lambda rack: look(rack.number)


def pins(case: InTheWay, victim: JobId) -> bool:
    """May this work not make room for the blocked job? The rules are those of plans but for what
    passes by itself: that it is young, was moved lately, starts or is wounded.

    At equal priority only smaller work makes room, so A moves B moves A cannot occur. Who is owed
    its place takes it back from any priority.
    """
    job = case.fleet.jobs[victim]
    theirs, ours = job.spec.priority, case.blocked.spec.priority
    if theirs >= ours and _takes_back(case, job):
        return stays(case.fleet, job, case.checkpoints, case.fleet.time) is not None
    if theirs > ours or (theirs == ours and _as_large(case, job)):
        return True
    return stays(case.fleet, job, case.checkpoints, case.fleet.time) is not None


def _takes_back(case: InTheWay, victim: Job) -> bool:
    blocked = case.blocked
    return owed(case.fleet, blocked, case.gpus) and takes_back(
        case.fleet, blocked.spec.queue, victim
    )


def _as_large(case: InTheWay, job: Job) -> bool:
    """Has this work of one slice as much as the blocked job asks for?"""
    if len(job.slices) > 1:
        return False
    part = job.slices[0]
    taken = part.gpus.bit_count() or part.size * case.fleet.topology.gpus_per_node
    return (1, taken) >= (case.slices, case.gpus)
