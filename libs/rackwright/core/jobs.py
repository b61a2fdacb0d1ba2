"""A job in the fleet: its state, its slices and what has happened to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.ids import JobId, Owner, PlanId, WorkerId, worker_id
from rackwright.wire.jobs import CheckpointPlace, JobClass, JobSpec
from rackwright.wire.nodes import Fitness
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason


class JobState(StrEnum):
    """Where a job is. Every edge is in TRANSITIONS, with the entry that takes it."""

    QUEUED = "queued"
    PLACED = "placed"
    RUNNING = "running"
    FINISHING = "finishing"
    SUSPENDED = "suspended"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


ENDED = frozenset({JobState.FINISHED, JobState.FAILED, JobState.CANCELLED, JobState.REJECTED})
ASSIGNED = frozenset({JobState.PLACED, JobState.RUNNING, JobState.FINISHING})

# (from, entry type) -> to. The picture in the documents is made from this table.
TRANSITIONS: dict[tuple[JobState, str], JobState] = {
    (JobState.QUEUED, "job.placed"): JobState.PLACED,
    (JobState.QUEUED, "defrag.planned"): JobState.PLACED,
    (JobState.QUEUED, "job.blocked"): JobState.QUEUED,
    (JobState.QUEUED, "job.cancelled"): JobState.CANCELLED,
    (JobState.QUEUED, "job.failed"): JobState.FAILED,
    (JobState.QUEUED, "job.suspended"): JobState.SUSPENDED,
    (JobState.PLACED, "job.started"): JobState.RUNNING,
    (JobState.PLACED, "job.requeued"): JobState.QUEUED,
    (JobState.PLACED, "defrag.withdrawn"): JobState.QUEUED,
    (JobState.PLACED, "job.finishing"): JobState.FINISHING,
    (JobState.PLACED, "job.finished"): JobState.FINISHED,
    (JobState.PLACED, "job.failed"): JobState.FAILED,
    (JobState.PLACED, "job.cancelled"): JobState.CANCELLED,
    (JobState.PLACED, "job.suspended"): JobState.SUSPENDED,
    (JobState.RUNNING, "job.started"): JobState.RUNNING,
    (JobState.RUNNING, "job.requeued"): JobState.QUEUED,
    (JobState.PLACED, "job.shrunk"): JobState.PLACED,
    (JobState.RUNNING, "job.shrunk"): JobState.RUNNING,
    (JobState.RUNNING, "job.grown"): JobState.RUNNING,
    (JobState.RUNNING, "defrag.planned"): JobState.PLACED,
    (JobState.RUNNING, "job.finishing"): JobState.FINISHING,
    (JobState.RUNNING, "job.finished"): JobState.FINISHED,
    (JobState.RUNNING, "job.failed"): JobState.FAILED,
    (JobState.RUNNING, "job.cancelled"): JobState.CANCELLED,
    (JobState.RUNNING, "job.suspended"): JobState.SUSPENDED,
    (JobState.FINISHING, "job.finished"): JobState.FINISHED,
    (JobState.FINISHING, "job.failed"): JobState.FAILED,
    (JobState.FINISHING, "job.cancelled"): JobState.CANCELLED,
    (JobState.SUSPENDED, "job.resumed"): JobState.QUEUED,
    (JobState.SUSPENDED, "job.cancelled"): JobState.CANCELLED,
    (JobState.SUSPENDED, "job.failed"): JobState.FAILED,
}


class WoundKind(StrEnum):
    """Why a rank has no good place: its node is bad, its process is gone, its node is drained."""

    NODE = "node"
    PROCESS = "process"
    DRAIN = "drain"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Wound:
    """One rank that needs recovery; `at` is ledger time, `code` the signal or exit behind it.

    `charge`: a try of the owner's retry budget. `ended`: its worker is known to have ended.
    """

    rank: int
    kind: WoundKind
    code: str
    at: float
    charge: bool = False
    ended: bool = False


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The part of a job that sits in one rack. Ranks are `first_rank` + place in `nodes`.

    `rack` is the rack's number, `nodes` places in its list of nodes in rank order, `mask` the same
    as bits, `gpus` 0 for whole nodes. `gates` names, by rank, the earlier workers that must have
    ended before the rank may start.
    """

    index: int
    group: int
    replica: int
    first_rank: int
    rack: int
    mask: int
    gpus: int
    nodes: tuple[int, ...]
    incarnations: tuple[int, ...]
    gates: tuple[tuple[int, tuple[WorkerId, ...]], ...] = ()
    lent: bool = False

    @property
    def size(self) -> int:
        """Nodes, and so ranks."""
        return len(self.nodes)

    def worker(self, job: JobId, rank: int) -> WorkerId:
        """The current worker id of a rank of this slice."""
        return worker_id(job, rank, self.incarnations[rank - self.first_rank])

    def gates_of(self, rank: int) -> tuple[WorkerId, ...]:
        """Worker ids that must have ended before `rank` may start."""
        for gated, workers in self.gates:
            if gated == rank:
                return workers
        return ()


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    """A slice that the job goes on without: its index and ranks are kept for when it comes back."""

    index: int
    group: int
    replica: int
    first_rank: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """What is kept of a job that has ended, so that its id is not used again by mistake."""

    id: JobId
    name: str
    owner: Owner
    spec_hash: str
    state: JobState
    ended_at: float
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """A node that a wound drove the job from: when (ledger time), which one, by which signal.

    Too many of them with one signal make the job itself suspect.
    """

    at: float
    node: str
    code: str


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job that lives. Times are ledger time in seconds. `started` is the membership whose ranks
    were all up, `not_before` a back-off, `blocked_since` the beginning of the unbroken block.
    `slices` are in order of their index; where one is missing it is in `shed`. `previous` are racks
    with the nodes (a mask) that it had when it went back to the queue, if it prefers them.
    `idle_told`: when its owner was told last that its GPUs stand idle.
    """

    id: JobId
    owner: Owner
    spec: JobSpec
    spec_hash: str
    state: JobState
    seq: int
    submitted_at: float
    state_at: float
    membership: int = 0
    started: int = 0
    slices: tuple[Slice, ...] = ()
    shed: tuple[Shed, ...] = ()
    wounds: tuple[Wound, ...] = ()
    not_before: float = 0.0
    blocked: Reason | None = None
    blocked_at: float = 0.0
    blocked_since: float | None = None
    first_started_at: float | None = None
    started_at: float | None = None
    placed_at: float | None = None
    retries: int = 0
    requeues: int = 0
    preempted: tuple[float, ...] = ()
    moved_at: float | None = None
    swaps: tuple[Swapped, ...] = ()
    swap_count: int = 0
    move_count: int = 0
    plan: PlanId | None = None
    reason: Reason | None = None
    warnings: tuple[Reason, ...] = ()
    pinned_by: str = ""
    previous: tuple[tuple[int, int], ...] = ()
    approved_until: float = 0.0
    idle_told: float | None = None

    @property
    def all_run(self) -> bool:
        """Do all ranks of its newest membership run? One whose node is only drained does."""
        return self.state is JobState.RUNNING and not self.hurt and self.started >= self.membership

    @property
    def hurt(self) -> bool:
        """Has a rank lost its node or its process? One whose node is drained runs on."""
        wounds = self.wounds
        return bool(wounds) and any(wound.kind is not WoundKind.DRAIN for wound in wounds)

    @property
    def pinned(self) -> bool:
        """Work that defragmentation and preemption may not touch."""
        service = self.spec.job_class is JobClass.SERVICE and not self.spec.movable
        stays = service or self.pinned_by != ""
        return stays or may_not_move(self.spec)

    def part(self, index: int) -> Slice:
        """The slice of this index. Raises KeyError for one the job has not, or goes on without."""
        if not self.shed and index < len(self.slices):
            return self.slices[index]
        for part in self.slices:
            if part.index == index:
                return part
        raise KeyError(index)

    @property
    def with_shed(self) -> tuple[Slice | Shed, ...]:
        """Its slices and those it goes on without, by index."""
        return tuple(sorted((*self.slices, *self.shed), key=_index))

    def has_been_up(self, part: Slice) -> bool:
        """Have all ranks of this slice run at some time since they have their nodes?"""
        return all(one <= self.started for one in part.incarnations)

    def has_rank(self, rank: int) -> bool:
        """Is there such a rank now?"""
        if not self.shed:
            return 0 <= rank < self.ranks
        return any(part.first_rank <= rank < part.first_rank + part.size for part in self.slices)

    def rank_numbers(self) -> Iterator[int]:
        """All ranks in order; numbers are missing while the job goes on without a slice."""
        for part in self.slices:
            yield from range(part.first_rank, part.first_rank + part.size)

    def slice_of(self, rank: int) -> Slice:
        """The slice that holds `rank`. Raises KeyError for a rank the job does not have."""
        for part in self.slices:
            if part.first_rank <= rank < part.first_rank + part.size:
                return part
        raise KeyError(rank)

    def worker(self, rank: int) -> WorkerId:
        """The current worker id of `rank`; reports of any other id of that rank are old."""
        return self.slice_of(rank).worker(self.id, rank)

    @property
    def ranks(self) -> int:
        """Number of ranks it is placed with."""
        return sum(part.size for part in self.slices)


def _index(part: Slice | Shed) -> int:
    return part.index


def may_not_move(spec: JobSpec) -> bool:
    """Is this work pinned by what it is? A service that is not `movable` is pinned besides."""
    return (
        spec.job_class is JobClass.INTERACTIVE
        or not spec.restartable
        or not spec.preemptible
        or spec.checkpoint.where is CheckpointPlace.LOCAL
    )


def is_movable(spec: JobSpec) -> bool:
    """Is it a service that may be moved, the new instance before the old one goes?"""
    return spec.job_class is JobClass.SERVICE and spec.movable


def counts_as_pinned(spec: JobSpec) -> bool:
    """Does it take of what pinned work may have? A service is there to stay, and does not."""
    return may_not_move(spec) and spec.job_class is not JobClass.SERVICE


def need_of(spec: JobSpec, slices: int) -> Fitness:
    """Fitness a node must have: solo for one GPU or none, rack inside a slice, full across."""
    if slices > 1:
        return Fitness.FULL
    return Fitness.SOLO if spec.gpus in (0, 1) else Fitness.RACK


def protected(spec: JobSpec, size: int) -> bool:
    """A hot-swappable slice of more than one node: spares are kept beside it."""
    return spec.restartable and size > 1


def as_placement(part: Slice, rack: str) -> SlicePlacement:
    """The slice as an entry would place it again."""
    return SlicePlacement(
        index=part.index,
        group=part.group,
        replica=part.replica,
        first_rank=part.first_rank,
        rack=rack,  # type: ignore[arg-type]
        nodes=part.mask,
        gpus=part.gpus,
        lent=part.lent,
    )
