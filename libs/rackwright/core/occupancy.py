"""What every node and every GPU of the cell is doing now, and what could still start.

Each installed GPU is in exactly one state (policy page, section 4), as far as a fleet can
tell: work that a job will have to do again (`lost`) shows only later, see `accounts`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits, places
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.ask import spare_racks
from rackwright.core.policy.cut import whole_slice
from rackwright.core.racks import Node, Rack, Tenancy
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import Fitness, RackFitness
from rackwright.wire.quick import quick

SIZES = (1, 2, 4, 8, 16, 17, 18)


class NodeUse(StrEnum):
    """One word for a node; trouble comes before use, a node in trouble may still have work."""

    ABSENT = "absent"
    FAILED = "failed"
    UNFIT = "unfit"
    SUSPECTED = "suspected"
    DRAINING = "draining"
    CORDONED = "cordoned"
    USED = "used"
    PART = "part"
    LENT = "lent"
    CLEANING = "cleaning"
    PROBATION = "probation"
    HELD = "held"
    KEPT = "kept"
    SPARE = "spare"
    FREE = "free"


class GpuState(StrEnum):
    """What a GPU does."""

    USEFUL = "useful"
    LOST = "lost"
    RESTARTING = "restarting"
    STALLED = "stalled"
    LENT_USEFUL = "lent_useful"
    SPARE = "spare"
    FRAGMENT = "fragment"
    WHOLE_FREE = "whole_free"
    HELD = "held"
    DRAINING = "draining"
    CLEANING = "cleaning"
    PROBATION = "probation"
    SUSPECTED = "suspected"
    DOWN_NODE = "down_node"
    DOWN_RACK = "down_rack"
    MAINTENANCE = "maintenance"


AT_WORK = frozenset({GpuState.USEFUL, GpuState.RESTARTING, GpuState.STALLED, GpuState.LENT_USEFUL})
OUT = frozenset(
    {
        GpuState.DRAINING,
        GpuState.SUSPECTED,
        GpuState.DOWN_NODE,
        GpuState.DOWN_RACK,
        GpuState.MAINTENANCE,
    }
)


def node_use(rack: Rack, place: int, now: float, kept: frozenset[int] | None = None) -> NodeUse:
    """The one word for the node at this place of the rack, at ledger time `now`.

    `kept`: what `spares` says; without it, the rack is taken to be none of the cell's spare racks.
    """
    node = rack.nodes[place]
    trouble = _trouble(node)
    if trouble is not None:
        return trouble
    tenants = rack.tenants_at(place)
    if tenants:
        if any(tenant.lent for tenant in tenants):
            return NodeUse.LENT
        return NodeUse.PART if any(tenant.gpus for tenant in tenants) else NodeUse.USED
    if any(leaving.node == place for leaving in rack.leaving):
        return NodeUse.CLEANING
    if node.kept_for is not None:
        return NodeUse.KEPT
    if node.probation_until > now:
        return NodeUse.PROBATION
    if rack.held_until > now:
        return NodeUse.HELD
    return NodeUse.SPARE if place in (spares(rack) if kept is None else kept) else NodeUse.FREE


def _trouble(node: Node) -> NodeUse | None:
    checks = (
        (node.failed, NodeUse.FAILED),
        (node.session is None, NodeUse.ABSENT),
        (node.fitness is Fitness.NONE, NodeUse.UNFIT),
        (bool(node.suspected), NodeUse.SUSPECTED),
        (node.draining, NodeUse.DRAINING),
        (node.cordoned, NodeUse.CORDONED),
    )
    return next((use for holds, use in checks if holds), None)


def spares(rack: Rack, whole: int = 0) -> frozenset[int]:
    """Places of the free nodes that are kept beside protected slices: the last ones. In a spare
    rack of the cell (`whole` is the set of these) they are all of the free ones."""
    free = list(bits(rack.usable))
    if whole >> rack.number & 1:
        return frozenset(free)
    return frozenset(free[-rack.shape.target :] if rack.shape.target else ())


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class RackUse:
    """GPUs of one rack by state, and of each job that works there its (useful, lent) ones."""

    states: Counter[GpuState]
    jobs: dict[JobId, tuple[int, int]]


def gpu_states(fleet: Fleet, now: float) -> Counter[GpuState]:
    """Installed GPUs by what they do. Looks at every node."""
    found: Counter[GpuState] = Counter()
    slice_nodes = whole_slice(fleet.policy, fleet.topology)
    out, whole = in_maintenance(fleet, now), spare_racks(fleet)
    for number in fleet.racks:
        found.update(rack_use(fleet, number, slice_nodes, now, out, whole).states)
    return found


def in_maintenance(fleet: Fleet, now: float) -> frozenset[str]:
    """Racks and nodes whose planned absence has begun."""
    open_now = [one for one in fleet.maintenance if one.begin <= now < one.end]
    return frozenset(name for one in open_now for name in (*one.racks, *one.nodes))


def rack_use(
    fleet: Fleet, number: int, slice_nodes: int, now: float, out: frozenset[str], whole: int
) -> RackUse:
    """What the GPUs of one rack do; `out` are racks and nodes in maintenance, `whole` the set of
    the cell's spare racks."""
    rack = fleet.racks[number]
    states: Counter[GpuState] = Counter()
    left = [node.gpus for node in rack.nodes]
    for place, node in enumerate(rack.nodes):
        gone = _gone(rack, node)
        if gone is not None:
            away = out and (rack.spec.rack in out or node.name in out)
            states[GpuState.MAINTENANCE if away else gone] += node.gpus
            left[place] = 0
    jobs = _at_work(fleet, rack, left, states)
    kept = spares(rack, whole)
    for place, gpus in enumerate(left):
        if gpus:
            away = out and (rack.spec.rack in out or rack.nodes[place].name in out)
            idle = _idle(rack, place, slice_nodes, now, kept)
            states[GpuState.MAINTENANCE if away else idle] += gpus
    return RackUse(states=states, jobs=jobs)


