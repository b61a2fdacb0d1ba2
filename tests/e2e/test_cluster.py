"""Three servers of the bus, each in turn killed, stopped, restarted, paused and cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rackwright.cli.stack import SERVICES
from tests.e2e.troubles import (
    Trouble,
    bear,
    cut_off,
    killed,
    paused,
    restarted,
    riding,
    stopped,
)
from tests.support.composed import AGENTS, NATS, Composed, composed_cell

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
SERVERS = (NATS, "nats-2", "nats-3")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def cluster(built: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Composed]:
    """A cell on three servers, every stream three times."""
    three = {
        "RACKWRIGHT_NATS": ",".join(f"nats://{server}:4222" for server in SERVERS),
        "RACKWRIGHT_REPLICAS": "3",
        "NATS_CONFIG": "cluster.conf",
    }
    folder = tmp_path_factory.mktemp("cluster")
    async with composed_cell("rackwright-cluster", folder, more=three) as live:
        yield live


@pytest.mark.parametrize("trouble", [killed, stopped, restarted, paused, cut_off])
async def test_each_server_in_turn(cluster: Composed, trouble: Trouble) -> None:
    async with riding(cluster, f"rides-{trouble.__name__}"):
        for server in SERVERS:
            await bear(cluster, trouble, server)
            await cluster.site.ready(*SERVERS, *SERVICES, *AGENTS)
    await cluster.tidy_up()
    await cluster.calm()
