"""A million lines in the kernel log of one node, and somebody who has stopped reading the bus.

One agent hosts all nodes of a small cell. While it goes through the lines, other nodes of it have
faults: an Xid 79, counted until the swap is in the ledger. Then jobs are submitted in a burst while
a client that follows the ledger and all that is told does not read any more.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from benchmarks.live import IN_FLIGHT, LiveCell, live_cell
from benchmarks.measuring import Row, Scale, alone, python_loop_ns, spread
from benchmarks.swaps import fault_to_recovery, kernel_log
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.cli.credentials import ADMIN
from rackwright.wire.codec import to_json
from rackwright.wire.ids import CellName, JobId, NodeId, Owner
from rackwright.wire.jobs import JobSpec
from rackwright.wire.subjects import ROOT
from rackwright.wire.wishes import Cancel

RACKS = 6
KINDS = (13, 31, 43, 45, 63, 94, 119, 149)  # user's, driver's and hardware's, mixed
AT_ONCE = 10_000  # lines a write
BESIDE = 12  # faults of other nodes meanwhile
PATIENCE_S = 600.0
LOOK_S = 0.2
DEAF, SECRET = "deaf", "STORM_SECRET"
LINE = "NVRM: Xid (PCI:0000:0{gpu}:00): {xid}, pid={pid}, name=python, channel {pid}\n"


def lines(count: int) -> Iterator[bytes]:
    """So many lines, no two alike."""
    for first in range(0, count, AT_ONCE):
        some = range(first, min(count, first + AT_ONCE))
        made = (LINE.format(gpu=n % 4, xid=KINDS[n % len(KINDS)], pid=n) for n in some)
        yield "".join(made).encode()


class Agent:
    """The process of the agent, as the system sees it."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    @property
    def now_mb(self) -> float:
        """Resident memory."""
        return float(self._process.memory_info().rss / 1e6)

    @property
    def cpu_s(self) -> float:
        """Processor time so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)


def _place(position: Path) -> int:
    """How far the agent has read, as it has kept it."""
    try:
        return int(position.read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return 0


async def _read_through(position: Path, size: int, agent: Agent) -> float:
    """Until the agent has read all of the log; the most memory it had, in MB."""
    peak = agent.now_mb
    async with asyncio.timeout(PATIENCE_S):
        while _place(position) < size:
            peak = max(peak, agent.now_mb)
            await asyncio.sleep(LOOK_S)
    return peak


async def _count(cell: LiveCell, node: NodeId, counted: list[int]) -> None:
    """Signals of this node on the bus, until cancelled."""
    async with await cell.bus.core.subscribe(f"{ROOT}.main.signal.*.*.{node}") as feed:
        async for _ in feed:
            counted[0] += 1


def _write(log: Path, count: int) -> int:
    """All lines, as fast as the disk takes them; the size of the log."""
    with open(log, "ab") as file:
        file.writelines(lines(count))
        return file.tell()


async def _storm(cell: LiveCell, count: int) -> AsyncIterator[Row]:
    names = [f"t{turn}" for turn in range(RACKS - 1)]
    await cell.submit(names, JobSpec(name=JobId("t"), nodes=14, pretend_s=3600.0))
    fleet = await cell.started(names)
    wild = fleet.racks[RACKS - 1].nodes[0].name
    log, agent = kernel_log(cell, wild), Agent(cell.stack.kept["node-agent-0"].pid)
    before_mb, cpu, counted = agent.now_mb, agent.cpu_s, [0]
    counting = asyncio.create_task(_count(cell, wild, counted))
    began = time.monotonic()
    writing = asyncio.create_task(asyncio.to_thread(_write, log, count))
    beside = [await fault_to_recovery(cell, names[n % len(names)], n) for n in range(BESIDE)]
    peak = await _read_through(log.parent / "kernel-log.position", await writing, agent)
    took = time.monotonic() - began
    counting.cancel()
    params = cell.params(lines=count, signals=counted[0], loop_ns=round(python_loop_ns(), 1))
    yield Row(name="storm_lines_per_s", params=params, value=count / took, unit="1/s")
    told = {**params, "before_mb": round(before_mb, 1)}
    yield Row(name="storm_agent_grew_mb", params=told, value=peak - before_mb, unit="MB")
    yield Row(name="storm_agent_cpu_s", params=params, value=agent.cpu_s - cpu, unit="s")
    for row in spread("storm_fault_beside", "ms", beside, params):
        yield row


@asynccontextmanager
async def deaf_client(cell: LiveCell) -> AsyncIterator[None]:
    """A process that follows the ledger and all that is told, stopped in the middle of it."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.storm", DEAF, cell.stack.server.url),
        env={**os.environ, SECRET: cell.stack.credentials.password(ADMIN)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        if (said := await child.stdout.readline()) != b"ready\n":
            raise RuntimeError(f"'ready' was expected, {said!r} came")
        child.send_signal(signal.SIGSTOP)
        yield
    finally:
        child.kill()
        await child.wait()


async def _be_deaf(url: str) -> None:
    options = ConnectOptions(
        servers=(url,), identity=ADMIN, user=ADMIN, password=os.environ[SECRET]
    )
    bus = await connect(options, CellName("main"))
    told = await bus.core.subscribe(f"{ROOT}.main.told.>")
    async with bus.ledger.follow(1) as feed:
        await feed.batch()
        print("ready", flush=True)
        while True:
            await feed.batch()
            await told.batch()


async def _answered(cell: LiveCell, tag: str, count: int) -> float:
    """Wishes answered a second: cancels of jobs that never were, each an entry of its own."""
    subject = cell.subjects.wish(Owner(cell.stack.options.owner), Cancel.TYPE)
    names = [JobId(f"{tag}-{number}") for number in range(count)]
    began = time.monotonic()
    for some in range(0, count, IN_FLIGHT):
        wishes = (to_json(Cancel(job=name)) for name in names[some : some + IN_FLIGHT])
        await asyncio.gather(*(cell.bus.wishes.publish(subject, wish) for wish in wishes))
    await cell.watched.until(lambda fleet: all(map(fleet.tombstones.__contains__, names)), 300.0)
    return count / (time.monotonic() - began)


async def _deaf(cell: LiveCell, count: int) -> AsyncIterator[Row]:
    before = await _answered(cell, "before", count)
    async with deaf_client(cell):
        during = await _answered(cell, "during", count)
    after = await _answered(cell, "after", count)
    params = cell.params(wishes=count, before=round(before), after=round(after))
    yield Row(name="storm_answered_beside_deaf_per_s", params=params, value=during, unit="1/s")


async def _rows(scale: Scale) -> AsyncIterator[Row]:
    async with live_cell(RACKS, pretend=True, agents=1) as cell:
        await cell.stack.ready(cell.watched)
        async for row in _storm(cell, scale.pick(1_000_000, 50_000)):
            yield row
        async for row in _deaf(cell, scale.pick(5_000, 500)):
            yield row


def measure(scale: Scale) -> Iterator[Row]:
    """A million kernel-log lines of one node, and a client that does not read any more."""

    async def run() -> list[Row]:
        return [row async for row in _rows(scale)]

    yield from asyncio.run(run())


if __name__ == "__main__":
    if sys.argv[1:2] == [DEAF]:
        asyncio.run(_be_deaf(sys.argv[2]))
    else:
        alone(measure)
