"""Three servers of the bus, each in turn killed, stopped, paused and cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli.stack import SERVICES
from tests.e2e.troubles import cut_off, killed, paused, riding, stopped
from tests.support.composed import AGENTS, composed_cell

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
SERVERS = ("nats", "nats-2", "nats-3")


async def test_each_server_in_turn(tmp_path: Path) -> None:
    cluster = {
        "RACKWRIGHT_NATS": ",".join(f"nats://{server}:4222" for server in SERVERS),
        "RACKWRIGHT_REPLICAS": "3",
        "NATS_CONFIG": "cluster.conf",
    }
    async with composed_cell("rackwright-cluster", tmp_path, **cluster) as live:
        for trouble in (killed, stopped, paused, cut_off):
            for server in SERVERS:
                name = f"{trouble.__name__}-{server}"
                async with riding(live, "rides-cluster", name):
                    await trouble(live, server)
                    await live.site.ready(*SERVERS, *SERVICES, *AGENTS)
        await live.calm()
