"""The job as its owner wishes it: what to run, how large, and what may be done to it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge, Gt, Le, Len

from rackwright.wire.ids import JobRef, Matches, NodeRef, QueueName, QueueRef
from rackwright.wire.message import Part
from rackwright.wire.nodes import MAX_RACK_NODES
from rackwright.wire.quick import quick

MAX_NODES = 100_000
MAX_TEXT = 32_768
MAX_CORES = 65_536
MAX_MEMORY_GB = 1_048_576

# A NUL byte can be neither an argument nor an environment variable of a process.
NO_NUL = Matches(r"^[^\x00]*$")
Text = Annotated[str, Len(0, MAX_TEXT), NO_NUL]
EnvName = Annotated[str, Matches(r"^[A-Za-z_][A-Za-z0-9_]*$")]
SignalName = Annotated[str, Matches(r"^SIG[A-Z0-9+-]{2,12}$")]
Count = Annotated[int, Ge(1), Le(MAX_NODES)]
Seconds = Annotated[float, Ge(0)]


class JobClass(StrEnum):
    """batch may wait and be moved; interactive is never touched; service heals without delay."""

    BATCH = "batch"
    INTERACTIVE = "interactive"
    SERVICE = "service"


class TopologyNeed(StrEnum):
    """required: each slice in one rack; preferred: while it fits; any: speed is not asked for."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    ANY = "any"


class Uneven(StrEnum):
    """What to do when the nodes are no multiple of the slice."""

    LAST = "last"
    BALANCED = "balanced"
    REFUSE = "refuse"


class OnLostLease(StrEnum):
    """What a worker does when its node has lost the bus for longer than the lease."""

    STOP = "stop"
    RUN = "run"


class CheckpointPlace(StrEnum):
    """Where checkpoints lie; local ones forbid moving the job by restarting it elsewhere."""

    SHARED = "shared"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Part):
    """Degrees of parallelism in GPUs: tp and ep stay inside a slice, pp and dp go across."""

    tp: Count = 1
    ep: Count = 1
    pp: Count = 1
    dp: Count = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Part):
    """How the job saves its state. Times in seconds.

    `on_notice_s`: how long a checkpoint takes when asked for by a notice; None: it takes none.
    """

    interval_s: Annotated[float, Gt(0)] | None = None
    restart_s: Seconds = 600.0
    on_notice_s: Seconds | None = None
    where: CheckpointPlace = CheckpointPlace.SHARED


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Part):
    """Like workers. `replicas` are gangs of their own, each of `nodes` nodes."""

    name: JobRef
    nodes: Count
    replicas: Count = 1
    min_replicas: Count | None = None
    slice_nodes: Annotated[int, Ge(1), Le(MAX_RACK_NODES)] | None = None
    topology: TopologyNeed | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Part):
    """One job. Size is `nodes`, or `gpus`, or `groups`: exactly one of them.

    `gpus` up to the GPUs of one node takes part of a node; more must be a whole number of nodes; 0
    is work without GPUs, on one node. `cpus` (cores) and `memory_gb` (host memory, 1e9 bytes) are
    what each of its nodes must give it; left out, it has its GPUs' share.
    Times in seconds. `priority` 0 to 100, 50 is ordinary. `command` or `run` (a shell script), or
    neither: then the workers are pretended and `pretend_s` says how long they run. Signals are
    spelled in full: `SIGUSR1`.
    """

    name: JobRef
    nodes: Count | None = None
    gpus: Annotated[int, Ge(0), Le(MAX_NODES * 16)] | None = None
    cpus: Annotated[float, Gt(0), Le(MAX_CORES)] | None = None
    memory_gb: Annotated[float, Gt(0), Le(MAX_MEMORY_GB)] | None = None
    groups: Annotated[tuple[Group, ...], Len(0, 64)] = ()
    slice_nodes: Annotated[int, Ge(1), Le(MAX_RACK_NODES)] | None = None
    slice_multiple: Annotated[int, Ge(1), Le(MAX_RACK_NODES)] = 1
    uneven: Uneven = Uneven.LAST
    max_per_rack: Count | None = None
    min_slices: Count | None = None
    topology: TopologyNeed = TopologyNeed.REQUIRED
    labels: dict[str, str] = field(default_factory=dict)
    same: tuple[str, ...] = ("gpu_model", "driver")
    exclude_nodes: Annotated[tuple[NodeRef, ...], Len(0, 1024)] = ()
    prefer_previous: bool = False
    parallel: Parallel = field(default_factory=Parallel)

    job_class: JobClass = JobClass.BATCH
    queue: QueueRef = QueueName("default")
    priority: Annotated[int, Ge(0), Le(100)] = 50
    preemptible: bool = True
    restartable: bool = True
    movable: bool = False
    retry_budget: Annotated[int, Ge(0), Le(1000)] = 0
    time_limit_s: Annotated[float, Gt(0)] | None = None
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    on_lost_lease: OnLostLease = OnLostLease.STOP
    progress_timeout_s: Annotated[float, Gt(0)] | None = None
    keep_on_failure: bool = False

    command: Annotated[tuple[Text, ...], Len(0, 256)] = ()
    setup: Text = ""
    run: Text = ""
    env: dict[EnvName, Annotated[str, NO_NUL]] = field(default_factory=dict)
    grace_s: Annotated[float, Ge(0), Le(3600)] = 10.0
    notice_signal: SignalName | None = None
    membership_signal: SignalName | None = None
    pretend_s: Annotated[float, Gt(0)] | None = None
