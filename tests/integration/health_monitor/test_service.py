"""The health-monitor in its host, on both buses: nodes join, are echoed, fail and come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackwright.bus.ports import Bus
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer
from rackwright.health_monitor.config import HEARS, PATIENCE_S
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.health_monitor.state import State
from rackwright.host.commits import Author
from rackwright.host.create import create_ledger
from rackwright.host.runner import Runner
from rackwright.host.service import in_process
from rackwright.host.talkers import MOST
from rackwright.wire.codec import decode, encode
from rackwright.wire.entries.node import RackDefined
from rackwright.wire.ids import CellName, NodeId, Owner, RackId, SessionId
from rackwright.wire.message import Body, Envelope
from rackwright.wire.nodes import Fitness, Hardware, RackSpec
from rackwright.wire.policy import Policy
from rackwright.wire.signals import Echo, Fault, Heartbeat, NodeStatus, SignalKind
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Cordon
from tests.integration.bus.harness import MemoryHarness, opened
from tests.integration.host.helpers import until

RACK = RackId("r0")
NODES = tuple(NodeId(f"r0-n{place}") for place in range(4))
POLICY = Policy(
    heartbeat_s=0.2, suspect_after_s=0.8, fence_after_s=1.0, fresh_s=0.6, kill_s=0.1, probation_s=1
)


@dataclass(slots=True)
class Nodes:
    """Stand-ins for agents: each tells its status once, and beats while it is in `alive`."""

    bus: Bus
    alive: dict[NodeId, SessionId] = field(default_factory=dict)
    echoed: dict[NodeId, tuple[SessionId, int]] = field(default_factory=dict)
    n: int = 0

    def envelope(self, body: Body) -> bytes:
        self.n += 1
        cell = CellName(self.bus.cell)
        return encode(
            Envelope(
                id=f"m{self.n}",  # type: ignore[arg-type]
                type=body.TYPE,
                v=1,
                at=0.0,
                source="agent",
                cell=cell,
                body=body,
            )
        )

    async def start(self, node: NodeId, session: str, boot: str = "b1") -> None:
        """A new session of an agent."""
        self.alive[node] = SessionId(session)
        body = NodeStatus(
            node=node,
            rack=RACK,
            session=SessionId(session),
            boot=boot,
            n=0,
            hardware=Hardware(serial=f"sn-{node}", gpus=4),
        )
        subject = Subjects(CellName(self.bus.cell)).status(RACK, node)
        await self.bus.status.put(subject, self.envelope(body))

    async def fault(self, node: NodeId, xid: int) -> None:
        """An Xid in the kernel log."""
        body = Fault(node=node, rack=RACK, session=self.alive[node], kind=SignalKind.XID, xid=xid)
        subject = Subjects(CellName(self.bus.cell)).signal(RACK, node)
        await self.bus.signals.publish(subject, self.envelope(body))

    async def beat(self) -> None:
        """Beat for ever."""
        subjects = Subjects(CellName(self.bus.cell))
        for n in range(1, 1_000_000):
            for node, session in tuple(self.alive.items()):
                body = Heartbeat(node=node, rack=RACK, session=session, n=n)
                await self.bus.core.publish(subjects.heartbeat(RACK, node), self.envelope(body))
            await asyncio.sleep(POLICY.heartbeat_s)

    async def listen(self) -> None:
        """Note the newest echo of each node."""
        subject = Subjects(CellName(self.bus.cell)).echo(RACK)
        async with await self.bus.core.subscribe(subject) as echoes:
            async for message in echoes:
                for line in decode(Echo, message.data).body.lines:
                    self.echoed[line.node] = (line.session, line.n)


@dataclass(slots=True)
class Stage:
    """A running monitor and the nodes it hears."""

    runner: Runner[State]
    nodes: Nodes

    @property
    def fleet(self) -> Fleet:
        return self.runner.standing.fleet

    def fitness(self, node: NodeId) -> Fitness:
        return self.fleet.node(node).fitness


async def define_rack(bus: Bus, fleet: Fleet) -> None:
    """One rack, as an administrator would have it defined."""
    author = Author(CellName(bus.cell), "placer", 0)
    entry = RackDefined(rack=RackSpec(rack=RACK, nodes=NODES))
    sealed = author.seal(fleet, Offer(entries=(entry,)), 0.0)
    await bus.ledger.append(sealed.subject, sealed.data, expected=fleet.seq)


@asynccontextmanager
async def stage(kind: str, directory: Path) -> AsyncIterator[Stage]:
    async with opened(kind, directory) as harness:
        if isinstance(harness, MemoryHarness):
            harness.now = time.time()  # ledger time and signals are compared with the clock
        bus, other = await harness.bus(), await harness.bus()
        assert await create_ledger(bus, POLICY)
        nodes = Nodes(other)
        async with in_process(HealthMonitor(), HEARS, bus, patience_s=PATIENCE_S) as runner:
            made = Stage(runner, nodes)
            await until(lambda: made.fleet.seq >= 1 and made.fleet.last_id is not None)
            async with asyncio.TaskGroup() as tasks:
                work = [tasks.create_task(nodes.beat()), tasks.create_task(nodes.listen())]
                try:
                    yield made
                finally:
                    for task in work:
                        task.cancel()


@pytest.fixture(params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)])
async def s(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(request.param, tmp_path / "nats") as made:
        while RACK not in made.fleet.rack_numbers:
            await define_rack(made.nodes.bus, made.fleet)
            await asyncio.sleep(0.01)
        for node in NODES:
            await made.nodes.start(node, f"{node}-s1")
        await until(lambda: all(made.fitness(node) is Fitness.FULL for node in NODES))
        yield made


async def test_nodes_join_and_are_echoed(s: Stage) -> None:
    await until(lambda: set(s.nodes.echoed) == set(NODES))
    assert s.nodes.echoed[NODES[0]][0] == f"{NODES[0]}-s1"


async def test_a_fault_takes_its_node_out_and_a_reboot_brings_it_back(s: Stage) -> None:
    await s.nodes.fault(NODES[1], 79)
    await until(lambda: s.fitness(NODES[1]) is Fitness.NONE)
    await s.nodes.start(NODES[1], "s2", boot="b2")
    await until(lambda: s.fitness(NODES[1]) is Fitness.FULL)
    assert s.fleet.node(NODES[1]).probation_until > 0


async def test_a_silent_node_is_fenced_and_the_others_keep_their_leases(s: Stage) -> None:
    del s.nodes.alive[NODES[2]]
    await until(lambda: s.fleet.node(NODES[2]).failed)
    assert s.fleet.node(NODES[2]).fenced == f"{NODES[2]}-s1"
    assert all(not s.fleet.node(node).suspected for node in NODES if node != NODES[2])
    s.nodes.echoed.clear()
    await until(lambda: len(s.nodes.echoed) == 3)


async def test_an_operators_wish_is_answered(s: Stage) -> None:
    bus = s.nodes.bus
    subject = Subjects(CellName(bus.cell)).wish(Owner("ops"), Cordon.TYPE)
    seq = await bus.wishes.publish(subject, encode(Cordon(node=NODES[3])))
    await until(lambda: s.fleet.node(NODES[3]).cordoned)
    assert s.fleet.answered("health-monitor", seq)


async def test_a_node_that_reports_without_end_keeps_nobody_from_being_heard(s: Stage) -> None:
    """Thirteen is the fault of a program, so the wild node itself stays in service."""
    began = int(time.time())
    await asyncio.gather(*(s.nodes.fault(NODES[0], 13) for _ in range(4 * MOST)))
    await s.nodes.fault(NODES[1], 79)
    await until(lambda: s.fitness(NODES[1]) is Fitness.NONE)
    assert s.fitness(NODES[0]) is Fitness.FULL
    seconds = int(time.time()) - began + 1
    read = s.runner.metrics.registry.get_sample_value(
        "rackwright_heard_total", {"source": "signal"}
    )
    assert read is not None
    assert 1 < read <= MOST * seconds + 1
