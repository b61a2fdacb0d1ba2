"""Every conformance test runs on both buses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rackwright.bus.ports import Bus
from tests.integration.bus.harness import Harness, opened


@pytest.fixture(
    params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)],
)
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    """One kind of bus."""
    async with opened(request.param, tmp_path / "nats") as harness:
        yield harness


@pytest.fixture
async def bus(harness: Harness) -> Bus:
    """One connection."""
    return await harness.bus()
