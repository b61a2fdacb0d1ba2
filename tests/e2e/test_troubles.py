"""Containers are stopped, killed, paused and cut off; jobs come, and one rides on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from rackwright.cli.stack import SERVICES
from tests.e2e.troubles import (
    Trouble,
    killed,
    off_network,
    paused,
    published,
    restarted,
    riding,
    stopped,
)
from tests.support.composed import AGENTS, NATS, Composed

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


@pytest.mark.parametrize("trouble", [killed, stopped, paused])
async def test_each_service_in_turn(live: Composed, trouble: Trouble) -> None:
    for service in SERVICES:
        name = trouble.__name__
        async with riding(live, f"rides-{name}", f"{name}-{service}"):
            await trouble(live, service)
            await live.site.ready(service)


@pytest.mark.parametrize("trouble", [killed, stopped, restarted, paused])
async def test_the_bus(live: Composed, trouble: Trouble) -> None:
    name = trouble.__name__
    async with riding(live, f"rides-bus-{name}", f"{name}-bus"):
        await trouble(live, NATS)
        await live.site.ready(NATS, *SERVICES, *AGENTS)


@pytest.mark.parametrize("services", [SERVICES[::2], SERVICES[1::2]])
async def test_services_cut_off_until_they_notice(
    live: Composed, services: tuple[str, ...]
) -> None:
    async with riding(live, f"rides-cut-{services[0]}", f"cut-{services[0]}") as names:
        async with AsyncExitStack() as joined:
            for service in services:
                await joined.enter_async_context(off_network(live, service))
            names += await published(live, f"during-{services[0]}")
            await asyncio.gather(*(live.site.unready(service) for service in services))
        await live.site.ready(*services)
