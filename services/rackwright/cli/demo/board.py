"""What the nodes say and what the kernel says: the demo believes no ledger about processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rackwright.agent.processes import start_time
from rackwright.bus.ports import Bus, Stored
from rackwright.wire.codec import decode
from rackwright.wire.ids import NodeId, WorkerId
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus

Holds = Callable[["Board"], bool]


@dataclass(slots=True)
class Board:
    """The last status of every node, and a way to wait for what it should say."""

    nodes: dict[NodeId, NodeStatus] = field(default_factory=dict)
    waiters: list[tuple[Holds, asyncio.Future[None]]] = field(default_factory=list)

    def worker(self, worker: str) -> WorkerStatus | None:
        """The status of one worker, wherever it is."""
        for status in self.nodes.values():
            for one in status.workers:
                if one.worker == worker:
                    return one
        return None

    def pids(self, job: str) -> dict[WorkerId, int]:
        """Process ids of the running workers of a job."""
        return {
            one.worker: one.pid
            for status in self.nodes.values()
            for one in status.workers
            if one.worker.partition("/")[0] == job
            and one.state is WorkerState.RUNNING
            and one.pid is not None
        }

    def running(self) -> int:
        """How many workers have processes."""
        live = (WorkerState.RUNNING, WorkerState.PREPARED)
        return sum(one.state in live for status in self.nodes.values() for one in status.workers)

    async def until(self, holds: Holds, within_s: float = 60.0) -> None:
        """Wait until the nodes say so. Raises TimeoutError."""
        if holds(self):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append((holds, future))
        async with asyncio.timeout(within_s):
            await future

    def take(self, status: NodeStatus) -> None:
        """A node has spoken."""
        self.nodes[status.node] = status
        for holds, future in self.waiters:
            if not future.done() and holds(self):
                future.set_result(None)
        self.waiters = [(holds, one) for holds, one in self.waiters if not one.done()]


@asynccontextmanager
async def board(bus: Bus) -> AsyncIterator[Board]:
    """Follow all statuses while the block runs."""
    made = Board()

    async def follow() -> None:
        async with bus.status.follow() as feed:
            async for item in feed:
                if isinstance(item, Stored):
                    made.take(decode(NodeStatus, item.data).body)

    task = asyncio.create_task(follow())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def identity(pid: int) -> tuple[int, int]:
    """A process for good: its pid and when it started; (pid, 0) when it is gone."""
    return pid, start_time(pid)


def lives(pid: int) -> bool:
    """Does the kernel know this process (and it is no zombie)?"""
    return start_time(pid) != 0
