"""A small cell that lives: real server, services, agents and worker processes, driven and checked.

Nothing waits for a time: it waits for what the ledger, the nodes or the kernel say. The workers
check the world by themselves: each locks its rank and its GPUs, and whoever finds one taken writes
that down, so no test has to be looking at the right moment.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from rackwright.agent import lease
from rackwright.agent.processes import start_time
from rackwright.bus.jetstream import JetStreamBus
from rackwright.cli.asking import Answer, Cell, reach
from rackwright.cli.credentials import ADMIN
from rackwright.cli.demo.board import Board, board
from rackwright.cli.stack import Stack, StackOptions
from rackwright.cli.watcher import Watched
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, Tombstone
from rackwright.core.racks import Node
from rackwright.host.auditing import audit_ledger
from rackwright.host.files.topologyfile import read_topology
from rackwright.wire.ids import JobId, NodeId, RackId, WorkerId, parse_worker
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import Cancel, Repaired, SetPolicy, Submit, Uncordon, Wish
from tests.support.quick import LEASE_S, POLICY
from tests.support.world import WITHIN_S, WORKER, appears, gone, kill_below

E = TypeVar("E", bound=Entry)
Identity = tuple[int, int]
"""A process for good: its pid and when it started."""

FALLEN = "79, pid=4711, name=python, GPU has fallen off the bus."
OWNERS = ("ann", "bob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A cell of `racks` x `nodes`. `solo` nodes have an agent process of their own."""

    racks: int = 3
    nodes: int = 6
    policy: Policy = POLICY
    copies: dict[str, int] = field(default_factory=dict)
    solo: frozenset[str] = frozenset()
    traced: bool = False
    hooks: bool = False


