"""A rack in the fleet: its nodes, who sits on them, and the counters placement reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rackwright.core.evolve import changer, evolve
from rackwright.core.shapes import NO_SHAPE, RackShape
from rackwright.wire.ids import JobId, NodeId, SessionId, WorkerId
from rackwright.wire.nodes import (
    MAX_GPUS,
    Fitness,
    Hardware,
    RackFitness,
    RackSpec,
    RepairAction,
    Witnesses,
)
from rackwright.wire.policy import Policy
from rackwright.wire.quick import quick

# Flags of `Rack.free_gpus`: k (1..MAX_GPUS) a partly used node with exactly k GPUs free, LENT + k
# the same on a node that is lent, ODD a node with room that takes only single-node work.
LENT = MAX_GPUS
ODD = 2 * MAX_GPUS + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A fault that took this node out: when (ledger time), in which boot, of which hardware."""

    at: float
    code: str
    boot: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What hardware of one serial did, in whatever slot; it was let in last at `cleared_at`."""

    faults: tuple[NodeFault, ...] = ()
    cleared_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. Until it has joined it has no session and fitness none.

    `last` is the sequence of its newest entry, which observations must name. `suspected` is the
    sequence of the entry that recalled its lease, 0 when it is not suspected. `kind` groups nodes
    that are alike for placement (model, driver, labels). `fenced` is the last session that was
    declared over: it is never admitted again. `recovered_at` is when it was last let in after a
    fault. `cordoned_for` is empty for an operator's cordon, else what it ends with. `check` is the
    sequence of the entry that asked for a check which has not been answered, 0 if there is none;
    `check_why` what the last one was for; `check_holds`: no work until it has been answered.
    `kept_for` is a job that failed here and whose owner looks at it until `kept_until`.
    `witnesses` are those of the live session, with the terms of the second tier of its lease.
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
    cordoned_for: str = ""
    suspected: int = 0
    suspected_at: float = 0.0
    failed: bool = False
    fenced: SessionId | None = None
    recovered_at: float = 0.0
    probation_until: float = 0.0
    faults: tuple[NodeFault, ...] = ()
    repair: RepairAction | None = None
    repair_at: float = 0.0
    repair_eta: float | None = None
    kept_for: JobId | None = None
    kept_until: float = 0.0
    why: str = ""
    last: int = 0
    check: int = 0
    check_why: str = ""
    check_holds: bool = False
    checked_at: float = 0.0
    check_passed: bool = False
    witnesses: Witnesses | None = None

    @property
    def schedulable(self) -> bool:
        """Joined, of some use, and neither suspected nor cordoned."""
        return (
            self.session is not None
            and self.fitness is not Fitness.NONE
            and not self.suspected
            and not self.cordoned
            and not (self.check and self.check_holds)
            and self.kept_for is None
        )


@quick
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


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A worker that is to end on `node` (a place) and whose end no entry has recorded yet.

    `after`: it serves on until its job runs at this membership, and only then is told; 0: at once.
    """

    worker: WorkerId
    node: int
    gpus: int
    notice_s: float = 0.0
    grace_s: float = 0.0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """One NVLink domain. Masks have bit i for the node at place i of `nodes`.

    `number` is its place in the order of definition. `free` nodes have no tenant; `takes` nodes may
    get gang work (fit, not suspected, cordoned, held, or on probation), `takes_full` those of them
    that are fit for jobs across racks, `takes_one` nodes that may get work of one node: `takes`
    and the ones on probation or of fitness solo. `kind` is what all of `takes` are, if they are
    alike. `partial` lists nodes used in part with the mask of their taken GPUs. `shape` and
    `free_gpus` feed the index.
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
    takes_one: int = 0
    kind: str = ""
    partial: tuple[tuple[int, int], ...] = ()
    protected: int = 0
    pinned: int = 0
    lent: int = 0
    shape: RackShape = NO_SHAPE
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
    """Spares wanted beside that many protected nodes: 0 (none), 1 (2 to 4) or 2 (more)."""
    if protected_nodes == 0:
        return policy.spares_idle
    return policy.spares_small if protected_nodes <= 4 else policy.spares_large


def refresh_use(rack: Rack, policy: Policy, **changes: Any) -> Rack:
    """The rack with these changes, and what depends on who sits in it computed anew."""
    rack = evolve(rack, **changes)
    whole = (1 << len(rack.nodes)) - 1
    taken, protected, pinned, lent, parts = _used(rack.tenancies, whole)
    partial = tuple(sorted(parts.items())) if parts else ()
    free = whole & ~taken
    return _with_use(rack, policy, rack.tenancies, free, protected, pinned, lent, partial)


def refresh_shape(rack: Rack, policy: Policy) -> Rack:
    """The rack with what depends on its nodes' health computed anew; who sits in it is the same."""
    use = rack.tenancies, rack.free, rack.protected, rack.pinned, rack.lent, rack.partial
    return _with_use(rack, policy, *use)