def _at_work(
    fleet: Fleet, rack: Rack, left: list[int], states: Counter[GpuState]
) -> dict[JobId, tuple[int, int]]:
    """Count the GPUs that tenants have, and take them off `left`."""
    jobs: dict[JobId, tuple[int, int]] = {}
    for tenancy in rack.tenancies:
        state = working(fleet.jobs[tenancy.job], tenancy)
        part, gpus = tenancy.gpus.bit_count(), 0
        for place in places(tenancy.mask):
            # A node that came back with fewer GPUs than its tenants have counts what it has.
            mine = min(part or left[place], left[place])
            left[place] -= mine
            gpus += mine
        states[state] += gpus
        useful, lent = jobs.get(tenancy.job, (0, 0))
        if state is GpuState.USEFUL:
            jobs[tenancy.job] = (useful + gpus, lent)
        elif state is GpuState.LENT_USEFUL:
            jobs[tenancy.job] = (useful, lent + gpus)
    return jobs


def _gone(rack: Rack, node: Node) -> GpuState | None:
    if rack.isolated or rack.fitness is RackFitness.DOWN:
        return GpuState.DOWN_RACK
    if node.failed or node.session is None or node.fitness is Fitness.NONE:
        return GpuState.DOWN_NODE
    return None


def working(job: Job, tenancy: Tenancy) -> GpuState:
    """What the GPUs of a tenant do. Work without GPUs keeps some idle."""
    if job.spec.gpus == 0:
        return GpuState.FRAGMENT
    if job.hurt:
        return GpuState.STALLED
    if job.state is JobState.PLACED or job.started < job.membership:
        return GpuState.RESTARTING
    return GpuState.LENT_USEFUL if tenancy.lent else GpuState.USEFUL