@dataclass(slots=True, kw_only=True)
class Live:
    """The cell, and the few things tests do with it. `home` is where workers leave their notes."""

    stack: Stack
    bus: JetStreamBus
    cell: Cell
    watched: Watched
    board: Board
    home: Path
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def fleet(self) -> Fleet:
        """The fleet at the newest commit seen."""
        return self.watched.fleet

    # Jobs

    def spec(self, name: str, nodes: int | None = 1, **more: Any) -> JobSpec:
        """A job of workers as above, which run until they are told to end."""
        env = {"LIVE_HOME": str(self.home), **more.pop("env", {})}
        settings: dict[str, Any] = {
            "name": JobId(name),
            "nodes": nodes,
            "run": WORKER,
            "env": env,
            "grace_s": 0.2,
            "notice_signal": "SIGUSR1",
            "checkpoint": Checkpoint(interval_s=60.0, restart_s=1.0, on_notice_s=1.0),
            **more,
        }
        return JobSpec(**settings)

    async def submit(self, spec: JobSpec) -> Answer:
        """Publish the wish and wait for its answer, whatever it is."""
        return await self.wish(Submit(job=spec.name, spec=spec))

    async def start(self, spec: JobSpec) -> Job:
        """Submit it and wait until all of it runs."""
        answer = await self.submit(spec)
        assert answer.granted, answer.entry
        return await self.running(spec.name)

    async def wish(self, wish: Wish) -> Answer:
        """Publish a wish and wait for its answer, and until the fleet here has it too."""
        since = self.now()
        answer = await self.cell.wish(wish, patience_s=WITHIN_S)
        cause = answer.entry.cause
        await self.entry(type(answer.entry), since, lambda one: one.cause == cause)
        return answer

    def job(self, name: str) -> Job:
        """A job that lives."""
        return self.fleet.jobs[JobId(name)]

    async def running(self, name: str) -> Job:
        """Wait until every rank of the newest membership is up, and its process known."""

        def up(fleet: Fleet) -> bool:
            job = fleet.jobs.get(JobId(name))
            return (
                job is not None
                and job.state is JobState.RUNNING
                and job.started == job.membership
                and not job.wounds
            )

        await self.until(up, f"{name} to run")
        await self.board.until(lambda _: self._all_told(name), WITHIN_S)
        job = self.job(name)
        await self.noted(job)
        return job

    async def until(self, holds: Callable[[Fleet], bool], what: str) -> Fleet:
        """Wait for a fleet that is as wished; says what it is instead if it does not come."""
        try:
            return await self.watched.until(holds, WITHIN_S)
        except TimeoutError:
            last = [f"{one.seq} {one.type} {one.why}" for one in self.watched.commits[-20:]]
            jobs = [
                f"{job.id} {job.state} {job.blocked} {job.wounds} {job.membership} {job.started}"
                for job in self.fleet.jobs.values()
            ]
            pytest.fail("\n".join([f"waited in vain for {what}", *jobs, *last]))

    def _all_told(self, name: str) -> bool:
        job = self.fleet.jobs.get(JobId(name))
        pids = self.board.pids(name)
        return job is not None and all(job.worker(rank) in pids for rank in job.rank_numbers())

    async def noted(self, job: Job) -> None:
        """Wait until each worker of the job has written down that it is here."""
        if job.spec.run != WORKER:
            return
        for rank in job.rank_numbers():
            incarnation = parse_worker(job.worker(rank))[2]
            await appears(partial(self._has_started, job.id, rank, incarnation))

    def _has_started(self, name: str, rank: int, incarnation: int) -> bool:
        return incarnation in dict(self.starts(name, rank))

    async def ended(self, name: str) -> Tombstone:
        """Wait for the job's end."""
        fleet = await self.until(lambda now: JobId(name) in now.tombstones, f"{name} to end")
        return fleet.tombstones[JobId(name)]

    def nodes_of(self, name: str, index: int = 0) -> list[NodeId]:
        """The nodes of a slice in rank order."""
        part = self.job(name).slices[index]
        rack = self.fleet.racks[part.rack]
        return [rack.nodes[place].name for place in part.nodes]

    def rack_of(self, name: str, index: int = 0) -> RackId:
        """The rack of a slice."""
        return self.fleet.rack_name(self.job(name).slices[index].rack)

    # What workers say and do

    def identities(self, name: str) -> dict[WorkerId, Identity]:
        """Every running process of a job, as its nodes tell them and the kernel confirms."""
        told = {worker: (pid, start_time(pid)) for worker, pid in self.board.pids(name).items()}
        return {worker: process for worker, process in told.items() if process[1]}

    def tell(self, name: str, word: str, *ranks: int) -> None:
        """Say something to the workers of a job; to all of them when no rank is named."""
        job = self.job(name)
        for rank in ranks or tuple(job.rank_numbers()):
            incarnation = parse_worker(job.worker(rank))[2]
            words = self.home / f"{name}.{rank}.{incarnation}.words"
            fd = os.open(words, os.O_WRONLY | os.O_NONBLOCK)
            os.write(fd, word.encode() + b"\n")
            os.close(fd)

    def starts(self, name: str, rank: int) -> list[tuple[int, int]]:
        """(incarnation, count it went on from) of each process that rank ever had."""
        path = self.home / f"{name}.{rank}.starts"
        if not path.exists():
            return []
        lines = path.read_text(encoding="ascii").splitlines()
        return [(int(line.split()[0]), int(line.split()[1])) for line in lines if " " in line]

    def env(self, name: str, rank: int, incarnation: int) -> dict[str, str]:
        """The environment that a worker found."""
        raw = (self.home / f"{name}.{rank}.{incarnation}.env").read_bytes()
        pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
        return {key.decode(): value.decode() for key, _, value in pairs}

    def twice(self) -> list[str]:
        """Ranks or GPUs that two workers had at one time."""
        path = self.home / "twice"
        return path.read_text(encoding="ascii").splitlines() if path.exists() else []

    # The ledger

    def now(self) -> int:
        """How many commits were seen so far."""
        return len(self.watched.commits)

    def entries(self, kind: type[E], since: int = 0) -> list[E]:
        """Entries of one type that took effect, after commit number `since`."""
        return [
            entry
            for commit in self.watched.commits[since:]
            if not commit.void
            for entry in commit.entries
            if isinstance(entry, kind)
        ]

    async def entry(
        self, kind: type[E], since: int, fits: Callable[[E], bool] = lambda _: True
    ) -> E:
        """Wait for an entry of this type for which `fits` is true."""

        def found() -> list[E]:
            return [entry for entry in self.entries(kind, since) if fits(entry)]

        await self.until(lambda _: bool(found()), f"an entry {kind.TYPE}")
        return found()[0]

    async def audit(self) -> list[str]:
        """Fold the whole ledger anew; every property that does not hold."""
        audit, _ = await audit_ledger(self.bus)
        return [f"at {one.seq}: {one.what}" for one in audit.violations]

    # Nodes

    def node(self, name: str) -> Node:
        """A node as the fleet has it."""
        return self.fleet.node(NodeId(name))

    async def xid(self, node: str, text: str = FALLEN) -> None:
        """Write a driver's line into a node's kernel log.

        Each time of another GPU: an agent tells the same fault of the same part once a minute.
        """
        gpu = self.faults[node] % 4
        self.faults[node] += 1
        line = f"NVRM: Xid (PCI:{gpu:04d}:01:00): {text}\n"
        log = self.stack.options.state_dir / "nodes" / node / "kernel.log"
        await asyncio.to_thread(_append, log, line)

    @contextmanager
    def hook(self, kind: str, script: str) -> Iterator[None]:
        """The site has this hook while the block runs."""
        path = self.stack.options.state_dir / "hooks" / kind
        new = path.with_suffix(".new")
        new.write_text(f"#!/bin/bash\n{script}\n", encoding="ascii")
        new.chmod(0o755)
        new.rename(path)
        try:
            yield
        finally:
            path.unlink()

    def has_lease(self, node: str, seconds: float = 0.0) -> bool:
        """Does the lease of a node run so much longer, by the file that its supervisors read?"""
        until_ns = lease.read(str(self.stack.options.state_dir / "nodes" / node / "lease"))
        return until_ns > lease.now_ns() + int(seconds * 1e9)

    @asynccontextmanager
    async def long_leases(self, seconds: float) -> AsyncIterator[None]:
        """Work outlives a monitor that takes its time to start, while the block runs and until the
        last of these leases is over."""
        policy = self.fleet.policy
        longer = replace(policy, fence_after_s=seconds)
        assert (await self.wish(SetPolicy(policy=longer))).granted
        await appears(lambda: all(self.has_lease(node, LEASE_S) for node in self.board.nodes))
        yield
        await self.wish(SetPolicy(policy=policy))

    def service_pids(self) -> dict[str, int]:
        """The process of each service and agent."""
        return {name: kept.pid for name, kept in self.stack.kept.items()}

    # Between two tests

    async def tidy_up(self) -> None:
        """Cancel every job, repair every node, and wait until nothing of it is left."""
        for name in sorted(self.fleet.jobs):
            await self.wish(Cancel(job=name))
        await self.until(lambda fleet: not fleet.jobs and not fleet.plans, "jobs to end")
        await self.until(_heard_of_all, "all nodes to be heard of")
        for node in list(_nodes(self.fleet)):
            if node.cordoned:
                await self.wish(Uncordon(node=node.name))
            if node.failed or node.fitness is not Fitness.FULL or node.repair is not None:
                await self.wish(Repaired(node=node.name))
        await self.until(_whole, "a whole cell")
        await self.until(lambda fleet: not fleet.leaving, "workers to leave")
        await gone(self.stack.options.state_dir / "nodes")


