"""What the GPUs of one rack do, counted with sets of nodes.

What is wrong with which node is looked at when a node has changed, and not each time that a slice
comes or goes. Racks that are out as a whole, have a part in maintenance, or nodes with more or
fewer GPUs than they were defined with are looked at node by node, by `occupancy.rack_use`; both
agree.
"""

from collections import Counter
from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.index import places
from rackwright.core.occupancy import GpuState, RackUse, rack_use, working
from rackwright.core.racks import Node, Rack
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import Fitness, RackFitness
from rackwright.wire.quick import quick


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Sets of the nodes of a rack, by what is wrong with them; `probation` with the end of it.

    `as_defined`: each has as many GPUs as the rack was defined with.
    """

    nodes: tuple[Node, ...]
    as_defined: bool
    gone: int
    suspected: int
    draining: int
    kept: int
    probation: tuple[tuple[float, int], ...]


def health_of(rack: Rack) -> Health:
    """Looks at every node."""
    gone = suspected = draining = kept = 0
    probation: list[tuple[float, int]] = []
    for place, node in enumerate(rack.nodes):
        bit = 1 << place
        if node.failed or node.session is None or node.fitness is Fitness.NONE:
            gone |= bit
        elif node.suspected:
            suspected |= bit
        elif node.draining or node.cordoned:
            draining |= bit
        if node.kept_for is not None:
            kept |= bit
        if node.probation_until:
            probation.append((node.probation_until, bit))
    return Health(
        nodes=rack.nodes,
        as_defined=all(node.gpus == rack.spec.gpus_per_node for node in rack.nodes),
        gone=gone,
        suspected=suspected,
        draining=draining,
        kept=kept,
        probation=tuple(probation),
    )


class RackUses:
    """Counts racks again and again, and remembers what is wrong with their nodes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, Health] = {}

    def of(
        self,
        fleet: Fleet,
        number: int,
        slice_nodes: int,
        now: float,
        out: frozenset[str],
        spare: int,
    ) -> RackUse:
        """See `occupancy.rack_use`."""
        rack = fleet.racks[number]
        health = self._known.get(number)
        if health is None or health.nodes is not rack.nodes:
            health = self._known[number] = health_of(rack)
        good = rack.fitness is RackFitness.GOOD and not rack.isolated
        if out or not good or not health.as_defined:
            return rack_use(fleet, number, slice_nodes, now, out, spare)
        kept = _spares(rack, bool(spare >> number & 1))
        return counted_use(fleet, rack, health, slice_nodes, now, kept)


def counted_use(
    fleet: Fleet, rack: Rack, health: Health, slice_nodes: int, now: float, kept: int
) -> RackUse:
    """The same for a rack in service whose nodes have the GPUs that they should have; `kept` are
    its spares."""
    states: dict[GpuState, int] = {}
    gpus, gone = rack.spec.gpus_per_node, health.gone
    there = ((1 << len(rack.nodes)) - 1) & ~gone
    jobs, used = _at_work(fleet, rack, gpus, gone, states)
    rest = (there & ~rack.free).bit_count() * gpus - used
    if rest:
        _count_rest(rack, health, gpus, rest, states)
    if gone:
        states[GpuState.DOWN_NODE] = gone.bit_count() * gpus
    free = rack.free & there
    if free:
        _count_free(rack, health, free, now, slice_nodes, kept, states)
    return RackUse(states=Counter(states), jobs=jobs)


def _at_work(
    fleet: Fleet, rack: Rack, gpus: int, gone: int, states: dict[GpuState, int]
) -> tuple[dict[JobId, tuple[int, int]], int]:
    """Count the GPUs that tenants have on nodes that are there; by job, and all of them."""
    jobs: dict[JobId, tuple[int, int]] = {}
    used = 0
    all_jobs = fleet.jobs
    for tenancy in rack.tenancies:
        name = tenancy.job
        state = working(all_jobs[name], tenancy)
        mask = tenancy.mask & ~gone
        if tenancy.gpus:
            mine = tenancy.gpus.bit_count() if mask else 0
        else:
            mine = mask.bit_count() * gpus
        used += mine
        states[state] = states.get(state, 0) + mine
        if state is GpuState.USEFUL:
            useful, lent = jobs.get(name, (0, 0))
            jobs[name] = (useful + mine, lent)
        elif state is GpuState.LENT_USEFUL:
            useful, lent = jobs.get(name, (0, 0))
            jobs[name] = (useful, lent + mine)
    return jobs, used


def _count_rest(
    rack: Rack, health: Health, gpus: int, rest: int, states: dict[GpuState, int]
) -> None:
    """GPUs that nobody has on nodes that are used in part."""
    for state, mask in (
        (GpuState.SUSPECTED, health.suspected),
        (GpuState.DRAINING, health.draining),
    ):
        for place, taken in rack.partial if mask else ():
            if mask >> place & 1:
                mine = gpus - taken.bit_count()
                states[state] = states.get(state, 0) + mine
                rest -= mine
    if rest:
        states[GpuState.FRAGMENT] = states.get(GpuState.FRAGMENT, 0) + rest


def _count_free(
    rack: Rack,
    health: Health,
    free: int,
    now: float,
    slice_nodes: int,
    kept: int,
    states: dict[GpuState, int],
) -> None:
    """Nodes without a tenant, each counted by the first that holds of it."""
    gpus = rack.spec.gpus_per_node
    for state, mask in (
        (GpuState.SUSPECTED, health.suspected),
        (GpuState.DRAINING, health.draining),
        (GpuState.CLEANING, _cleaning(rack) if rack.leaving else 0),
        (GpuState.HELD, health.kept),
        (GpuState.PROBATION, _on_probation(health, now) if health.probation else 0),
        (GpuState.HELD, free if rack.held_until > now else 0),
        (GpuState.SPARE, kept),
    ):
        mine = free & mask
        if mine:
            states[state] = states.get(state, 0) + mine.bit_count() * gpus
            free ^= mine
    if free:
        whole = rack.shape.usable >= slice_nodes > 0
        idle = GpuState.WHOLE_FREE if whole else GpuState.FRAGMENT
        states[idle] = states.get(idle, 0) + free.bit_count() * gpus


def _cleaning(rack: Rack) -> int:
    mask = 0
    for leaving in rack.leaving:
        mask |= 1 << leaving.node
    return mask


def _on_probation(health: Health, now: float) -> int:
    return sum(bit for until, bit in health.probation if until > now)


def _spares(rack: Rack, whole: bool) -> int:
    """See `occupancy.spares`; `whole`: it is a spare rack of the cell."""
    if whole:
        return rack.usable
    if not rack.shape.target:
        return 0
    return sum(1 << place for place in places(rack.usable)[-rack.shape.target :])
