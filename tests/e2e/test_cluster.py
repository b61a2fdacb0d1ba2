"""Three servers of the bus, each in turn killed, stopped, restarted, paused and cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli.stack import SERVICES
from tests.e2e.troubles import bear, cut_off, killed, paused, restarted, riding, stopped
from tests.support.composed import AGENTS, NATS, composed_cell

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
SERVERS = (NATS, "nats-2", "nats-3")


async def test_each_server_in_turn(built: str, tmp_path: Path) -> None:
    cluster = {
        "RACKWRIGHT_NATS": ",".join(f"nats://{server}:4222" for server in SERVERS),
        "RACKWRIGHT_REPLICAS": "3",
        "NATS_CONFIG": "cluster.conf",
    }
    async with composed_cell("rackwright-cluster", tmp_path, more=cluster) as live:
        async with riding(live, "rides-cluster"):
            for trouble in (killed, stopped, restarted, paused, cut_off):
                for server in SERVERS:
                    # These tests reach the cell by the first server's port.
                    await bear(live, trouble, server, reached=server != NATS)
                    await live.site.ready(*SERVERS, *SERVICES, *AGENTS)
        await live.calm()
