"""A node with real workers, as the tests drive it."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rackwright.agent import lease, processes
from rackwright.agent.inotify import Change, Inotify
from rackwright.agent.launch import Launcher
from rackwright.agent.records import WorkerRecord, WorkerSpec
from rackwright.agent.workers import WorkerStore

PATIENCE_S = 120.0  # a limit for what never comes, not a measure of speed
SECOND_NS = 1_000_000_000


class Node:
    """A worker store whose changes can be waited for."""

    def __init__(
        self, root: Path, *, cgroups: Path | None = None, launcher: Launcher | None = None
    ) -> None:
        self.changes: list[WorkerRecord] = []
        self._news = asyncio.Event()
        self.store = WorkerStore(root, self._hear, cgroups=cgroups, launcher=launcher)
        self.alive = self.store.open()

    def _hear(self, record: WorkerRecord) -> None:
        self.changes.append(record)
        self._news.set()

    def feed(self, seconds: float) -> int:
        """A lease from now on; returns its end in ns of CLOCK_BOOTTIME."""
        until = lease.now_ns() + int(seconds * SECOND_NS)
        self.store.feed(until)
        return until

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds after a change."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                self._news.clear()
                await self._news.wait()

    async def reach(self, worker_id: str, *states: str) -> WorkerRecord:
        """Wait for the worker to be in one of these states."""
        await self.until(lambda: self.store.records[worker_id].state in states)
        return self.store.records[worker_id]

    async def end(self, worker_id: str) -> WorkerRecord:
        """Wait for the worker's end, reaped."""
        await self.until(
            lambda: self.store.records[worker_id].ended and self.store.records[worker_id].reaped
        )
        return self.store.records[worker_id]

    async def run(self, worker_id: str, script: str, **fields: object) -> WorkerRecord:
        """Start a shell script as a worker and wait until it runs."""
        env = {"PATH": os.environ["PATH"]}
        spec = WorkerSpec(worker_id=worker_id, run=script, env=env, **fields)  # type: ignore[arg-type]
        self.store.prepare(spec)
        self.store.go(worker_id)
        return await self.reach(worker_id, "running", "exited", "stopped", "fenced")

    def states(self, worker_id: str) -> list[str]:
        """The states heard of a worker, in order."""
        return [record.state.value for record in self.changes if record.worker_id == worker_id]


async def gone(pid: int) -> None:
    """Wait until a process has exited, whosever child it is."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, exited = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, exited.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await exited.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _whole_line(path: Path) -> str | None:
    text = path.read_text() if path.exists() else ""
    return text.strip() if text.endswith("\n") else None


async def written(path: Path) -> str:
    """Wait until a file has a whole line; returns it."""
    news, inotify = asyncio.Event(), Inotify()
    inotify.watch(
        path.parent, Change.CREATE | Change.MODIFY | Change.MOVED_TO, lambda *_: news.set()
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (line := _whole_line(path)) is None:
                news.clear()
                await news.wait()
        return line
    finally:
        inotify.close()


def collect(pid: int) -> None:
    """Take the exit of a child that has ended."""
    os.waitpid(pid, 0)


def lives(pid: int) -> bool:
    """Whether a process runs."""
    return processes.start_time(pid) > 0


PYTHON = sys.executable