def _used(tenancies: Iterable[Tenancy], mask: int) -> tuple[int, int, int, int, dict[int, int]]:
    """Which nodes of `mask` these tenants have, are protected, pinned and lent, and of which they
    have only some GPUs, by place."""
    taken = protected = pinned = lent = 0
    parts: dict[int, int] = {}
    for tenancy in tenancies:
        here = tenancy.mask & mask
        if not here:
            continue
        taken |= here
        if tenancy.gpus:
            place = here.bit_length() - 1
            parts[place] = parts.get(place, 0) | tenancy.gpus
        if tenancy.protected:
            protected |= here
        if tenancy.pinned:
            pinned |= here
        if tenancy.lent:
            lent |= here
    return taken, protected, pinned, lent, parts


def seated(rack: Rack, policy: Policy, tenancy: Tenancy) -> Rack:
    """The rack with one more tenant. Looks at no other: this is in the life of every slice."""
    use = rack.tenancies, rack.free, rack.protected, rack.pinned, rack.lent, rack.partial
    return _with_use(rack, policy, *_and(use, tenancy))


def vacated(rack: Rack, policy: Policy, job: JobId, index: int) -> Rack:
    """The rack without one slice of a job.

    Its nodes come free unless another has part of them, as on a node that is used in part and in
    the middle of an entry that moves several jobs.
    """
    return _with_use(rack, policy, *_without(rack, job, index))


def reseated(rack: Rack, policy: Policy, tenancy: Tenancy) -> Rack:
    """The rack with a slice at other places than before: `vacated` and `seated` in one."""
    return _with_use(rack, policy, *_and(_without(rack, tenancy.job, tenancy.slice), tenancy))


_Use = tuple[tuple[Tenancy, ...], int, int, int, int, tuple[tuple[int, int], ...]]
"""Tenancies, and what follows from them: free, protected, pinned, lent, partial."""


def _and(use: _Use, tenancy: Tenancy) -> _Use:
    tenancies, free, protected, pinned, lent, partial = use
    mask = tenancy.mask
    if tenancy.gpus:
        place = mask.bit_length() - 1
        parts = dict(partial)
        parts[place] = parts.get(place, 0) | tenancy.gpus
        partial = tuple(sorted(parts.items()))
    return (
        (*tenancies, tenancy),
        free & ~mask,
        protected | mask if tenancy.protected else protected,
        pinned | mask if tenancy.pinned else pinned,
        lent | mask if tenancy.lent else lent,
        partial,
    )


def _without(rack: Rack, job: JobId, index: int) -> _Use:
    mask = others = 0
    rest = []
    for tenancy in rack.tenancies:
        if tenancy.slice == index and tenancy.job == job:
            mask |= tenancy.mask
        else:
            others |= tenancy.mask
            rest.append(tenancy)
    taken, protected, pinned, lent, parts = _used(rest if mask & others else (), mask)
    partial = rack.partial
    if partial:
        kept = (part for part in partial if not mask >> part[0] & 1)
        partial = tuple(sorted((*kept, *parts.items())) if parts else kept)
    return (
        tuple(rest),
        rack.free | mask & ~taken,
        rack.protected & ~mask | protected,
        rack.pinned & ~mask | pinned,
        rack.lent & ~mask | lent,
        partial,
    )


_USE = changer(
    Rack, "tenancies", "free", "protected", "pinned", "lent", "partial", "shape", "free_gpus"
)


def _with_use(
    rack: Rack,
    policy: Policy,
    tenancies: tuple[Tenancy, ...],
    free: int,
    protected: int,
    pinned: int,
    lent: int,
    partial: tuple[tuple[int, int], ...],
) -> Rack:
    """One copy of the rack for all of it, with the shape and the flags that follow."""
    takes = rack.takes
    odd = rack.takes_one & ~takes
    shape = RackShape(
        (free & takes).bit_count(),
        (free & rack.takes_full).bit_count(),
        spare_target(policy, protected.bit_count()),
        not tenancies,
        len(rack.nodes),
        min(2, len(rack.demerits)) if rack.demerits else 0,
        pinned.bit_count(),
        takes != 0,
        rack.kind,
        _lent_room(rack, tenancies, free, pinned, lent) if lent else 0,
    )
    return _USE(
        rack,
        tenancies=tenancies,
        free=free,
        protected=protected,
        pinned=pinned,
        lent=lent,
        partial=partial,
        shape=shape,
        free_gpus=_free_gpu_flags(rack, partial, takes, lent, odd, free) if partial or odd else 0,
    )


def _lent_room(
    rack: Rack, tenancies: tuple[Tenancy, ...], free: int, pinned: int, lent: int
) -> int:
    """Usable nodes once its tenants are gone, if all are lent theirs; looks at them only where each
    node that is taken is lent."""
    if pinned or free | lent != (1 << len(rack.nodes)) - 1:
        return 0
    room = ((free | lent) & rack.takes).bit_count()
    return room if all(tenancy.lent for tenancy in tenancies) else 0


def _free_gpu_flags(
    rack: Rack, partial: tuple[tuple[int, int], ...], takes: int, lent: int, odd: int, free: int
) -> int:
    """The flags of partly used nodes, and of nodes that take single-node work only."""
    flags = 1 << ODD if odd & free else 0
    for place, taken in partial:
        left = rack.nodes[place].gpus - taken.bit_count()
        if left > 0 and takes >> place & 1:
            flags |= 1 << (LENT + left if lent >> place & 1 else left)
        elif left > 0 and odd >> place & 1:
            flags |= 1 << ODD
    return flags
