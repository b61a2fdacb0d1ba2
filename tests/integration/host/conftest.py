"""The host's tests run on both buses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rackwright.bus.ports import Bus
from rackwright.host.create import create_ledger
from tests.integration.bus.harness import Harness, opened


@pytest.fixture(
    params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)],
)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """One kind of bus, with a cell whose ledger has begun."""
    async with opened(request.param, tmp_path / "nats") as harness:
        assert await create_ledger(await harness.bus())
        yield harness


@pytest.fixture
async def bus(harness: Harness) -> Bus:
    """One connection."""
    return await harness.bus()
