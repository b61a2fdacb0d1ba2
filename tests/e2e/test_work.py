"""Jobs are published from outside, placed, healed, moved, and a rack is cleared for one."""

from __future__ import annotations

from functools import partial

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned, SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, NodeId, RackId
from rackwright.wire.wishes import Cancel
from tests.support.composed import Composed

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


async def test_jobs_from_outside_run_and_end(live: Composed) -> None:
    job = await live.start(live.spec("first", 4))
    assert len(live.identities("first")) == 4
    assert job.membership == 1
    await live.submit(live.spec("short", None, gpus=1, env={"LIVE_EXIT": "0"}))
    assert (await live.ended("short")).state is JobState.FINISHED
    assert len(live.starts("short", 0)) == 1


async def test_a_failed_node_is_swapped_and_nobody_else_is_touched(live: Composed) -> None:
    await live.start(live.spec("swapped", 4))
    await live.start(live.spec("bystander", 4))
    before, beside = live.identities("swapped"), live.identities("bystander")
    node, rack, since = live.nodes_of("swapped")[1], live.rack_of("swapped"), live.now()
    await live.xid(node)
    await live.entry(SliceSwapped, since)
    job = await live.running("swapped")
    now = live.identities("swapped")
    kept = {worker for worker in before if worker in now}
    assert kept == set(before) - {f"swapped/1/{1}"}
    assert {worker: now[worker] for worker in kept} == {w: before[w] for w in kept}
    assert job.membership == 2
    assert live.rack_of("swapped") == rack
    assert node not in live.nodes_of("swapped")
    assert live.identities("bystander") == beside


async def test_a_slice_without_a_node_left_in_its_rack_moves(live: Composed) -> None:
    await live.start(live.spec("moving", 5))
    rack, since = live.rack_of("moving"), live.now()
    first = live.nodes_of("moving")[:2]
    for node in first:
        await live.xid(node)
        await live.until(partial(_without, live, node), f"{node} to be replaced")
        await live.running("moving")
    assert len(live.entries(SliceSwapped, since)) == 1
    assert len(live.entries(SliceMoved, since)) == 1
    await live.running("moving")
    assert live.rack_of("moving") != rack


def _without(live: Composed, node: NodeId, fleet: Fleet) -> bool:
    job = fleet.jobs[JobId("moving")]
    return not job.wounds and node not in live.nodes_of("moving")


async def scatter(live: Composed) -> RackId:
    """Two nodes free in two racks each, three in the third: no four in any.

    The third holds a job that may not move and two that may; so do the others.
    """
    pinned = {"restartable": False}
    for name in ("pin-1", "pin-2"):
        await live.start(live.spec(name, 4, **pinned))
    fillers = [f"fill-{turn}" for turn in range(4)]
    for name in fillers:
        await live.start(live.spec(name, 1))
    await live.start(live.spec("note", 1, **pinned))
    for name in ("move-1", "move-2"):
        await live.start(live.spec(name, 1))
    for name in fillers:
        await live.wish(Cancel(job=JobId(name)))
    await live.board.until(lambda board: not any(board.pids(name) for name in fillers))
    return live.rack_of("note")


async def test_a_rack_is_cleared_for_a_job_that_only_topology_blocks(live: Composed) -> None:
    rack = await scatter(live)
    note, since = live.identities("note"), live.now()
    await live.submit(live.spec("big", 4, priority=60))
    blocked = await live.entry(JobBlocked, since, lambda one: one.job == "big")
    assert blocked.reason.code == "topology.movable"
    plan = await live.entry(DefragPlanned, since)
    await live.running("big")
    for victim in plan.victims:
        await live.running(victim.job)
        assert live.rack_of(victim.job) != rack
        assert live.starts(victim.job, 0)[1][1] > 0
    await live.entry(DefragFinished, since)
    assert live.rack_of("big") == rack
    assert live.identities("note") == note
