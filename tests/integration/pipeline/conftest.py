"""One live cell for most modules; every test leaves it as it found it, or fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from rackwright.wire.ids import QueueName
from tests.support.live import Live, Small, live_cell
from tests.support.quick import POLICY

SOLO = frozenset({"r01-n02", "r02-n02"})
# Tests break nodes of one small rack within a second, on purpose: that is no fault of the rack. A
# node that the test before broke and repaired must not make a suspect of the rack either.
CALM = replace(
    POLICY,
    rack_event_nodes=1000,
    symptom_window_s=0.001,
    cpu_only_queues=(QueueName("cpu"),),
)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """3 racks x 6 nodes, two of them with an agent of their own, traced, with hooks."""
    small = Small(solo=SOLO, traced=True, hooks=True, policy=CALM)
    async with live_cell(tmp_path_factory.mktemp("cell"), small) as live:
        yield live


@pytest_asyncio.fixture(loop_scope="package")
async def live(shared: Live) -> AsyncIterator[Live]:
    """The cell, whole and empty; after the test the ledger and the world are audited."""
    yield shared
    for kept in shared.stack.kept.values():
        kept.release()
    await shared.tidy_up()
    assert shared.twice() == []
    assert await shared.audit() == []
