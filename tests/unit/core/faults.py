"""Faults as a node would report them."""

from rackwright.wire.ids import NodeId, RackId, SessionId
from rackwright.wire.signals import Fault, SignalKind


def fault(
    kind: SignalKind = SignalKind.XID,
    *,
    xid: int | None = None,
    mnemonic: str = "",
    severity: str = "",
    words: tuple[int, ...] = (),
    line: str = "",
    gpu: int | None = None,
    link: int | None = None,
    count: int = 1,
) -> Fault:
    return Fault(
        node=NodeId("n1"),
        rack=RackId("r1"),
        session=SessionId("s1"),
        kind=kind,
        xid=xid,
        mnemonic=mnemonic,
        severity=severity,
        words=words,
        line=line,
        gpu=gpu,
        link=link,
        count=count,
    )


def xid(number: int, *, mnemonic: str = "", severity: str = "", status: int | None = None) -> Fault:
    words = () if status is None else (0, status)
    return fault(xid=number, mnemonic=mnemonic, severity=severity, words=words)
