"""What nodes see and say: faults (signals), their last state (status), heartbeats and echoes."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Len

from rackwright.wire.ids import NodeRef, RackRef, SessionRef, WorkerRef
from rackwright.wire.message import LENIENT, Body, Counted, Integer, Natural, Part
from rackwright.wire.nodes import Hardware
from rackwright.wire.quick import quick


class SignalKind(StrEnum):
    """The kinds of fault a node reports of itself."""

    XID = "xid"
    GPU_COUNT = "gpu-count"
    NVLINK_DOWN = "nvlink-down"
    FABRIC = "fabric"
    ROW_REMAP = "row-remap"
    THROTTLE = "throttle"
    IB_DOWN = "ib-down"
    HOOK_FAILED = "hook-failed"
    KILL_FAILED = "kill-failed"
    START_FAILED = "start-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Body):
    """One fault as seen on the node. `count` lines like it were folded into this one.

    For an Xid: its number, the GPU's index where known, the mnemonic, severity, link and status
    words of the kernel's line, and the line itself, cut to 512 characters.
    """

    TYPE: ClassVar[str] = "signal.fault"
    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    node: NodeRef
    rack: RackRef
    session: SessionRef
    kind: SignalKind
    xid: Natural | None = None
    gpu: Natural | None = None
    pci: str = ""
    mnemonic: str = ""
    severity: str = ""
    link: Integer | None = None
    words: tuple[Integer, ...] = ()
    value: float | None = None
    count: Counted = 1
    line: Annotated[str, Len(0, 512)] = ""
    observed_at: float = 0.0


class WorkerState(StrEnum):
    """The states of a worker, as its node tells them."""

    PREPARED = "prepared"
    RUNNING = "running"
    EXITED = "exited"
    STOPPED = "stopped"
    FENCED = "fenced"


ENDED = frozenset({WorkerState.EXITED, WorkerState.STOPPED, WorkerState.FENCED})


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus(Part):
    """One worker on its node. `code` is the exit code, or minus the signal that ended it.

    `idle_since`: since when all its GPUs have been in use for less than 5 % of the time.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    worker: WorkerRef
    state: WorkerState
    ready: bool = False
    code: Integer | None = None
    pid: Natural | None = None
    checkpoint_at: float | None = None
    progress_at: float | None = None
    idle_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Part):
    """How the check went that was asked for at ledger sequence `asked`: its exit code (or minus the
    signal that ended it), how long it took, and the last of what it said."""

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    asked: Counted
    passed: bool
    code: Integer | None = None
    seconds: Annotated[float, Ge(0)] = 0.0
    said: Annotated[str, Len(0, 512)] = ""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus(Body):
    """The last state of one node: state, not an event, rewritten on change.

    A new `session` is a join: `workers` are then all that the node found alive. `n` rises with
    each writing in a session; `obeyed` is the ledger sequence the agent has obeyed; `check` how the
    last check went that was asked of it in this session.
    """

    TYPE: ClassVar[str] = "status.node"
    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    node: NodeRef
    rack: RackRef
    session: SessionRef
    boot: str
    n: Natural
    obeyed: Natural = 0
    hardware: Hardware
    workers: Annotated[tuple[WorkerStatus, ...], Len(0, 256)] = ()
    check: CheckResult | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Body):
    """I live. May be lost. `n` names the sending, so that an echo can be told from an old one.

    `head`: the newest ledger sequence that an echo has told. `steady_s`: for so many seconds from
    the sending the node will tell no neighbour that the bus is away, whatever happens.
    """

    TYPE: ClassVar[str] = "heartbeat"
    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    node: NodeRef
    rack: RackRef
    session: SessionRef
    n: Natural
    head: Natural = 0
    steady_s: Annotated[float, Ge(0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoLine(Part):
    """The newest heartbeat heard of one node."""

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    node: NodeRef
    session: SessionRef
    n: Natural


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo(Body):
    """What a fresh health-monitor heard in one rack; `head` is the ledger sequence it folded.

    `lease_s` and `heartbeat_s` are the cell's policy, so that no agent counts by a setting of its
    own: the lease runs that long from the sending of the heartbeat that is echoed. 0: no lease.
    """

    TYPE: ClassVar[str] = "echo"
    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT
    rack: RackRef
    head: Natural
    lease_s: Annotated[float, Ge(0)] = 0.0
    heartbeat_s: Annotated[float, Ge(0)] = 0.0
    lines: tuple[EchoLine, ...] = field(default_factory=tuple)
