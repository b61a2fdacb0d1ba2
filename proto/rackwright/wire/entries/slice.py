"""Entries of the nouns `slice` and `defrag`: what recovery and defragmentation decided."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from annotated_types import Ge, Len

from rackwright.wire.entries.job import MAX_SLICES, Membership, SlicePlacement
from rackwright.wire.ids import JobRef, PlanRef, RackRef
from rackwright.wire.message import Entry, Natural, Part
from rackwright.wire.nodes import GpuMask, NodeMask
from rackwright.wire.reasons import Reason, RungTaken

NodeIndex = Natural
Evicted = Annotated[tuple[JobRef, ...], Len(0, 64)]
Rungs = Annotated[tuple[RungTaken, ...], Len(1, 16)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSwap(Part):
    """Rank `rank` leaves node `old` for node `new`, both places in the rack's list."""

    rank: Natural
    old: NodeIndex
    new: NodeIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSwapped(Entry):
    """Ranks of one slice got other nodes of the same rack; every other rank keeps its process.

    `evicted` jobs lose their nodes to it and are requeued at the head of their bands. `overlaps`:
    all ranks of a movable service's slice go, and what serves there now is told to end only when
    the job runs at this membership.
    """

    TYPE: ClassVar[str] = "slice.swapped"
    job: JobRef
    membership: Membership
    index: Natural
    swaps: Annotated[tuple[NodeSwap, ...], Len(1, 64)]
    evicted: Evicted = ()
    overlaps: bool = False
    rungs: Rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceMoved(Entry):
    """One slice went to another rack as a whole, keeping its block of ranks.

    `gpus` is 0 for whole nodes, else the GPUs of the one node, as many as before; a slice that is
    part of a node may stay in its rack. `lent`: it sits on spares now. `planned`: nothing of the
    job is wounded, it leaves for a better place. `overlaps`: of a movable service, and what serves
    there now is told to end only when the job runs at this membership.
    """

    TYPE: ClassVar[str] = "slice.moved"
    job: JobRef
    membership: Membership
    index: Natural
    rack: RackRef
    nodes: NodeMask
    gpus: GpuMask = 0
    lent: bool = False
    planned: bool = False
    evicted: Evicted = ()
    overlaps: bool = False
    rungs: Rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRestarted(Entry):
    """Ranks of one slice start anew where they are. `charge`: a try of the retry budget."""

    TYPE: ClassVar[str] = "slice.restarted"
    job: JobRef
    membership: Membership
    index: Natural
    ranks: Annotated[tuple[Natural, ...], Len(1, 64)]
    charge: bool
    rungs: Rungs


class VictimMove(StrEnum):
    """How a victim goes: all of it restarts at its home, or slices move and keep their state, or it
    has no home and waits at the head of its priority."""

    RESTART = "restart"
    SLICE = "slice"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTerms(Part):
    """One victim's cost by term; times in hours, `total` in GPU-hours."""

    gpus: Natural
    lost_h: float
    restart_h: float
    home_h: float
    weight: float
    repeats: Natural
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim(Part):
    """A job that makes room, and its home. `homes` replaces exactly the slices named by index.

    One that goes into the queue has no home, and `membership` is the one it has. `overlaps`: a
    movable service, whose homes are free; its workers are told to end only when it runs there.
    """

    job: JobRef
    membership: Membership
    move: VictimMove
    homes: Annotated[tuple[SlicePlacement, ...], Len(0, MAX_SLICES)]
    cost: CostTerms
    overlaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragPlanned(Entry):
    """Victims to their homes and the blocked job to the freed nodes, in one step, with gates.

    `cost_gpu_h` holds the victims' terms and `hold_gpu_h`, the freed racks idle while they drain.
    `bound_gpu_h`: no plan could cost less, None where that is not known. Expires at `expires_at`,
    seconds of ledger time.
    """

    TYPE: ClassVar[str] = "defrag.planned"
    plan: PlanRef
    job: JobRef
    membership: Membership
    slices: Annotated[tuple[SlicePlacement, ...], Len(1, MAX_SLICES)]
    victims: Annotated[tuple[Victim, ...], Len(0, 64)]
    notice_s: Annotated[float, Ge(0)]
    expires_at: float
    hold_gpu_h: float = 0.0
    cost_gpu_h: float
    benefit_gpu_h: float
    next_best_gpu_h: float | None = None
    bound_gpu_h: float | None = None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragWithdrawn(Entry):
    """The plan is off: `spared` victims stay where they were, the job it served waits again."""

    TYPE: ClassVar[str] = "defrag.withdrawn"
    plan: PlanRef
    spared: Annotated[tuple[JobRef, ...], Len(0, 64)] = ()
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragFinished(Entry):
    """The job the plan served has started: the plan is history."""

    TYPE: ClassVar[str] = "defrag.finished"
    plan: PlanRef


SLICE_ENTRIES = (
    SliceSwapped,
    SliceMoved,
    SliceRestarted,
    DefragPlanned,
    DefragWithdrawn,
    DefragFinished,
)