def _append(path: Path, line: str) -> None:
    with open(path, "ab") as file:
        file.write(line.encode())


def _nodes(fleet: Fleet) -> Iterator[Node]:
    for rack in fleet.racks.values():
        yield from rack.nodes


def _heard_of_all(fleet: Fleet) -> bool:
    return all(node.session is not None and not node.suspected for node in _nodes(fleet))


def _whole(fleet: Fleet) -> bool:
    free = all(rack.usable.bit_count() == len(rack.nodes) for rack in fleet.racks.values())
    return free and all(node.fitness is Fitness.FULL for node in _nodes(fleet))


@asynccontextmanager
async def live_cell(root: Path, small: Small) -> AsyncIterator[Live]:
    """Start a cell below `root`, stop it after the block; nothing of it may be left running."""
    traces = root / "traces" if small.traced else None
    if traces is not None:
        traces.mkdir()
    text = f"{small.racks}x{small.nodes}"
    options = StackOptions(
        state_dir=root,
        racks=read_topology(text.encode(), name=text),
        policy=small.policy,
        owners=OWNERS,
        copies=small.copies,
        solo=small.solo,
        agents=1,
        trace_dir=traces,
        hooks=root / "hooks" if small.hooks else None,
    )
    home = root / "home"
    home.mkdir()
    (root / "hooks").mkdir()
    try:
        async with Stack(options) as stack, AsyncExitStack() as more:
            watched = await more.enter_async_context(stack.watching())
            await stack.ready(watched)
            bus = await stack.connect(ADMIN)
            more.push_async_callback(bus.close)
            yield Live(
                stack=stack,
                bus=bus,
                cell=await more.enter_async_context(reach(stack.context)),
                watched=watched,
                board=await more.enter_async_context(board(bus)),
                home=home,
            )
        await gone(root)
    finally:
        left = kill_below(root)
    assert left == {}
