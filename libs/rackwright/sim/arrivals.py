"""Arrivals without bytes: what a process hears where nothing need be written down and read back."""

from __future__ import annotations

from functools import partial

from rackwright.core.machine import Observed, StatusSeen, Wished
from rackwright.host.reading import Arrival
from rackwright.wire.ids import MessageId, Owner
from rackwright.wire.message import Body
from rackwright.wire.signals import Fault, NodeStatus


def wished(seq: int, owner: Owner, at: float, wish: Body) -> Arrival:
    """The wish at `seq` of the wish stream, stored at `at`."""
    cause = MessageId(f"wish.{seq}")
    event = partial(Wished, seq=seq, id=cause, owner=owner, wish=wish)
    return Arrival(event=event, name=wish.TYPE, at=at, cause=cause)


def status(number: int, at: float, said: NodeStatus) -> Arrival:
    """The last value of a node; `number` makes its message's id."""
    cause = MessageId(f"status.{number}")
    event = partial(StatusSeen, id=cause, status=said)
    return Arrival(
        event=event, name="status.node", at=at, cause=cause, obeyed=said.obeyed, key=said.node
    )


def signal(number: int, at: float, fault: Fault) -> Arrival:
    """A fault; `number` makes its message's id."""
    cause = MessageId(f"signal.{number}")
    event = partial(Observed, id=cause, fault=fault)
    return Arrival(event=event, name="signal.fault", at=at, cause=cause)
