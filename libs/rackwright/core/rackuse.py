"""What the GPUs of one rack do, counted with sets of nodes where all of its nodes are well.

Most racks are, at almost any time: then no node is looked at. A rack with trouble is looked at node
by node, by `occupancy.rack_use`, and both agree.
"""

from collections import Counter

from rackwright.core.fleet import Fleet
from rackwright.core.index import places
from rackwright.core.occupancy import GpuState, RackUse, rack_use, working
from rackwright.core.racks import Node, Rack
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import RackFitness


def alike(nodes: tuple[Node, ...], now: float) -> int:
    """GPUs of each of these nodes, if they are all well and have as many; else 0."""
    gpus = nodes[0].gpus if nodes else 0
    well = all(
        node.gpus == gpus
        and node.schedulable
        and not (node.failed or node.draining)
        and node.probation_until <= now
        for node in nodes
    )
    return gpus if well else 0


class RackUses:
    """Counts racks again and again, and remembers which have only well nodes."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[int, tuple[tuple[Node, ...], int]] = {}

    def of(
        self, fleet: Fleet, number: int, slice_nodes: int, now: float, out: frozenset[str]
    ) -> RackUse:
        """See `occupancy.rack_use`."""
        rack = fleet.racks[number]
        nodes, gpus = self._nodes.get(number, ((), 0))
        if nodes is not rack.nodes:
            gpus = alike(rack.nodes, now)
            # Of a node on probation nobody tells when it is over: it is looked at each time.
            if gpus:
                self._nodes[number] = (rack.nodes, gpus)
        plain = gpus and not out and rack.held_until <= now and not rack.isolated
        if not plain or rack.fitness is not RackFitness.GOOD:
            return rack_use(fleet, number, slice_nodes, now, out)
        return well_rack_use(fleet, rack, gpus, slice_nodes)


def well_rack_use(fleet: Fleet, rack: Rack, gpus: int, slice_nodes: int) -> RackUse:
    """The same for a rack in service whose nodes are all well and have so many GPUs each."""
    states: Counter[GpuState] = Counter()
    jobs: dict[JobId, tuple[int, int]] = {}
    used = 0
    for tenancy in rack.tenancies:
        state = working(fleet.jobs[tenancy.job], tenancy)
        mine = tenancy.gpus.bit_count() or tenancy.mask.bit_count() * gpus
        used += mine
        states[state] += mine
        useful, lent = jobs.get(tenancy.job, (0, 0))
        if state is GpuState.USEFUL:
            jobs[tenancy.job] = (useful + mine, lent)
        elif state is GpuState.LENT_USEFUL:
            jobs[tenancy.job] = (useful, lent + mine)
    free = rack.free
    rest = (len(rack.nodes) - free.bit_count()) * gpus - used
    if rest:
        states[GpuState.FRAGMENT] += rest
    if free:
        _count_free(rack, free, gpus, slice_nodes, states)
    return RackUse(states=states, jobs=jobs)


def _count_free(
    rack: Rack, free: int, gpus: int, slice_nodes: int, states: Counter[GpuState]
) -> None:
    """Nodes without a tenant: left to be cleaned, kept as spares, or free."""
    cleaning = 0
    for leaving in rack.leaving:
        cleaning |= 1 << leaving.node
    cleaning &= free
    if cleaning:
        states[GpuState.CLEANING] += cleaning.bit_count() * gpus
    kept = 0
    if rack.shape.target:
        for place in places(rack.usable)[-rack.shape.target :]:
            kept |= 1 << place
    kept &= free & ~cleaning
    if kept:
        states[GpuState.SPARE] += kept.bit_count() * gpus
    rest = free & ~cleaning & ~kept
    if rest:
        whole = rack.shape.usable >= slice_nodes > 0
        idle = GpuState.WHOLE_FREE if whole else GpuState.FRAGMENT
        states[idle] += rest.bit_count() * gpus
