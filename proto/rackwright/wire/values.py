"""Values: what the dispatcher projects for agents, a snapshot's manifest."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le, Len

from rackwright.wire.ids import (
    JobRef,
    LedgerRef,
    MessageRef,
    NodeRef,
    OwnerRef,
    RackRef,
    SessionRef,
    WorkerRef,
)
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body, Counted, Natural, Part
from rackwright.wire.nodes import GpuMask, Witnesses


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentLine(Part):
    """One worker this node shall run. It may be prepared at once, started only when `open`.

    `open`: every earlier worker of its rank and of its GPUs is known to have ended. `gpus` 0: all.
    """

    worker: WorkerRef
    job: JobRef
    rank: Natural
    gpus: GpuMask = 0
    membership: Counted
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLine(Part):
    """A worker this node shall end: the order to stop is a line, never an absence.

    `notice_s`: it is told, and has that long from when the agent first reads this to save and
    leave; then `grace_s` between the gentle and the hard signal. 0 and 0: killed at once.
    """

    worker: WorkerRef
    notice_s: Annotated[float, Ge(0)] = 0.0
    grace_s: Annotated[float, Ge(0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOrder(Part):
    """The node shall run the site's check, when nothing runs on it: at most `limit_s` seconds.

    `asked` is the ledger sequence of the order; `why` is told to the check.
    """

    asked: Counted
    why: str
    limit_s: Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour(Part):
    """A witness, and where it answers: `host` and UDP `port`; port 0: it does not, or not yet."""

    node: NodeRef
    host: str
    port: Annotated[int, Ge(0), Le(65_535)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAssignment(Part):
    """What one node shall do, bound to the session it was decided for.

    `witnesses` are the terms of the second tier of its lease, `neighbours` where to find them.
    """

    session: SessionRef
    run: Annotated[tuple[AssignmentLine, ...], Len(0, 64)] = ()
    stop: Annotated[tuple[StopLine, ...], Len(0, 256)] = ()
    check: CheckOrder | None = None
    witnesses: Witnesses | None = None
    neighbours: Annotated[tuple[Neighbour, ...], Len(0, 15)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RackAssignments(Body):
    """All of one rack, at ledger sequence `seq`. A node that is not in it has no news."""

    TYPE: ClassVar[str] = "value.assignments"
    ledger: LedgerRef
    seq: Natural
    rack: RackRef
    nodes: dict[NodeRef, NodeAssignment] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceMembers(Part):
    """The nodes of one slice in rank order, rank `first_rank` first, and where they are reached."""

    index: Natural
    group: str
    replica: Natural = 0
    rack: RackRef
    first_rank: Natural
    nodes: tuple[NodeRef, ...]
    incarnations: tuple[Counted, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobValue(Body):
    """What a node must know to run a worker of this job, and who takes part now.

    `gone`: worker ids that took part in the membership before and do not in this one.
    `master`: address of the node of rank 0.
    """

    TYPE: ClassVar[str] = "value.job"
    ledger: LedgerRef
    seq: Natural
    job: JobRef
    owner: OwnerRef
    spec: JobSpec
    membership: Counted
    master: str
    slices: tuple[SliceMembers, ...]
    gone: Annotated[tuple[WorkerRef, ...], Len(0, 1024)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotManifest(Body):
    """Written last: its presence says that the snapshot of the fold at `seq` is complete.

    `last_id` is the id of the commit at `seq`, `size` the bytes before chunking, `sha256` theirs,
    `shape` what they are made of (see `snapshot.verified`).
    """

    TYPE: ClassVar[str] = "snapshot.manifest"
    ledger: LedgerRef
    seq: Counted
    last_id: MessageRef
    fold_version: Counted
    sha256: str
    chunks: Counted
    size: Natural
    shape: str = ""
