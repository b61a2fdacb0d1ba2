"""Agents that die, and a bus that stops or dies: work is fenced, or keeps its processes."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from rackwright.bus.ports import Ready
from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobFailed, JobRequeued
from rackwright.wire.entries.node import NodeFailed, NodeJoined, NodeSuspected
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, NodeId
from tests.integration.pipeline.conftest import SOLO
from tests.support.live import Live
from tests.support.world import WITHIN_S, appears, gone, kill_below, process_ends

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


def solo_rank(live: Live, name: str) -> tuple[int, NodeId]:
    """A rank of the job on a node with an agent of its own."""
    return next((rank, node) for rank, node in enumerate(live.nodes_of(name)) if str(node) in SOLO)


async def test_an_agent_killed_for_good_is_fenced_and_then_replaced(live: Live) -> None:
    await live.start(live.spec("fenced", 4))
    rank, node = solo_rank(live, "fenced")
    before = live.identities("fenced")
    lost = live.job("fenced").worker(rank)
    pid = before.pop(lost)[0]
    kept = live.stack.agent_of(node)
    since = live.now()
    kept.hold()
    kept.kill(signal.SIGKILL)
    os.kill(pid, 0)  # it runs on, for as long as its lease does
    failed = await live.entry(NodeFailed, since)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (failed.node, failed.fenced) == (node, True)
    swap = await live.entry(SliceSwapped, since)
    assert [one.rank for one in swap.swaps] == [rank]
    after = await live.running("fenced")
    now = live.identities("fenced")
    assert {w: p for w, p in now.items() if w != after.worker(rank)} == before
    assert after.retries == 0
    kept.release()
    await live.entry(NodeJoined, since, lambda one: one.node == node)


async def test_an_agent_that_starts_again_finds_its_workers(live: Live) -> None:
    await live.start(live.spec("adopted", 4))
    _, node = solo_rank(live, "adopted")
    before = live.identities("adopted")
    since = live.now()
    live.stack.agent_of(node).kill(signal.SIGKILL)
    joined = await live.entry(NodeJoined, since, lambda one: one.node == node)
    assert len(joined.running) == 1
    await live.board.until(lambda board: board.nodes[node].session == joined.session)
    job = await live.running("adopted")
    assert live.identities("adopted") == before
    assert job.membership == 1
    assert live.entries(NodeFailed, since) == []
    live.tell("adopted", "exit 0")
    assert (await live.ended("adopted")).state is JobState.FINISHED


async def test_a_bus_that_stops_for_longer_than_the_lease(live: Live) -> None:
    """All workers are fenced; nodes join anew, and every job goes on by itself."""
    names = {"lost-1": 4, "lost-2": 4, "lost-3": 2}
    for name, count in names.items():
        await live.start(live.spec(name, count))
    pids = [pid for name in names for pid, _ in live.identities(name).values()]
    nodes = list(live.board.nodes)
    since = live.now()
    os.kill(live.stack.server.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(WITHIN_S):
            for pid in pids:
                await process_ends(pid)
        await appears(lambda: not any(live.has_lease(node) for node in nodes))
    finally:
        os.kill(live.stack.server.pid, signal.SIGCONT)

    await live.entry(NodeJoined, since)
    await live.until(lambda fleet: all(fleet.jobs[JobId(n)].membership > 1 for n in names), "it")
    for name, count in names.items():
        job = await live.running(name)
        assert (job.ranks, job.retries) == (count, 0)
        assert all(len(live.starts(name, rank)) == 2 for rank in range(count)), name
    assert live.entries(JobFailed, since) == []
    assert not set(pids) & {pid for name in names for pid, _ in live.identities(name).values()}


async def test_a_server_that_is_killed_and_back_within_the_lease(live: Live) -> None:
    """What it kept in memory is gone and is written anew; nobody lost a process."""
    await live.start(live.spec("through", 4))
    before = live.identities("through")
    since = live.now()
    await live.stack.server.kill()
    await live.stack.server.start()
    await appears(lambda: live.cell.bus.link.connected)
    await live.start(live.spec("after", 2))
    assert live.identities("through") == before
    changes = (JobRequeued, SliceSwapped, SliceMoved, SliceRestarted, NodeFailed)
    assert [entry for kind in changes for entry in live.entries(kind, since)] == []

    assigned, told = set(), set()
    async with asyncio.timeout(WITHIN_S):
        async with live.bus.assign.watch() as racks:
            async for change in racks:
                if not isinstance(change, Ready):
                    assigned.add(change.key)
                if len(assigned) == 3:
                    break
        async with live.bus.status.follow() as nodes:
            async for status in nodes:
                if not isinstance(status, Ready):
                    told.add(status.subject)
                if len(told) == 18:
                    break
    live.tell("through", "exit 0")
    assert (await live.ended("through")).state is JobState.FINISHED
    assert live.entries(NodeSuspected, since) == []


async def test_who_returns_before_a_monitor_does_has_lost_no_job(live: Live) -> None:
    """The end of a host is told before anybody has admitted its return: no verdict comes of it.

    The last one here: its leases last into what comes after it.
    """
    await live.start(live.spec("returns", 4))
    _, node = solo_rank(live, "returns")
    await live.start(live.spec("fails", 1))
    session = live.board.nodes[node].session
    monitor, host = live.stack.kept["health-monitor-0"], live.stack.agent_of(node)
    async with live.long_leases(40.0):
        since = live.now()
        for one in (monitor, host):
            one.hold()
            await process_ends(one.kill(signal.SIGKILL))
        below = live.stack.options.state_dir / "nodes" / node
        assert kill_below(below) != {}
        await gone(below)
        host.release()
        await live.board.until(lambda board: board.nodes[node].session != session)
        live.tell("fails", "exit 3")  # is told later, and waits as long for its verdict
        assert (await live.ended("fails")).state is JobState.FAILED
        monitor.release()
        await live.entry(NodeJoined, since, lambda one: one.node == node)
        assert (await live.running("returns")).retries == 0
        assert [one.job for one in live.entries(JobFailed, since)] == ["fails"]
        assert live.entries(JobRequeued, since) == []
