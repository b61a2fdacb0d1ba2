"""An agent may be older than the services: it reads their values as long as nothing new is used."""

import json
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

import pytest

from rackwright.wire.codec import Unreadable, decode, encode, encode_value, kind_of
from rackwright.wire.ids import (
    CellName,
    JobId,
    LedgerId,
    MessageId,
    NodeId,
    RackId,
    SessionId,
    WorkerId,
)
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body, Envelope, Part
from rackwright.wire.values import AssignmentLine, JobValue, NodeAssignment, RackAssignments
from tests.contracts.files import example

VALUES = (RackAssignments.TYPE, JobValue.TYPE)
WORKER = WorkerId("j/0/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerLine(AssignmentLine):
    """A line as the software after this may write it."""

    colour: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerNode(Part):
    """The same of a node."""

    session: str
    run: tuple[NewerLine, ...] = ()
    mood: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRack(RackAssignments):
    """The same of a rack."""

    nodes: dict[str, NewerNode] = field(default_factory=dict)  # type: ignore[assignment]
    weather: tuple[str, ...] = ()


def envelope(body: Body) -> Envelope[Any]:
    return Envelope(
        id=MessageId("m1"),
        type=body.TYPE,
        v=body.VERSION,
        at=1.0,
        source="dispatcher/0",
        cell=CellName("main"),
        body=body,
    )


def newer(colour: str = "", mood: str | None = None, weather: tuple[str, ...] = ()) -> bytes:
    """A rack's value of the software after this."""
    line = NewerLine(worker=WORKER, job=JobId("j"), rank=0, membership=1, open=True, colour=colour)
    rack = NewerRack(
        ledger=LedgerId("l1"),
        seq=7,
        rack=RackId("r1"),
        nodes={"r1-n00": NewerNode(session="s1", run=(line,), mood=mood)},
        weather=weather,
    )
    return encode_value(envelope(rack))


def test_what_nobody_has_used_yet_is_not_told() -> None:
    line = AssignmentLine(worker=WORKER, job=JobId("j"), rank=0, membership=1, open=True)
    nodes = {NodeId("r1-n00"): NodeAssignment(session=SessionId("s1"), run=(line,))}
    assert decode(RackAssignments, newer()).body == RackAssignments(
        ledger=LedgerId("l1"), seq=7, rack=RackId("r1"), nodes=nodes
    )


@pytest.mark.parametrize(
    ("used", "named"),
    [({"colour": "red"}, "colour"), ({"mood": "low"}, "mood"), ({"weather": ("hot",)}, "weather")],
)
def test_what_is_used_is_refused_by_its_field(used: dict[str, Any], named: str) -> None:
    """Loudly: to obey half of an order would be worse."""
    with pytest.raises(Unreadable) as refused:
        decode(RackAssignments, newer(**used))
    assert named in refused.value.field


@pytest.mark.parametrize("name", VALUES)
def test_a_value_means_the_same_without_its_defaults(name: str) -> None:
    message = decode(kind_of(name), example(name))
    assert decode(kind_of(name), encode_value(message)) == message
    assert len(encode_value(message)) <= len(encode(message))


def test_a_specification_says_only_what_its_owner_said() -> None:
    spec = JobSpec(name=JobId("j"), nodes=2, run="hostname")
    said = json.loads(encode_value(envelope(_value(spec))))
    default = {one.name for one in fields(JobSpec) if one.default is not MISSING}
    assert set(said["body"]["spec"]) & default == {"nodes", "run"}


def _value(spec: JobSpec) -> JobValue:
    return replace(decode(JobValue, example(JobValue.TYPE)).body, spec=spec)