_IDLE = {
    NodeUse.SUSPECTED: GpuState.SUSPECTED,
    NodeUse.DRAINING: GpuState.DRAINING,
    NodeUse.CORDONED: GpuState.DRAINING,
    NodeUse.USED: GpuState.FRAGMENT,
    NodeUse.PART: GpuState.FRAGMENT,
    NodeUse.LENT: GpuState.FRAGMENT,
    NodeUse.CLEANING: GpuState.CLEANING,
    NodeUse.PROBATION: GpuState.PROBATION,
    NodeUse.HELD: GpuState.HELD,
    NodeUse.KEPT: GpuState.HELD,
    NodeUse.SPARE: GpuState.SPARE,
}


def _idle(rack: Rack, place: int, slice_nodes: int, now: float, kept: frozenset[int]) -> GpuState:
    """GPUs without a tenant on a node that is there."""
    if rack.fitness is not RackFitness.GOOD:
        return GpuState.DOWN_RACK
    state = _IDLE.get(node_use(rack, place, now, kept))
    if state is not None:
        return state
    return GpuState.WHOLE_FREE if rack.shape.usable >= slice_nodes > 0 else GpuState.FRAGMENT


def occupancy(states: Counter[GpuState]) -> float:
    """Share of the schedulable GPUs that have work; 0 in an empty cell."""
    schedulable = sum(count for state, count in states.items() if state not in OUT)
    at_work = sum(states[state] for state in AT_WORK)
    return at_work / schedulable if schedulable else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Startable:
    """What could start now. `slices`: by size in nodes. `room`: free nodes above spare targets.

    `whole` racks can take a full slice, `broken` cannot, `pinned` of the broken never could without
    touching pinned work. `fragmentation` is 1 - (slice x startable slices) / room; 0 without room.
    """

    slices: dict[int, int]
    room: int
    whole: int
    broken: int
    pinned: int
    fragmentation: float


def startable(fleet: Fleet) -> Startable:
    """Counted from racks by shape, not rack by rack; in the cell's spare racks nothing starts."""
    size = whole_slice(fleet.policy, fleet.topology)
    wanted = sorted({one for one in (*SIZES, size) if 0 < one <= fleet.topology.largest_rack})
    slices = dict.fromkeys(wanted, 0)
    whole = broken = pinned = 0
    room, spared = fleet.index.room, spare_racks(fleet)
    for shape, racks in fleet.index.by_shape.items():
        room -= (shape.usable - shape.target) * (racks & spared).bit_count()
        count = (racks & ~spared).bit_count()
        for one in wanted:
            slices[one] += count * (shape.usable // one)
        if shape.usable >= size > 0:
            whole += count
        else:
            broken += count
            pinned += count * (shape.size - shape.pinned < size)
    share = size * slices.get(size, 0) / room if room else 1.0
    return Startable(
        slices=slices,
        room=room,
        whole=whole,
        broken=broken,
        pinned=pinned,
        fragmentation=max(0.0, 1.0 - share),
    )


def block_fragmentation(available: Sequence[Sequence[bool]]) -> int:
    """Slurm's metric of its block topology, of base blocks with their nodes: is each available?

    Unavailable nodes, and for each size of block (a base block, two of them, four ...) the nodes of
    those that have an unavailable one. A block that would reach beyond the last is none.
    """
    total, span = 0, 1
    while span <= len(available):
        for first in range(0, len(available) - span + 1, span):
            nodes = [node for block in available[first : first + span] for node in block]
            total += 0 if all(nodes) else len(nodes)
        span *= 2
    return total + sum(not node for block in available for node in block)


def slurm_fragmentation(fleet: Fleet) -> int:
    """That metric of the cell's racks, in the order of their definition."""
    return block_fragmentation(
        [
            [bool(rack.usable >> place & 1) for place in range(len(rack.nodes))]
            for _, rack in sorted(fleet.racks.items())
        ]
    )
