"""One cell in containers for most modules; the tests change it in the order in which they stand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.composed import Composed, composed_cell
from tests.support.engine import image
from tests.support.quick import POLICY


@pytest.fixture(scope="session")
def built() -> str:
    """The image under test, which takes minutes where nothing of it is there yet."""
    return image()


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def shared(built: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Composed]:
    """3 racks x 6 nodes of two agents, every service, one nats-server; leases are short."""
    folder = tmp_path_factory.mktemp("cell")
    async with composed_cell("rackwright-tests", folder, policy=POLICY) as live:
        yield live


@pytest_asyncio.fixture(loop_scope="package")
async def live(shared: Composed) -> AsyncIterator[Composed]:
    """The cell, whole and empty; afterwards it is healthy, and its ledger is audited."""
    yield shared
    await shared.tidy_up()
    await shared.calm()


@pytest_asyncio.fixture(loop_scope="package")
async def steady(live: Composed) -> Composed:
    """The same, from now on with leases that outlast restarts, on a busy machine too."""
    await live.steady()
    return live
