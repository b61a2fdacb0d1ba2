"""What a machine wants done (values, echoes) and what it hears (signals, status, heartbeats)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from rackwright.bus.ports import Bus, Feed, Ready, Stored
from rackwright.bus.streams import Kind
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Copies,
    Effect,
    Event,
    Heard,
    Observed,
    Project,
    SendEcho,
    StatusSeen,
    Turn,
)
from rackwright.host.commits import Author
from rackwright.host.crew import Crew
from rackwright.host.hearing import Hears
from rackwright.host.metrics import Metrics
from rackwright.host.projector import Projector
from rackwright.host.runner import Runner
from rackwright.wire.codec import decode, encode
from rackwright.wire.ids import CellName, LedgerId, MessageId, NodeId, RackId, SessionId
from rackwright.wire.message import Body, Envelope
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Echo, Fault, Heartbeat, NodeStatus, SignalKind
from rackwright.wire.subjects import Subjects
from rackwright.wire.values import RackAssignments
from tests.integration.bus.harness import Harness, MemoryHarness
from tests.integration.host.helpers import running, until

RACK, NODE, SESSION = RackId("r1"), NodeId("n1"), SessionId("s1")
LEDGER = LedgerId("one")


def envelope(bus: Bus, body: Body) -> bytes:
    return encode(
        Envelope(
            id=MessageId(f"{body.TYPE}.1"),
            type=body.TYPE,
            v=body.VERSION,
            at=0.0,
            source="agent/n1",
            cell=CellName(bus.cell),
            body=body,
        )
    )


def fault() -> Fault:
    return Fault(node=NODE, rack=RACK, session=SESSION, kind=SignalKind.XID, xid=79)


def status(n: int) -> NodeStatus:
    hardware = Hardware(serial="x", gpus=4)
    return NodeStatus(node=NODE, rack=RACK, session=SESSION, boot="b", n=n, hardware=hardware)


def beat(n: int) -> Heartbeat:
    return Heartbeat(node=NODE, rack=RACK, session=SESSION, n=n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Everything heard, and how much of it before the first turn."""

    events: tuple[Event, ...] = ()
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Notes what it hears and does `deeds` at its first turn."""

    deeds: list[Effect] = field(default_factory=list)
    service: str = "health-monitor"

    def start(self, copy: int) -> Notes:
        return Notes()

    def handle(self, state: Notes, fleet: Fleet, event: Event) -> tuple[Notes, list[Effect]]:
        if isinstance(event, Turn):
            if state.before is not None:
                return state, []
            return replace(state, before=len(state.events)), self.deeds
        return replace(state, events=(*state.events, event)), []


async def test_last_values_and_recent_signals_come_before_the_first_turn(
    harness: Harness, bus: Bus
) -> None:
    server_time = harness.now if isinstance(harness, MemoryHarness) else time.time()
    subjects = Subjects(CellName(bus.cell))
    await bus.status.put(subjects.status(RACK, NODE), envelope(bus, status(1)))
    await bus.status.put(subjects.status(RACK, NODE), envelope(bus, status(2)))
    await bus.signals.publish(subjects.signal(RACK, NODE), envelope(bus, fault()))
    hears = Hears(status=True, signals=True)
    runner = Runner(Listener(), hears, bus, wall=lambda: server_time)
    async with running(runner):
        await until(lambda: runner.state is not None and runner.state.before is not None)
        state = runner.state
    assert state is not None
    early = state.events[: state.before]
    assert sorted(type(event).__name__ for event in early) == ["Copies", "Observed", "StatusSeen"]
    assert [event.status.n for event in early if isinstance(event, StatusSeen)] == [2]
    assert [event.fault for event in early if isinstance(event, Observed)] == [fault()]


async def first(letters: Feed[Stored | Ready]) -> AsyncIterator[Stored | Ready]:
    """Up to the first dead letter."""
    async for letter in letters:
        yield letter
        if isinstance(letter, Stored):
            return


async def test_a_node_that_speaks_of_another_is_set_aside(bus: Bus) -> None:
    subjects = Subjects(CellName(bus.cell))
    other = replace(status(1), node=NodeId("n2"))
    await bus.status.put(subjects.status(RACK, NODE), envelope(bus, other))
    runner = Runner(Listener(), Hears(status=True), bus)
    async with running(runner), bus.dead.follow(0.0) as letters:
        await until(lambda: runner.state is not None and runner.state.before is not None)
        await bus.status.put(subjects.status(RACK, NODE), envelope(bus, status(2)))
        await until(lambda: runner.state is not None and len(runner.state.events) == 2)
        found = [letter async for letter in first(letters) if isinstance(letter, Stored)]
    assert [letter.subject for letter in found] == [subjects.dead("status")]


async def test_heartbeats_are_heard_and_follow_the_share(harness: Harness, bus: Bus) -> None:
    agent = await harness.bus()
    subject = Subjects(CellName(bus.cell)).heartbeat(RACK, NODE)
    runner = Runner(Listener(), Hears(heartbeats=True), bus)

    def heard() -> list[int]:
        events = runner.state.events if runner.state is not None else ()
        return [event.n for event in events if isinstance(event, Heard)]

    async with running(runner):
        for present in (1, 2, 1):
            # Alone, this copy hears all; beside another, only what is the other's is silent.
            shard = int(subject.split(".")[3])
            runner.set_copies(present, shard % present)
            count = len(heard())
            while len(heard()) == count:
                await agent.core.publish(subject, envelope(agent, beat(count)))
                await asyncio.sleep(0.01)
        state = runner.state
    assert state is not None
    copies = [event.present for event in state.events if isinstance(event, Copies)]
    assert copies == [1, 2, 1]


async def test_an_echo_reaches_its_rack(harness: Harness, bus: Bus) -> None:
    agent = await harness.bus()
    hears = await agent.core.subscribe(Subjects(CellName(bus.cell)).echo(RACK))
    echo = Echo(rack=RACK, head=1)
    runner = Runner(Listener([SendEcho(echo=echo)]), Hears(), bus)
    async with running(runner):
        message = await anext(hears)
    assert decode(Echo, message.data).body == echo


def value(seq: int, ledger: LedgerId = LEDGER) -> RackAssignments:
    return RackAssignments(ledger=ledger, seq=seq, rack=RACK)


class Writing:
    """A projector of copy `ordinal`, by itself."""

    def __init__(self, bus: Bus, ordinal: int = 0) -> None:
        self.bus = bus
        self.crew = Crew(lambda: None)
        author = Author(CellName(bus.cell), "dispatcher", ordinal)
        self.projector = Projector(
            bus, author, self.crew, Metrics(), now=lambda: 0.0, wake=lambda: None
        )

    async def write(self, *values: RackAssignments | None) -> RackAssignments | None:
        """Project these, one after the other in one moment; what the key holds afterwards."""
        for one in values:
            self.projector.project(Project(bucket="assign", key=RACK, value=one), LEDGER, 100)
        await until(lambda: self.projector.idle)
        self.crew.check()
        found = await self.bus.assign.get(RACK)
        return None if found is None else decode(RackAssignments, found.data).body


async def test_a_newer_value_is_never_overwritten(bus: Bus) -> None:
    first, second = Writing(bus), Writing(bus)
    assert await first.write(value(5)) == value(5)
    assert await second.write(value(7)) == value(7)
    assert await first.write(value(6)) == value(7)
    assert await first.write(value(8)) == value(8)


async def test_only_the_newest_of_several_is_written(bus: Bus) -> None:
    one = Writing(bus)
    assert await one.write(value(1), value(2), value(3)) == value(3)
    found = await bus.assign.get(RACK)
    assert found is not None
    assert found.revision == 1


async def test_a_value_can_be_deleted_and_written_again(bus: Bus) -> None:
    one = Writing(bus)
    await one.write(value(5))
    assert await one.write(None) is None
    assert await one.write(value(6)) == value(6)


async def test_what_another_process_wrote_is_deleted_too(bus: Bus) -> None:
    await Writing(bus).write(value(5))
    assert await Writing(bus).write(value(6), None) is None


async def test_values_of_another_ledger_and_nonsense_are_overwritten(bus: Bus) -> None:
    await Writing(bus).write(value(50, LedgerId("old")))
    assert await Writing(bus).write(value(2)) == value(2)
    found = await bus.assign.get(RACK)
    assert found is not None
    await bus.assign.put(RACK, b"nonsense", revision=found.revision)
    assert await Writing(bus).write(value(3)) == value(3)


async def test_an_equal_value_costs_no_write(bus: Bus) -> None:
    await Writing(bus).write(value(5))
    await Writing(bus).write(value(5))
    found = await bus.assign.get(RACK)
    assert found is not None
    assert found.revision == 1


async def test_what_the_bus_has_forgotten_is_written_anew(harness: Harness, bus: Bus) -> None:
    one = Writing(bus)
    await one.write(value(5))
    await harness.forget(Kind.ASSIGN)
    assert await bus.assign.get(RACK) is None
    one.projector.look_again()
    assert await one.write() == value(5)


async def test_a_newer_value_that_came_meanwhile_is_left(bus: Bus) -> None:
    first, second = Writing(bus), Writing(bus)
    await first.write(value(5))
    await second.write(value(6))
    first.projector.look_again()
    assert await first.write() == value(6)


async def test_a_later_copy_writes_what_the_first_does_not(bus: Bus) -> None:
    assert await Writing(bus, ordinal=1).write(value(5)) == value(5)
