"""An agent process on a bus: it joins, obeys, reports, is fenced, and comes back."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackwright.agent.fleet import AgentProcess, NodeConfig
from rackwright.agent.records import WorkerRecord
from rackwright.bus.memory import MemoryBus
from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import Stored
from rackwright.bus.streams import declare
from rackwright.wire.codec import decode, encode
from rackwright.wire.ids import (
    CellName,
    JobId,
    LedgerId,
    MessageId,
    NodeId,
    Owner,
    RackId,
    SessionId,
    WorkerId,
)
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body, Envelope
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Echo, EchoLine, Heartbeat, NodeStatus, WorkerState
from rackwright.wire.subjects import Subjects
from rackwright.wire.values import (
    AssignmentLine,
    JobValue,
    NodeAssignment,
    RackAssignments,
    SliceMembers,
    StopLine,
)
from tests.integration.agent.helpers import gone

CELL = CellName("test")
RACK = RackId("r1")
NODE = NodeId("r1-n00")
LEDGER = LedgerId("l1")
SUBJECTS = Subjects(CELL)


def envelope(body: Body) -> bytes:
    return encode(
        Envelope(
            id=MessageId("m1"), type=body.TYPE, v=1, at=0.0, source="test", cell=CELL, body=body
        )
    )


@dataclass(slots=True)
class Cell:
    """Plays the services to one agent: echoes its heartbeats and writes what it must do."""

    bus: MemoryBus
    lease_s: float = 30.0
    seq: int = 0
    status: NodeStatus | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear_status(self) -> None:
        async with self.bus.status.follow() as feed:
            async for item in feed:
                if isinstance(item, Stored):
                    self.status = decode(NodeStatus, item.data).body
                    self.changed.set()

    async def echo(self) -> None:
        async with await self.bus.core.subscribe(SUBJECTS.heartbeats("*")) as feed:
            async for message in feed:
                beat = decode(Heartbeat, message.data).body
                line = EchoLine(node=beat.node, session=beat.session, n=beat.n)
                echo = Echo(rack=RACK, head=1, lease_s=self.lease_s, heartbeat_s=0.1, lines=(line,))
                if self.lease_s:
                    await self.bus.core.publish(SUBJECTS.echo(RACK), envelope(echo))

    async def until(self, holds: Callable[[NodeStatus], bool]) -> NodeStatus:
        async with asyncio.timeout(20):
            while self.status is None or not holds(self.status):
                self.changed.clear()
                await self.changed.wait()
        return self.status

    async def job(self, spec: JobSpec, membership: int = 1) -> None:
        part = SliceMembers(
            index=0, group="j", rack=RACK, first_rank=0, nodes=(NODE,), incarnations=(membership,)
        )
        value = JobValue(
            ledger=LEDGER,
            seq=self.seq,
            job=JobId("j"),
            owner=Owner("ann"),
            spec=spec,
            membership=membership,
            master="127.0.0.1",
            slices=(part,),
        )
        known = await self.bus.jobs.get("j")
        revision = known.revision if known is not None else 0
        await self.bus.jobs.put("j", envelope(value), revision=revision)

    async def assign(
        self, session: SessionId, *run: AssignmentLine, stop: tuple[StopLine, ...] = ()
    ) -> None:
        self.seq += 1
        node = NodeAssignment(session=session, run=run, stop=stop)
        value = RackAssignments(ledger=LEDGER, seq=self.seq, rack=RACK, nodes={NODE: node})
        known = await self.bus.assign.get(RACK)
        revision = known.revision if known is not None else 0
        await self.bus.assign.put(RACK, envelope(value), revision=revision)


def line(incarnation: int = 1, *, open: bool = True) -> AssignmentLine:
    return AssignmentLine(
        worker=WorkerId(f"j/0/{incarnation}"), job=JobId("j"), rank=0, membership=1, open=open
    )


def state_of(status: NodeStatus, worker: str = "j/0/1") -> WorkerState | None:
    return next((w.state for w in status.workers if w.worker == worker), None)


@pytest.fixture
async def cell() -> AsyncIterator[Cell]:
    store = MemoryStore(declare(CELL), lambda: 1000.0)
    cell = Cell(bus=MemoryBus(store, CELL))
    tasks = [asyncio.create_task(cell.hear_status()), asyncio.create_task(cell.echo())]
    yield cell
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await cell.bus.close()


@asynccontextmanager
async def agent(cell: Cell, root: Path, *, pretend: bool = False) -> AsyncIterator[AgentProcess]:
    config = NodeConfig(
        node=NODE,
        rack=RACK,
        hardware=Hardware(serial="sn", gpus=4, address="127.0.0.1"),
        root=root,
        kernel_log=root / "kernel.log",
    )
    bus = MemoryBus(cell.bus.store, CELL)
    process = AgentProcess(bus, (config,), pretend=pretend)
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await bus.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def append(path: Path, text: str) -> None:
    with open(path, "a", encoding="ascii") as file:
        file.write(text)


async def test_it_joins_prepares_behind_a_gate_starts_and_stops(cell: Cell, tmp_path: Path) -> None:
    async with agent(cell, tmp_path):
        joined = await cell.until(lambda status: True)
        assert joined.workers == ()
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(joined.session, line(open=False))
        await cell.until(lambda s: state_of(s) is WorkerState.PREPARED)
        await cell.assign(joined.session, line())
        running = await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
        pid = running.workers[0].pid
        assert pid is not None
        assert alive(pid)
        await cell.assign(joined.session, stop=(StopLine(worker=line().worker),))
        await cell.until(lambda s: state_of(s) is WorkerState.STOPPED)
        await cell.assign(joined.session)
        await cell.until(lambda s: s.workers == ())


async def test_a_restarted_agent_finds_its_worker_with_the_same_pid(
    cell: Cell, tmp_path: Path
) -> None:
    async with agent(cell, tmp_path):
        first = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(first.session, line())
        running = await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
    async with agent(cell, tmp_path):
        again = await cell.until(lambda s: s.session != first.session)
        assert state_of(again) is WorkerState.RUNNING
        assert again.workers[0].pid == running.workers[0].pid
        await cell.assign(again.session, stop=(StopLine(worker=line().worker),))
        await cell.until(lambda s: state_of(s) is WorkerState.STOPPED)


async def test_an_agent_that_died_with_all_its_workers_starts_and_tells_their_end(
    cell: Cell, tmp_path: Path
) -> None:
    """As with its container, or its host."""
    async with agent(cell, tmp_path):
        first = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(first.session, line())
        await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
    record = WorkerRecord.parse((tmp_path / "workers" / "j.0.1" / "state").read_bytes())
    os.kill(record.supervisor, signal.SIGKILL)
    await gone(record.pid)
    async with agent(cell, tmp_path):
        again = await cell.until(lambda s: s.session != first.session)
        assert state_of(again) is WorkerState.EXITED
        await cell.assign(again.session, line(2))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.RUNNING)
        await cell.assign(again.session, stop=(StopLine(worker=line(2).worker),))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.STOPPED)


async def test_a_worker_killed_when_no_agent_lived_is_told_without_a_code(
    cell: Cell, tmp_path: Path
) -> None:
    """Who ends a container kills all that is in it; its supervisor may be the last to go."""
    async with agent(cell, tmp_path):
        first = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(first.session, line())
        running = await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
    record = WorkerRecord.parse((tmp_path / "workers" / "j.0.1" / "state").read_bytes())
    assert running.workers[0].pid == record.pid
    os.kill(record.pid, signal.SIGKILL)
    await gone(record.supervisor)
    async with agent(cell, tmp_path):
        again = await cell.until(lambda s: s.session != first.session)
        assert [(one.state, one.code) for one in again.workers] == [(WorkerState.EXITED, None)]


async def test_a_worker_killed_while_its_agent_lives_is_told_with_its_signal(
    cell: Cell, tmp_path: Path
) -> None:
    async with agent(cell, tmp_path):
        joined = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(joined.session, line())
        running = await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
        os.kill(running.workers[0].pid or 0, signal.SIGKILL)
        ended = await cell.until(lambda s: state_of(s) is WorkerState.EXITED)
        assert [one.code for one in ended.workers] == [-signal.SIGKILL]


async def test_a_worker_of_a_history_that_was_forgotten_is_told_as_ended(
    cell: Cell, tmp_path: Path
) -> None:
    """A restored ledger may use a number again that this node has used up."""
    async with agent(cell, tmp_path):
        joined = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(joined.session, line())
        await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
        await cell.assign(joined.session, stop=(StopLine(worker=line().worker),))
        await cell.until(lambda s: state_of(s) is WorkerState.STOPPED)
        await cell.assign(joined.session)
        await cell.until(lambda s: s.workers == ())
        await cell.assign(joined.session, line())
        await cell.until(lambda s: state_of(s) is WorkerState.STOPPED)
        await cell.assign(joined.session, line(2))
        again = await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.RUNNING)
        assert state_of(again) is None
        await cell.assign(joined.session, stop=(StopLine(worker=line(2).worker),))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.STOPPED)


async def test_without_echoes_the_worker_is_fenced_and_the_node_joins_anew(
    cell: Cell, tmp_path: Path
) -> None:
    cell.lease_s = 1.0
    async with agent(cell, tmp_path):
        joined = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(joined.session, line())
        await cell.until(lambda s: state_of(s) is WorkerState.RUNNING)
        cell.lease_s = 0.0
        await cell.until(lambda s: state_of(s) is WorkerState.FENCED)
        anew = await cell.until(lambda s: s.session != joined.session)
        assert state_of(anew) is WorkerState.FENCED
        cell.lease_s = 30.0
        await cell.assign(joined.session, line(3))
        await cell.assign(anew.session, line(), line(2))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.RUNNING)
        assert cell.status is not None
        assert state_of(cell.status, "j/0/3") is None
        await cell.assign(anew.session, stop=(StopLine(worker=line(2).worker),))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.STOPPED)


async def test_a_stop_of_an_unknown_worker_is_told_as_its_end(cell: Cell, tmp_path: Path) -> None:
    async with agent(cell, tmp_path):
        joined = await cell.until(lambda status: True)
        await cell.assign(joined.session, stop=(StopLine(worker=line().worker),))
        await cell.until(lambda s: state_of(s) is WorkerState.STOPPED)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, run="exec sleep 600"))
        await cell.assign(joined.session, line(), line(2))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.RUNNING)
        assert cell.status is not None
        assert state_of(cell.status) is not WorkerState.RUNNING
        await cell.assign(joined.session, stop=(StopLine(worker=line(2).worker),))
        await cell.until(lambda s: state_of(s, "j/0/2") is WorkerState.STOPPED)


async def test_an_xid_in_the_kernel_log_becomes_a_signal(cell: Cell, tmp_path: Path) -> None:
    async with agent(cell, tmp_path), cell.bus.signals.follow(0.0) as feed:
        await cell.until(lambda status: True)
        text = "NVRM: Xid (PCI:0000:65:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
        append(tmp_path / "kernel.log", text)
        async with asyncio.timeout(20):
            async for item in feed:
                if isinstance(item, Stored):
                    assert b'"xid":79' in item.data
                    return


async def test_pretended_workers_run_for_their_time_and_end_well(
    cell: Cell, tmp_path: Path
) -> None:
    async with agent(cell, tmp_path, pretend=True):
        joined = await cell.until(lambda status: True)
        await cell.job(JobSpec(name=JobId("j"), nodes=1, pretend_s=0.2))
        await cell.assign(joined.session, line())
        ended = await cell.until(lambda s: state_of(s) is WorkerState.EXITED)
        assert ended.workers[0].code == 0
