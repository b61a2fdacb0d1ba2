"""The bus away for longer than a lease: work goes on. A node alone is fenced and replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from rackwright.agent import lease
from rackwright.core.jobs import JobState
from rackwright.core.policy.leases import declare_after
from rackwright.core.policy.witnesses import second_tier
from rackwright.wire.entries.node import NodeFailed, NodeJoined
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import NodeId
from tests.support.live import Live, Small, live_cell
from tests.support.quick import POLICY
from tests.support.world import appears, process_ends

LEASE_S = 8.0
TIERS = replace(
    POLICY,
    fence_after_s=LEASE_S,
    alone_s=600.0,
    rack_event_nodes=1000,
    symptom_window_s=0.001,
)
LONE = NodeId("r01-n02")

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """3 racks x 5 nodes; one node has an agent of its own, so neighbours are asked by UDP for it
    between processes, and for the others within one."""
    assert second_tier(TIERS)
    small = Small(racks=3, nodes=5, solo=frozenset({LONE}), policy=TIERS)
    async with live_cell(tmp_path_factory.mktemp("cell"), small) as made:
        yield made
        assert made.twice() == []
        assert await made.audit() == []


def until_ns(live: Live, node: object) -> int:
    return lease.read(str(live.stack.options.state_dir / "nodes" / str(node) / "lease"))


async def test_a_bus_away_for_longer_than_the_lease_costs_no_process(live: Live) -> None:
    await live.start(live.spec("through-1", 4))
    await live.start(live.spec("through-2", 2))
    names = ("through-1", "through-2")
    before = {name: live.identities(name) for name in names}
    nodes = list(live.board.nodes)
    since = live.now()
    stopped = lease.now_ns()
    os.kill(live.stack.server.pid, signal.SIGSTOP)
    try:
        # A lease that runs so far can only be one that witnesses gave after the last one had ended.
        beyond = stopped + int((2 * LEASE_S + 1) * 1e9)
        await appears(lambda: all(until_ns(live, node) > beyond for node in nodes))
    finally:
        os.kill(live.stack.server.pid, signal.SIGCONT)
    await appears(lambda: live.cell.bus.link.connected)
    await live.start(live.spec("after", 2))
    assert {name: live.identities(name) for name in names} == before
    changes = (NodeFailed, NodeJoined, SliceSwapped, SliceMoved, SliceRestarted)
    assert [entry for kind in changes for entry in live.entries(kind, since)] == []
    for name in (*names, "after"):
        live.tell(name, "exit 0")
        assert (await live.ended(name)).state is JobState.FINISHED


async def test_a_node_alone_is_fenced_at_the_lease_and_replaced_after_the_short_wait(
    live: Live,
) -> None:
    """Its agent stands still: it hears neither the bus nor a neighbour, and answers nobody."""
    await live.start(live.spec("lone", 12))
    rank = live.nodes_of("lone").index(LONE)
    before = live.identities("lone")
    pid = before.pop(live.job("lone").worker(rank))[0]
    since = live.now()
    agent = live.stack.agent_of(LONE)
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        failed = await live.entry(NodeFailed, since)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await process_ends(pid)
        assert (failed.node, failed.fenced) == (LONE, True)
        waited = failed.reason.numbers["waited_s"]
        assert isinstance(waited, float)
        assert declare_after(TIERS) <= waited < TIERS.alone_s
        after = await live.running("lone")
    finally:
        os.kill(agent.pid, signal.SIGCONT)
    now = live.identities("lone")
    assert {w: p for w, p in now.items() if w != after.worker(rank)} == before
    assert after.retries == 0
    await live.entry(NodeJoined, since, lambda one: one.node == LONE)
