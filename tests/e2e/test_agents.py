"""Containers of agents die or are cut off: their work goes on elsewhere, or again when they return.

Such a container takes its workers with it. These tests come first: they wait for leases, which are
short until somebody asks for long ones.
"""

from __future__ import annotations

from functools import partial

import pytest

from rackwright.core.fleet import Fleet
from rackwright.wire.entries.node import NodeFailed, NodeJoined
from rackwright.wire.ids import JobId, RackId
from rackwright.wire.wishes import HoldRack, ReleaseRack
from tests.e2e.troubles import Trouble, cut_off, killed
from tests.support.composed import AGENTS, NATS, Composed

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
MANY, FEW = AGENTS  # racks are dealt out in turn: two of three, and one
RACK_OF_MANY, RACK_OF_FEW = RackId("r01"), RackId("r02")


async def start_in(live: Composed, rack: RackId, name: str, nodes: int = 4) -> None:
    """Start a job there, as no other rack is to be had for a moment."""
    others = [one.spec.rack for one in live.fleet.racks.values() if one.spec.rack != rack]
    for other in others:
        await live.wish(HoldRack(rack=other, for_s=600.0))
    await live.start(live.spec(name, nodes))
    for other in others:
        await live.wish(ReleaseRack(rack=other))
    assert live.rack_of(name) == rack


def started_anew(name: str, fleet: Fleet) -> bool:
    """Has the job been given another membership?"""
    return fleet.jobs[JobId(name)].membership > 1


@pytest.mark.parametrize("trouble", [killed, cut_off])
async def test_work_of_agents_that_are_gone_goes_on_elsewhere(
    live: Composed, trouble: Trouble
) -> None:
    """It starts there when the lease has ended, with which the workers of a living agent end."""
    name, other = f"orphan-{trouble.__name__}", f"beside-{trouble.__name__}"
    await start_in(live, RACK_OF_FEW, name)
    await start_in(live, RACK_OF_MANY, other, 1)
    beside, since = live.identities(other), live.now()
    async with trouble(live, FEW):
        await live.until(partial(started_anew, name), "the work to go elsewhere")
        await live.running(name)
        assert live.rack_of(name) != RACK_OF_FEW
        assert {one.fenced for one in live.entries(NodeFailed, since)} == {True}
    await live.site.ready(FEW)
    assert live.identities(other) == beside


async def test_work_of_a_container_that_comes_back_at_once_starts_again(live: Composed) -> None:
    """Two racks of three fall silent. Nobody is declared dead: the new agents say what is gone."""
    await start_in(live, RACK_OF_MANY, "again")
    since = live.now()
    async with killed(live, MANY):
        pass
    await live.until(partial(started_anew, "again"), "the work to start again")
    await live.running("again")
    assert live.entries(NodeFailed, since) == []
    assert len({one.node for one in live.entries(NodeJoined, since)}) == 12


async def test_a_monitor_that_hears_less_than_half_waits_and_says_so(live: Composed) -> None:
    """Then the silence may be its own. What ran goes on as soon as its agents are back."""
    await start_in(live, RACK_OF_MANY, "kept")
    since = live.now()
    async with killed(live, MANY):
        await live.site.says("health-monitor", "monitor.blind")
    await live.until(partial(started_anew, "kept"), "the work to start again")
    await live.running("kept")
    assert live.entries(NodeFailed, since) == []
    await live.site.says("health-monitor", "monitor.sees")
    await live.site.ready(NATS, MANY)
