"""Entries of the nouns `node` and `rack`: health, sessions, and what operators ordered.

The entries that are observations carry `of`, the sequence of the node's last entry their author
had folded. They are appended without compare; the fold voids one whose `of` is not that any more.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Len

from rackwright.wire.ids import JobRef, NodeRef, OwnerRef, RackRef, SessionRef, WorkerRef
from rackwright.wire.message import Counted, Entry, Natural
from rackwright.wire.nodes import (
    Fitness,
    Hardware,
    RackFitness,
    RackSpec,
    RepairAction,
    Witnesses,
)
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import since
from rackwright.wire.wishes import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Entry):
    """Base of what is appended without compare; `of` 0: no entry of this node is known."""

    node: NodeRef
    of: Natural


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoined(Observation):
    """A new session of a node is admitted. Workers of it not in `running` have ended.

    `exited` are those of them whose end the node itself reports with a code; the verdict on them is
    the placer's. The others were lost. Another boot id than before is proof that every earlier
    worker of the node has ended. `witnesses`: the second tier of its lease; None: it has none.
    """

    TYPE: ClassVar[str] = "node.joined"
    session: SessionRef
    boot: str
    hardware: Hardware
    running: Annotated[tuple[WorkerRef, ...], Len(0, 256)] = ()
    exited: Annotated[tuple[WorkerRef, ...], Len(0, 256)] = ()
    witnesses: Witnesses | None = since(2, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUnfit(Observation):
    """The node is good for less than before: the culprit of a fault. Its agent may be alive.

    `serial` is the hardware that had the fault: its history goes with it, that of the slot stays.
    `counts` False: it is out because of what its hardware did elsewhere, and that is no new fault.
    """

    TYPE: ClassVar[str] = "node.unfit"
    fitness: Fitness
    action: RepairAction
    gpu: Natural | None = None
    observed_at: float = 0.0
    reason: Reason
    serial: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSuspected(Observation):
    """Silence or doubt: the lease of this session is recalled, no monitor echoes it any more."""

    TYPE: ClassVar[str] = "node.suspected"
    session: SessionRef
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCleared(Observation):
    """Heard again before it was declared failed."""

    TYPE: ClassVar[str] = "node.cleared"
    session: SessionRef


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed(Observation):
    """Declared dead. `fenced`: its lease must have ended, so every worker of the session has.

    `serial`: as in `node.unfit`.
    """

    TYPE: ClassVar[str] = "node.failed"
    session: SessionRef | None = None
    fenced: bool
    observed_at: float = 0.0
    reason: Reason
    serial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecovered(Observation):
    """In service again, on probation until then (seconds of ledger time).

    `serial`: the hardware that was let in; what it did before is answered.
    """

    TYPE: ClassVar[str] = "node.recovered"
    fitness: Fitness
    probation_until: float = 0.0
    reason: Reason
    serial: str = ""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCleaning(Observation):
    """Work has left. `ended` workers are gone, as the node says; nothing waits for them any more.

    `done`: processes, GPU memory and the site's epilog were checked too.
    """

    TYPE: ClassVar[str] = "node.cleaning"
    job: JobRef | None = None
    ended: Annotated[tuple[WorkerRef, ...], Len(0, 256)] = ()
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequested(Observation):
    """Somebody must act; answered by the wish `repaired`. `eta`: seconds of ledger time."""

    TYPE: ClassVar[str] = "node.repair_requested"
    action: RepairAction
    eta: float | None = None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCheckAsked(Observation):
    """The node shall run the site's check. `why`: `idle`, `returned`, `repaired`, `suspect`.

    `hold`: until the check has been answered no work is given to the node.
    """

    TYPE: ClassVar[str] = "node.check_asked"
    why: Annotated[str, Len(1, 63)]
    hold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChecked(Observation):
    """How the check went that was asked for at `asked`. Not passed: the node is good for nothing
    until it has been inspected."""

    TYPE: ClassVar[str] = "node.checked"
    asked: Counted
    passed: bool
    reason: Reason
    serial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCordoned(Entry):
    """An operator: no new work here. `drain`: and what runs must leave.

    `because`: it is not an operator's word but planned maintenance (`maintenance`), a rack that
    must be left (`rack-event`) or a swap that was wished for (`swap`), and ends with it, the last
    with a check that the node passes. `job`: whose rank is swapped; it counts for it and for `by`.
    """

    TYPE: ClassVar[str] = "node.cordoned"
    node: NodeRef
    drain: bool = False
    by: OwnerRef
    why: Why = ""
    because: Annotated[str, Len(0, 63)] = ""
    job: JobRef | None = since(2, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUncordoned(Entry):
    """An operator: work may come again."""

    TYPE: ClassVar[str] = "node.uncordoned"
    node: NodeRef
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class RackDefined(Entry):
    """A rack of the cell, or more nodes at the end of one that is known."""

    TYPE: ClassVar[str] = "rack.defined"
    rack: RackSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RackDegraded(Entry):
    """The rack as a whole is good for less (or, when it says good again, for all)."""

    TYPE: ClassVar[str] = "rack.degraded"
    rack: RackRef
    fitness: RackFitness
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RackIsolated(Entry):
    """Silent as a whole: one event of the rack and not of each node."""

    TYPE: ClassVar[str] = "rack.isolated"
    rack: RackRef
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RackRestored(Entry):
    """Heard again, or repaired. `fitness`: what the rack is from here on; one that was silent and
    is heard is no better for it than it was."""

    TYPE: ClassVar[str] = "rack.restored"
    rack: RackRef
    fitness: RackFitness = RackFitness.GOOD
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RackHeld(Entry):
    """An operator's hold: free nodes of it go to nobody until then (ledger time)."""

    TYPE: ClassVar[str] = "rack.held"
    rack: RackRef
    owner: OwnerRef
    until: float
    why: Why = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackReleased(Entry):
    """The hold has ended."""

    TYPE: ClassVar[str] = "rack.released"
    rack: RackRef


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceScheduled(Entry):
    """Planned absence from `begin` to `end`, seconds of ledger time.

    `missing`: what there is no room for elsewhere now, of the work that must move.
    """

    TYPE: ClassVar[str] = "maintenance.scheduled"
    racks: Annotated[tuple[RackRef, ...], Len(0, 1024)] = ()
    nodes: Annotated[tuple[NodeRef, ...], Len(0, 1024)] = ()
    begin: float
    end: float
    notice_s: Annotated[float, Ge(0)] = 1800.0
    by: OwnerRef
    why: Why = field(default="")
    missing: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceEnded(Entry):
    """The window has closed or was called off; `of` is the sequence that scheduled it."""

    TYPE: ClassVar[str] = "maintenance.ended"
    of: Counted


NODE_ENTRIES = (
    NodeJoined,
    NodeUnfit,
    NodeSuspected,
    NodeCleared,
    NodeFailed,
    NodeRecovered,
    NodeCleaning,
    RepairRequested,
    NodeCheckAsked,
    NodeChecked,
    NodeCordoned,
    NodeUncordoned,
    RackDefined,
    RackDegraded,
    RackIsolated,
    RackRestored,
    RackHeld,
    RackReleased,
    MaintenanceScheduled,
    MaintenanceEnded,
)
