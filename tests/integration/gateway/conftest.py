"""A gateway on both buses, and on its own port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rackwright.bus.ports import Bus
from rackwright.gateway.config import HEARS
from rackwright.gateway.desk import Desk
from rackwright.gateway.machine import Gateway
from rackwright.gateway.prometheus import expose
from rackwright.host.service import in_process
from rackwright.host.web import Web
from tests.integration.bus.harness import Harness, opened
from tests.integration.host.helpers import until


@pytest.fixture(
    params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)],
)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """One kind of bus; its ledger is empty."""
    async with opened(request.param, tmp_path / "nats") as harness:
        yield harness


@pytest.fixture
async def bus(harness: Harness) -> Bus:
    """One connection."""
    return await harness.bus()


@asynccontextmanager
async def gateway(bus: Bus) -> AsyncIterator[tuple[Desk, str]]:
    """A gateway that answers on the bus and at an address, its history read back."""
    desk = Desk()
    async with in_process(Gateway(), HEARS, bus) as runner:
        expose(runner.metrics.registry, desk)
        web = Web(runner.standing, runner.metrics, desk.routes())
        host, port = await web.start("127.0.0.1", 0)
        serving = asyncio.create_task(desk.serve(bus, runner))
        try:
            await until(lambda: desk.complete or serving.done())
            yield desk, f"http://{host}:{port}"
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            await web.aclose()
