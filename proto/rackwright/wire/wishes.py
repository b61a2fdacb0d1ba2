"""Wishes: what owners and operators ask for. Never lost, answered once, by an entry.

The wisher is not in the body: it is the subject token that the bus lets only its user publish to.
`not_after` (seconds since the epoch) makes a wish void when it reaches the cell later than that.
`obeyed` is the ledger sequence the wisher had seen; the wish waits until the reader has it too.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Len

from rackwright.wire.ids import JobRef, NodeRef, RackRef
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body, Counted, Natural
from rackwright.wire.nodes import RackSpec, RepairAction
from rackwright.wire.policy import Automation, Policy

Why = Annotated[str, Len(0, 1024)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish(Body):
    """Base of all wishes."""

    not_after: float | None = None
    obeyed: Natural | None = None
    why: Why = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit(Wish):
    """Run this job. The same id with the same spec is the same wish."""

    TYPE: ClassVar[str] = "wish.submit"
    job: JobRef
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Wish):
    """End this job, in whatever state; may arrive before its submit.

    `force`: without any grace, also for workers that have theirs already.
    """

    TYPE: ClassVar[str] = "wish.cancel"
    job: JobRef
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Wish):
    """Let a suspended job be queued again."""

    TYPE: ClassVar[str] = "wish.resume"
    job: JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(Wish):
    """Replace the node of one rank, because its owner says it is slow or wrong."""

    TYPE: ClassVar[str] = "wish.swap"
    job: JobRef
    rank: Natural


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(Wish):
    """No new work on this node; what runs goes on."""

    TYPE: ClassVar[str] = "wish.cordon"
    node: NodeRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(Wish):
    """No new work on this node, and what runs leaves it."""

    TYPE: ClassVar[str] = "wish.drain"
    node: NodeRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(Wish):
    """Take work again on this node."""

    TYPE: ClassVar[str] = "wish.uncordon"
    node: NodeRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired(Wish):
    """Somebody repaired this node; `serial` when the hardware was changed."""

    TYPE: ClassVar[str] = "wish.repaired"
    node: NodeRef
    action: RepairAction = RepairAction.INSPECT
    serial: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairing(Wish):
    """Somebody is at it, and it will be done in `in_s` seconds."""

    TYPE: ClassVar[str] = "wish.repairing"
    node: NodeRef
    in_s: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMaintenance(Wish):
    """Racks or nodes that will be out from `begin` to `end` (seconds since the epoch)."""

    TYPE: ClassVar[str] = "wish.maintain"
    racks: Annotated[tuple[RackRef, ...], Len(0, 1024)] = ()
    nodes: Annotated[tuple[NodeRef, ...], Len(0, 1024)] = ()
    begin: float
    end: float
    notice_s: Annotated[float, Ge(0)] = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Wish):
    """Stop one automation for `for_s` seconds; a pause without an end is not allowed."""

    TYPE: ClassVar[str] = "wish.pause"
    automation: Automation
    for_s: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpause(Wish):
    """Let that automation act again."""

    TYPE: ClassVar[str] = "wish.unpause"
    automation: Automation


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseBreaker(Wish):
    """The faults that opened the breaker are real: act on them."""

    TYPE: ClassVar[str] = "wish.breaker"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRack(Wish):
    """Give this rack's free nodes to nobody until `for_s` seconds have passed."""

    TYPE: ClassVar[str] = "wish.hold"
    rack: RackRef
    for_s: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRack(Wish):
    """End a hold."""

    TYPE: ClassVar[str] = "wish.release"
    rack: RackRef


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo(Wish):
    """The nodes that are kept for this job, which has failed, are not needed any more."""

    TYPE: ClassVar[str] = "wish.let_go"
    job: JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin(Wish):
    """Nobody moves or evicts this job from now on, whatever it is."""

    TYPE: ClassVar[str] = "wish.pin"
    job: JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpin(Wish):
    """It may be moved as what it is."""

    TYPE: ClassVar[str] = "wish.unpin"
    job: JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve(Wish):
    """Where plans wait for an operator: one may be carried out for this job, within `for_s`."""

    TYPE: ClassVar[str] = "wish.approve"
    job: JobRef
    for_s: Annotated[float, Gt(0)] = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefineRacks(Wish):
    """Add racks to the cell, or nodes at the end of a rack that is known."""

    TYPE: ClassVar[str] = "wish.define"
    racks: Annotated[tuple[RackSpec, ...], Len(1, 64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy(Wish):
    """Replace the policy settings of the cell."""

    TYPE: ClassVar[str] = "wish.policy"
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(Wish):
    """Every copy of every service runs software that knows `fold_version`: use what it brought."""

    TYPE: ClassVar[str] = "wish.upgrade"
    fold_version: Counted


ANY_WISH = (
    Submit,
    Cancel,
    Resume,
    Swap,
    Cordon,
    Drain,
    Uncordon,
    Repaired,
    Repairing,
    ScheduleMaintenance,
    Pause,
    Unpause,
    CloseBreaker,
    HoldRack,
    ReleaseRack,
    LetGo,
    Pin,
    Unpin,
    Approve,
    DefineRacks,
    SetPolicy,
    Upgrade,
)
JOB_WISHES = (Submit, Cancel, Resume, Swap, LetGo)
NODE_WISHES = (Cordon, Drain, Uncordon, Repaired, Repairing)
CELL_WISHES = (
    ScheduleMaintenance,
    Pause,
    Unpause,
    CloseBreaker,
    HoldRack,
    ReleaseRack,
    Pin,
    Unpin,
    Approve,
    DefineRacks,
    SetPolicy,
    Upgrade,
)
