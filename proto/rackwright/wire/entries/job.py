"""Entries of the noun `job`: from the answered wish to the end."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le, Len

from rackwright.wire.ids import JobRef, OwnerRef, PlanRef, RackRef, WorkerRef
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Counted, Entry, Integer, Natural, Part
from rackwright.wire.nodes import GpuMask, NodeMask
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason, RungTaken

MAX_SLICES = 4096
Membership = Counted


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlacement(Part):
    """One slice in one rack. Ranks count from `first_rank` in the order of the bits of `nodes`.

    `gpus` is 0 for whole nodes, else the GPUs of the one node. `lent`: it sits on spares.
    """

    index: Annotated[int, Ge(0), Le(MAX_SLICES)]
    group: Natural = 0
    replica: Natural = 0
    first_rank: Natural
    rack: RackRef
    nodes: NodeMask
    gpus: GpuMask = 0
    lent: bool = False


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueued(Entry):
    """The wish is answered: the job waits. Holds the whole spec, so the wish may be forgotten.

    `submitted_at` is the stored wish's time; `spec_hash` tells a repeated wish from another one.
    """

    TYPE: ClassVar[str] = "job.queued"
    job: JobRef
    owner: OwnerRef
    spec: JobSpec
    spec_hash: str
    submitted_at: float
    warnings: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRejected(Entry):
    """The wish can never be granted as it stands; the id stays used."""

    TYPE: ClassVar[str] = "job.rejected"
    job: JobRef
    owner: OwnerRef
    spec_hash: str
    reason: Reason


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaced(Entry):
    """All slices of the job have their nodes. `membership` is one above the last."""

    TYPE: ClassVar[str] = "job.placed"
    job: JobRef
    membership: Membership
    slices: Annotated[tuple[SlicePlacement, ...], Len(1, MAX_SLICES)]
    reason: Reason


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobBlocked(Entry):
    """Why it waits: `reason.code` is one of the seven causes."""

    TYPE: ClassVar[str] = "job.blocked"
    job: JobRef
    reason: Reason


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Entry):
    """Every rank of this membership runs and is ready, so every gate of it was open."""

    TYPE: ClassVar[str] = "job.started"
    job: JobRef
    membership: Membership


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinishing(Entry):
    """A first rank has ended well: no more swaps, the rest ends by itself or by the limit."""

    TYPE: ClassVar[str] = "job.finishing"
    job: JobRef


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinished(Entry):
    """Every rank has ended with 0."""

    TYPE: ClassVar[str] = "job.finished"
    job: JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed(Entry):
    """The job is over and not well. `keep_s`: its nodes are kept from other work for so long."""

    TYPE: ClassVar[str] = "job.failed"
    job: JobRef
    reason: Reason
    keep_s: Annotated[float, Ge(0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled(Entry):
    """Ended by its owner or an operator; of an unknown id it is a tombstone for a late submit.

    `force`: its workers get no grace, those neither that have been given theirs already: of a job
    that has ended and still has such workers it is not the end but the order to hurry.
    """

    TYPE: ClassVar[str] = "job.cancelled"
    job: JobRef
    by: OwnerRef
    reason: Reason
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequeued(Entry):
    """Back to the head of its priority band with its first submit time.

    `charge`: counts against the retry budget. Not tried before `not_before`, seconds of ledger
    time.
    """

    TYPE: ClassVar[str] = "job.requeued"
    job: JobRef
    reason: Reason
    charge: bool = False
    not_before: float = 0.0
    rungs: Annotated[tuple[RungTaken, ...], Len(0, 16)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShrunk(Entry):
    """The job goes on without these slices; every rank of the others keeps its process.

    The ranks of what left are not given to others: there is a gap until `job.grown` fills it.
    """

    TYPE: ClassVar[str] = "job.shrunk"
    job: JobRef
    membership: Membership
    indexes: Annotated[tuple[Natural, ...], Len(1, MAX_SLICES)]
    reason: Reason
    rungs: Annotated[tuple[RungTaken, ...], Len(0, 16)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGrown(Entry):
    """More slices of a running job have nodes: those it went on without, with their old index and
    ranks, or replicas it started without, at the end. The others keep their processes."""

    TYPE: ClassVar[str] = "job.grown"
    job: JobRef
    membership: Membership
    slices: Annotated[tuple[SlicePlacement, ...], Len(1, MAX_SLICES)]
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSuspended(Entry):
    """Taken off its nodes until somebody resumes it."""

    TYPE: ClassVar[str] = "job.suspended"
    job: JobRef
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed(Entry):
    """A suspended job is queued again."""

    TYPE: ClassVar[str] = "job.resumed"
    job: JobRef
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNotified(Entry):
    """The job was told that it will be stopped in `notice_s` seconds, so that it can save.

    `window`: the sequence of planned maintenance that begins then where it is. `idle_s`: its GPUs
    have stood idle for so long; it is stopped for that only if `notice_s` is not 0.
    """

    TYPE: ClassVar[str] = "job.notified"
    job: JobRef
    plan: PlanRef | None = None
    window: Counted | None = None
    notice_s: Annotated[float, Ge(0)]
    idle_s: Annotated[float, Ge(0)] | None = None
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPinned(Entry):
    """An operator: nobody moves or evicts it; `pinned` false: it is again what it was."""

    TYPE: ClassVar[str] = "job.pinned"
    job: JobRef
    pinned: bool
    by: OwnerRef
    why: Annotated[str, Len(0, 1024)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobApproved(Entry):
    """An operator: a plan may be carried out for this job until then (seconds of ledger time)."""

    TYPE: ClassVar[str] = "job.approved"
    job: JobRef
    until: float
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReleased(Entry):
    """The nodes that were kept for a job that has failed take other work again."""

    TYPE: ClassVar[str] = "job.released"
    job: JobRef
    by: OwnerRef


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailed(Entry):
    """The verdict on an exit: `code` as WorkerStatus has it; the rank has no process any more."""

    TYPE: ClassVar[str] = "worker.failed"
    job: JobRef
    rank: Natural
    worker: WorkerRef
    code: Integer | None = None
    reason: Reason


JOB_ENTRIES = (
    JobQueued,
    JobRejected,
    JobPlaced,
    JobBlocked,
    JobStarted,
    JobFinishing,
    JobFinished,
    JobFailed,
    JobCancelled,
    JobRequeued,
    JobShrunk,
    JobGrown,
    JobSuspended,
    JobResumed,
    JobNotified,
    JobPinned,
    JobApproved,
    JobReleased,
    WorkerFailed,
)
