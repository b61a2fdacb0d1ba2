"""Makes it happen: a live cell of pretended workers, jobs submitted on time, nodes that break."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.trace import troubles
from benchmarks.trace.settings import hastened
from benchmarks.trace.troubles import Failure, Kind
from benchmarks.trace.workload import Workload
from rackwright.bus.errors import BusAway, NoResponder
from rackwright.cli.asking import Cell, reach
from rackwright.cli.stack import Stack, StackOptions
from rackwright.cli.watcher import Watched
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import JobState
from rackwright.host.clock import boottime
from rackwright.wire.codec import to_json
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.message import Body
from rackwright.wire.nodes import RackSpec, RepairAction
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Repaired, Submit

XID = "NVRM: Xid (PCI:0000:01:00): {text}"
BETWEEN_S = 1.5  # real seconds between failures of a burst: more than the symptom window
BURSTS = 4
SILENT_S = 20.0  # real seconds at least, so that the node is declared failed
FOREVER_S = 86_400.0
PATIENCE = 1.6  # times the planned duration, and
MORE_S = 180.0  # so many seconds besides, until a run is given up


class Unfinished(Exception):
    """Jobs are left when the time is up."""

    def __init__(self, left: list[str]) -> None:
        super().__init__(f"{len(left)} jobs have not ended: " + "; ".join(left[:10]))
        self.left = left


@dataclass(slots=True, kw_only=True)
class Drive:
    """One run. `speed`: seconds of the trace in one real second; `began`: when it started."""

    stack: Stack
    cell: Cell
    watched: Watched
    workload: Workload
    speed: float
    seed: int
    began: float = 0.0
    submitted: int = 0
    seen: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    log: list[tuple[float, str]] = field(default_factory=list)

    @property
    def trace_s(self) -> float:
        """Seconds of the trace that have passed."""
        return (boottime() - self.began) * self.speed

    async def until(self, trace_s: float) -> None:
        """Wait until so many seconds of the trace have passed."""
        await asyncio.sleep(self.began + trace_s / self.speed - boottime())

    async def publish(self, wish: Body) -> None:
        """Any client of the bus may: one JSON message, sent again when no answer came."""
        subject = self.cell.subjects.wish(self.cell.user, wish.TYPE)
        data = to_json(wish)
        while True:
            try:
                await self.cell.bus.wishes.publish(subject, data)
                return
            except BusAway:
                self.log.append((self.trace_s, f"{wish.TYPE} sent again"))

    async def run(self, progress: Callable[["Drive"], None]) -> None:
        """From the first submit to the end of the last job. Raises Unfinished."""
        self.began = boottime()
        planned = self.workload.end_s / self.speed
        nodes = [node for rack in self.stack.options.racks for node in rack.nodes]
        end = self.workload.span_s
        async with asyncio.TaskGroup() as tasks:
            work = [self._fail_at(one) for one in troubles.by_chance(nodes, end, self.seed)]
            work += [self._bursts(end), self._report(progress)]
            side = [tasks.create_task(one) for one in work]
            await self._submit()
            try:
                await self.watched.until(self._all_ended, planned * PATIENCE + MORE_S)
            except TimeoutError:
                raise Unfinished(self._left()) from None
            finally:
                for task in side:
                    task.cancel()

    async def _submit(self) -> None:
        for job in self.workload.jobs:
            await self.until(job.submit_s)
            await self.publish(Submit(job=job.id, spec=job.spec(self.speed)))
            self.submitted += 1

    def _all_ended(self, fleet: Fleet) -> bool:
        return len(fleet.tombstones) >= len(self.workload.jobs) and not fleet.jobs

    def _left(self) -> list[str]:
        fleet = self.watched.fleet
        unknown = [
            f"{job.id} is unknown"
            for job in self.workload.jobs
            if job.id not in fleet.jobs and job.id not in fleet.tombstones
        ]
        return unknown + [
            f"{name} {job.state} {job.blocked.code if job.blocked else ''}"
            for name, job in sorted(fleet.jobs.items())
        ]

    # Trouble

    async def _fail_at(self, failure: Failure) -> None:
        await self.until(failure.at_s)
        await self._fail(failure)

    async def _fail(self, failure: Failure) -> None:
        self.log.append((self.trace_s, f"{failure.kind} on {failure.node}"))
        if failure.kind is Kind.SILENCE:
            await self._inject(failure.node, silent_s=max(SILENT_S, failure.repair_s / self.speed))
            return
        await self._inject(failure.node, line=XID.format(text=failure.line))
        await asyncio.sleep(failure.repair_s / self.speed)
        await self.publish(
            Repaired(node=failure.node, action=RepairAction.REPLACE, why="as planned")
        )

    async def _inject(self, node: NodeId, **what: object) -> None:
        subject = Subjects(self.cell.subjects.cell).query(f"inject.{node}")
        data = json.dumps(what).encode()
        while True:
            try:
                await self.cell.bus.core.request(subject, data, patience=10.0)
                return
            except (BusAway, NoResponder) as error:
                self.log.append((self.trace_s, f"{error}: again"))
                await asyncio.sleep(1.0)

    async def _bursts(self, end_s: float) -> None:
        """Break nodes of one slice until its spares are used up and it moves."""
        lines = troubles.burst_lines(self.seed)
        async with asyncio.TaskGroup() as repairs:
            for at in troubles.burst_times(end_s, BURSTS, self.seed):
                await self.until(at)
                fleet = await self.watched.until(troubles.can_burst, FOREVER_S)
                job, part = troubles.burst_target(fleet)
                count = fleet.racks[part.rack].usable.bit_count() + 1
                self.log.append((self.trace_s, f"{count} nodes of {job.id} slice {part.index}"))
                for turn in range(count):
                    node = self._victim(job.id, part.index, turn)
                    if node is None:
                        break
                    repairs.create_task(self._fail(_of_burst(node, next(lines))))
                    await asyncio.sleep(BETWEEN_S)

    def _victim(self, name: JobId, index: int, turn: int) -> NodeId | None:
        """A node of the slice as it sits now; None when the job does not run any more."""
        fleet = self.watched.fleet
        job = fleet.jobs.get(name)
        if job is None or job.state not in {JobState.RUNNING, JobState.PLACED}:
            return None
        part = job.slices[index]
        return fleet.node_at(part.rack, part.nodes[turn]).name

    # What is told meanwhile

    async def _report(self, progress: Callable[["Drive"], None]) -> None:
        while True:
            self.count()
            progress(self)
            await asyncio.sleep(1.0)

    def count(self) -> None:
        """Count the entries that came since."""
        for commit in self.watched.commits[self.seen :]:
            if not commit.void:
                for entry in commit.entries:
                    self.counts[entry.TYPE] += 1
                    if isinstance(entry, JobBlocked):
                        self.counts[entry.reason.code] += 1
        self.seen = len(self.watched.commits)


def _of_burst(node: NodeId, line: str) -> Failure:
    return Failure(at_s=0.0, node=node, kind=Kind.XID, line=line, repair_s=troubles.BURST_REPAIR_S)


def stack_options(root: Path, racks: tuple[RackSpec, ...], speed: float) -> StackOptions:
    """The cell: one process for all agents, so that pretended checkpoints are shared."""
    return StackOptions(
        state_dir=root, racks=racks, policy=hastened(speed), pretend=True, log_level="warning"
    )


@asynccontextmanager
async def cell(options: StackOptions) -> AsyncIterator[tuple[Stack, Cell, Watched]]:
    """A cell that is ready, a user of it, and a fold of its ledger."""
    async with Stack(options) as stack, AsyncExitStack() as more:
        watched = await more.enter_async_context(stack.watching())
        user = await more.enter_async_context(reach(stack.context))
        await stack.ready(watched)
        yield stack, user, watched
