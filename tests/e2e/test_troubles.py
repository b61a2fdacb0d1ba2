"""Containers are stopped, killed, paused, cut off, restarted; jobs come, and one rides on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from rackwright.cli.stack import SERVICES
from rackwright.core.jobs import JobState
from rackwright.wire.ids import RackId
from tests.e2e.troubles import (
    Trouble,
    bear,
    cut_off,
    killed,
    paused,
    published,
    restarted,
    riding,
    stopped,
)
from tests.support.composed import AGENTS, NATS, Composed

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


@pytest.mark.parametrize("trouble", [killed, stopped, paused])
async def test_each_service_and_the_bus_in_turn(steady: Composed, trouble: Trouble) -> None:
    live = steady
    async with riding(live, f"rides-{trouble.__name__}"):
        for service in (*SERVICES, NATS):
            await bear(live, trouble, service)
        await live.site.ready(*SERVICES, *AGENTS)


@pytest.mark.parametrize("services", [SERVICES[::2], SERVICES[1::2]])
async def test_services_cut_off_until_they_notice(
    steady: Composed, services: tuple[str, ...]
) -> None:
    live = steady
    async with riding(live, f"rides-cut-{services[0]}") as names:
        async with AsyncExitStack() as joined:
            for service in services:
                await joined.enter_async_context(cut_off(live, service))
            names += await published(live, f"during-{services[0]}")
            await asyncio.gather(*(live.site.unready(service) for service in services))
        await live.site.ready(*services)


def agents_of(rack: RackId) -> str:
    """The agents' container that hosts a rack: racks are dealt out in turn."""
    return AGENTS[(int(rack.removeprefix("r")) - 1) % len(AGENTS)]


async def test_everything_is_restarted_in_turn_under_load(steady: Composed) -> None:
    """Work rides on in the one container of agents that is not restarted."""
    live = steady
    async with riding(live, "rides-rolling") as names:
        idle = next(one for one in AGENTS if one != agents_of(live.rack_of("rides-rolling")))
        for service in (*SERVICES, NATS):
            await bear(live, restarted, service)
        during = await published(live, "rolling-agents", 3)
        await live.site.do(idle, "restart", timeout=10)
        await live.site.ready(idle)
        names += await published(live, "rolled-agents")
        # What ran on the agents that were restarted may have been started again.
        assert {(await live.ended(name)).state for name in during} == {JobState.FINISHED}
