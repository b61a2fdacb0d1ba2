"""How a node's records, progress and Xids are said on the bus."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rackwright.agent.gpus import Finding
from rackwright.agent.idle import idle_since
from rackwright.agent.limits import XidSignal
from rackwright.agent.progress import Progress
from rackwright.agent.records import WorkerRecord
from rackwright.agent.records import WorkerState as Record
from rackwright.wire.ids import NodeId, RackId, SessionId, WorkerId
from rackwright.wire.signals import Fault, SignalKind, WorkerState, WorkerStatus

NONE_IDLE: Mapping[int, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The node that speaks, and in which session."""

    node: NodeId
    rack: RackId
    session: SessionId
    boot: str


def worker_status(
    record: WorkerRecord, progress: Progress | None, idle: Mapping[int, float] = NONE_IDLE
) -> WorkerStatus:
    """One worker. It is ready when it runs, unless its last report says that it is not yet.

    `idle` says since when idle GPUs are idle.
    An end counts only when its GPUs are free again too: `reaped`. Until then it is told as running.
    """
    state = WorkerState(record.state.value)
    if record.ended and not record.reaped:
        state = WorkerState.RUNNING
    return WorkerStatus(
        worker=WorkerId(record.worker_id),
        state=state,
        ready=state is WorkerState.RUNNING and (progress is None or progress.ready is not False),
        code=record.code,
        pid=record.pid or None,
        checkpoint_at=progress.checkpoint_at if progress is not None else None,
        progress_at=progress.progress_at if progress is not None else None,
        idle_since=idle_since(record.gpus, idle, record.at)
        if record.state is Record.RUNNING
        else None,
    )


def xid_fault(who: Who, signal: XidSignal, gpus: Mapping[str, int], now: float) -> Fault:
    """A line of the kernel log as a fault of this node; `gpus` gives the index by PCI address."""
    line = signal.line
    return Fault(
        node=who.node,
        rack=who.rack,
        session=who.session,
        kind=SignalKind.XID,
        xid=line.xid,
        gpu=gpus.get(line.pci),
        pci=line.pci,
        mnemonic=line.action or line.mnemonic,
        severity=line.severity,
        link=line.link,
        words=line.words,
        count=signal.count,
        line=line.line[:512],
        observed_at=now,
    )


def gpu_fault(who: Who, finding: Finding, now: float) -> Fault:
    """What the driver says of a GPU, as a fault of this node."""
    return Fault(
        node=who.node,
        rack=who.rack,
        session=who.session,
        kind=finding.kind,
        gpu=finding.gpu,
        value=finding.value,
        line=finding.text[:512],
        observed_at=now,
    )


def other_fault(who: Who, kind: SignalKind, now: float, line: str) -> Fault:
    """A fault that is no Xid: a hook that failed, a worker that could not be started or killed."""
    return Fault(
        node=who.node,
        rack=who.rack,
        session=who.session,
        kind=kind,
        line=line[:512],
        observed_at=now,
    )
