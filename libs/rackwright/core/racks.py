"""A rack in the fleet: its nodes, who sits on them, and the counters placement reads."""

from dataclasses import dataclass, field

from rackwright.core.evolve import evolve
from rackwright.wire.ids import JobId, NodeId, SessionId, WorkerId
from rackwright.wire.nodes import (
    FITNESS_ORDER,
    Fitness,
    Hardware,
    RackFitness,
    RackSpec,
    RepairAction,
)
from rackwright.wire.policy import Policy

TAKES_GANGS = FITNESS_ORDER[Fitness.RACK]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A fault of this node that took it out; `at` is ledger time."""

    at: float
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. Until it has joined it has no session and fitness none.

    `last` is the sequence of its newest entry, which observations must name. `suspected` is the
    sequence of the entry that recalled its lease, 0 when it is not suspected. `kind` groups nodes
    that are alike for placement (model, driver, labels).
    """

    name: NodeId
    gpus: int
    fitness: Fitness = Fitness.NONE
    session: SessionId | None = None
    boot: str = ""
    hardware: Hardware | None = None
    kind: str = ""
    cordoned: bool = False
    draining: bool = False
    suspected: int = 0
    suspected_at: float = 0.0
    failed: bool = False
    probation_until: float = 0.0
    faults: tuple[NodeFault, ...] = ()
    repair: RepairAction | None = None
    repair_at: float = 0.0
    why: str = ""
    last: int = 0

    @property
    def schedulable(self) -> bool:
        """Joined, of some use, and neither suspected nor cordoned."""
        return (
            self.session is not None
            and self.fitness is not Fitness.NONE
            and not self.suspected
            and not self.cordoned
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """One slice of one job in this rack: the nodes it has (`mask`) and, in part of one, `gpus`.

    `protected`: spares are kept beside it. `pinned`: nobody may move it. `lent`: on spares.
    """

    job: JobId
    slice: int
    mask: int
    gpus: int
    protected: bool
    pinned: bool
    lent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A worker that is to end on `node` (a place) and whose end no entry has recorded yet."""

    worker: WorkerId
    node: int
    gpus: int
    notice_s: float = 0.0
    grace_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RackShape:
    """What placement needs of a rack, small enough to group racks by it.

    `usable` free whole nodes that take gang work now; `target` spares it wants beside protected
    slices; `empty` no tenant; `size` nodes in all; `demerit` bad history 0..2; `pinned` nodes under
    pinned work; `open` it takes new slices at all; `kind` what its usable nodes are, or "" when
    they differ or some are of fitness rack only: then each must be looked at.
    """

    usable: int
    target: int
    empty: bool
    size: int
    demerit: int
    pinned: int
    open: bool
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """One NVLink domain. Masks have bit i for the node at place i of `nodes`.

    `number` is its place in the order of definition. `free` nodes have no tenant; `takes` nodes may
    get gang work (fit, not suspected, cordoned, held, or on probation). `partial` lists nodes used
    in part with the mask of their taken GPUs. `shape` and `free_gpus` feed the index.
    """

    spec: RackSpec
    number: int
    nodes: tuple[Node, ...]
    fitness: RackFitness = RackFitness.GOOD
    isolated: bool = False
    held_until: float = 0.0
    held_by: str = ""
    demerits: tuple[float, ...] = ()
    tenancies: tuple[Tenancy, ...] = ()
    leaving: tuple[Leaving, ...] = ()
    free: int = 0
    takes: int = 0
    takes_full: int = 0
    partial: tuple[tuple[int, int], ...] = ()
    protected: int = 0
    pinned: int = 0
    lent: int = 0
    shape: RackShape = field(
        default=RackShape(
            usable=0, target=0, empty=True, size=0, demerit=0, pinned=0, open=False, kind=""
        )
    )
    free_gpus: int = 0

    @property
    def usable(self) -> int:
        """Mask of free nodes that take gang work now."""
        return self.free & self.takes

    def tenants_at(self, node: int) -> tuple[Tenancy, ...]:
        """Slices that have (part of) the node at this place."""
        bit = 1 << node
        return tuple(t for t in self.tenancies if t.mask & bit)

    def taken_gpus(self, node: int) -> int:
        """Mask of the GPUs that are taken on the node at this place."""
        if not self.free >> node & 1:
            for place, taken in self.partial:
                if place == node:
                    return taken
            return (1 << self.nodes[node].gpus) - 1
        return 0


def spare_target(policy: Policy, protected_nodes: int) -> int:
    """Spares wanted beside that many protected nodes: 0, 1 (2 to 4) or 2 (more)."""
    if protected_nodes == 0:
        return 0
    return policy.spares_small if protected_nodes <= 4 else policy.spares_large


def refresh_health(rack: Rack, policy: Policy, now: float) -> Rack:
    """Recompute what depends on the nodes' health and on time; call when one of them changed."""
    takes = takes_full = 0
    if not rack.isolated and rack.held_until <= now and rack.fitness is RackFitness.GOOD:
        for place, node in enumerate(rack.nodes):
            if not node.schedulable or node.probation_until > now:
                continue
            if FITNESS_ORDER[node.fitness] >= TAKES_GANGS:
                takes |= 1 << place
                if node.fitness is Fitness.FULL:
                    takes_full |= 1 << place
    return refresh_use(evolve(rack, takes=takes, takes_full=takes_full), policy)


def refresh_use(rack: Rack, policy: Policy) -> Rack:
    """Recompute what depends on who sits in the rack."""
    taken = protected = pinned = lent = 0
    parts: dict[int, int] = {}
    for tenancy in rack.tenancies:
        taken |= tenancy.mask
        if tenancy.gpus:
            place = tenancy.mask.bit_length() - 1
            parts[place] = parts.get(place, 0) | tenancy.gpus
        if tenancy.protected:
            protected |= tenancy.mask
        if tenancy.pinned:
            pinned |= tenancy.mask
        if tenancy.lent:
            lent |= tenancy.mask
    free = ((1 << len(rack.nodes)) - 1) & ~taken
    made = evolve(
        rack,
        free=free,
        protected=protected,
        pinned=pinned,
        lent=lent,
        partial=tuple(sorted(parts.items())) if parts else (),
    )
    return _reshape(made, policy)


def _reshape(rack: Rack, policy: Policy) -> Rack:
    usable = rack.free & rack.takes
    shape = RackShape(
        usable=usable.bit_count(),
        target=spare_target(policy, rack.protected.bit_count()),
        empty=not rack.tenancies,
        size=len(rack.nodes),
        demerit=min(2, len(rack.demerits)),
        pinned=rack.pinned.bit_count(),
        open=rack.takes != 0,
        kind=_kind(rack, usable),
    )
    return evolve(rack, shape=shape, free_gpus=_free_gpu_counts(rack))


def _kind(rack: Rack, usable: int) -> str:
    if usable & ~rack.takes_full:
        return ""
    kind = ""
    while usable:
        low = usable & -usable
        node = rack.nodes[low.bit_length() - 1]
        if kind and node.kind != kind:
            return ""
        kind = node.kind
        usable ^= low
    return kind


def _free_gpu_counts(rack: Rack) -> int:
    """Bit k is set when a partly used, schedulable node has exactly k GPUs free."""
    counts = 0
    for place, taken in rack.partial:
        node = rack.nodes[place]
        if node.schedulable and rack.takes >> place & 1:
            counts |= 1 << (node.gpus - taken.bit_count())
    return counts & ~1
