"""From stored messages to events that lack only their time; what cannot be read is set aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from rackwright.bus.ports import NO_HEADERS, Headers, Message, Stored
from rackwright.core.machine import Event, Heard, Observed, StatusSeen, Wished, WishSkipped
from rackwright.wire.catalog import ANSWERS
from rackwright.wire.codec import Unreadable, decode_of_node, decode_wish
from rackwright.wire.ids import CellName, InvalidId, MessageId
from rackwright.wire.message import Body
from rackwright.wire.signals import Fault, Heartbeat, NodeStatus
from rackwright.wire.subjects import InvalidSubject, parse_wish

B = TypeVar("B", bound=Body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Something heard. `event` makes the event of it, from the times.

    `at` is the server's time of a stored message. The event gets it too, but never later than its
    `now`: a server's clock that was ahead and was set right must not have things happen to come.
    `cause` is the id of the message and `headers` its own, for traces. `obeyed` is the ledger
    sequence its author had seen: it waits until this fold is there, or until `mono` time `until`.
    """

    event: Callable[..., Event]
    name: str
    at: float | None = None
    cause: MessageId | None = None
    headers: Headers = field(default_factory=lambda: NO_HEADERS)
    obeyed: int = 0
    until: float = 0.0
    key: str = ""

    def due(self, folded: int, mono: float) -> bool:
        """May it be handled now?"""
        return self.obeyed <= folded or mono >= self.until

    def happens(self, *, now: float, mono: float) -> Event:
        """The event of it."""
        if self.at is None:
            return self.event(now=now, mono=mono)
        return self.event(now=now, mono=mono, at=min(self.at, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A message nobody here can read, and why; `instead` is what the machine is told of it."""

    stored: Stored
    why: str
    instead: Arrival | None = None


Read: TypeAlias = Arrival | SetAside


def wish_id(cell: CellName, seq: int) -> MessageId:
    """The id of a wish that came without one."""
    return MessageId(f"wish.{cell}.{seq}")


def wishes_of_others(service: str) -> frozenset[str]:
    """Types of wishes that are not for a service, if it is one that answers wishes."""
    if service not in ANSWERS.values():
        return frozenset()
    return frozenset(name for name, party in ANSWERS.items() if party != service)


def read_wish(
    cell: CellName, stored: Stored, until: float, others: frozenset[str] = frozenset()
) -> Read:
    """A wish, of the owner that its subject names; those for `others` are not even decoded.

    Ten thousand submits at once must not keep a monitor from its signals.
    """
    skipped = Arrival(event=partial(WishSkipped, seq=stored.seq), name="wish.skipped")
    try:
        subject = parse_wish(cell, stored.subject)
        if subject.type_name in others:
            return skipped
        wish, claimed = decode_wish(subject.type_name, stored.data, cell=cell)
    except (Unreadable, InvalidSubject, InvalidId) as error:
        return SetAside(stored=stored, why=str(error), instead=skipped)
    not_after: float | None = getattr(wish, "not_after", None)
    if not_after is not None and stored.at > not_after:
        why = f"arrived {stored.at - not_after:.3f} s after its not_after"
        return SetAside(stored=stored, why=why, instead=skipped)
    cause = wish_id(cell, stored.seq) if claimed is None else MessageId(claimed)
    return Arrival(
        event=partial(Wished, seq=stored.seq, id=cause, owner=subject.owner, wish=wish),
        name=subject.type_name,
        at=stored.at,
        cause=cause,
        headers=stored.headers,
        obeyed=getattr(wish, "obeyed", None) or 0,
        until=until,
    )


def read_signal(cell: CellName, stored: Stored, _until: float) -> Read:
    """A fault, as the node itself reports it."""
    message = _of_node(Fault, cell, "signal", stored)
    if isinstance(message, SetAside):
        return message
    return Arrival(
        event=partial(Observed, id=message.id, fault=message.body),
        name="signal.fault",
        at=stored.at,
        cause=message.id,
        headers=stored.headers,
    )


def read_status(cell: CellName, stored: Stored, until: float) -> Read:
    """The last value of one node."""
    message = _of_node(NodeStatus, cell, "status", stored)
    if isinstance(message, SetAside):
        return message
    return Arrival(
        event=partial(StatusSeen, id=message.id, status=message.body),
        name="status.node",
        at=stored.at,
        cause=message.id,
        headers=stored.headers,
        obeyed=message.body.obeyed,
        until=until,
        key=message.body.node,
    )


def read_heartbeat(cell: CellName, message: Message) -> Arrival | None:
    """A heartbeat; None if it cannot be read: another one comes."""
    try:
        beat = decode_of_node(
            Heartbeat, message.data, cell=cell, stream="hb", subject=message.subject
        ).body
    except (Unreadable, InvalidSubject, InvalidId):
        return None
    return heard(beat)


def heard(beat: Heartbeat) -> Arrival:
    """A heartbeat that could be read."""
    event = partial(
        Heard,
        node=beat.node,
        rack=beat.rack,
        session=beat.session,
        n=beat.n,
        head=beat.head,
        steady_s=beat.steady_s,
    )
    return Arrival(event=event, name="heartbeat")


def _of_node(kind: type[B], cell: CellName, stream: str, stored: Stored) -> Any:
    try:
        return decode_of_node(kind, stored.data, cell=cell, stream=stream, subject=stored.subject)
    except (Unreadable, InvalidSubject, InvalidId) as error:
        return SetAside(stored=stored, why=str(error))
