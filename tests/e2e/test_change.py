"""A service is scaled by a number while jobs run."""

from __future__ import annotations

import pytest

from tests.e2e.troubles import finished_once, published, riding
from tests.support.composed import Composed

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


async def test_a_service_is_scaled_to_three_and_back(steady: Composed) -> None:
    site = steady.site
    async with riding(steady, "rides-scaled") as names:
        await site.up("--scale", "placer=3", "--scale", "health-monitor=2")
        await site.ready("placer", "health-monitor")
        assert [len(site.containers(one)) for one in ("placer", "health-monitor")] == [3, 2]
        names += await published(steady, "with-three")
        for container in site.containers("placer")[:2]:
            container.kill()
            names += await published(steady, f"without-{container.short_id}")
        await finished_once(steady, names)
        await site.up("--scale", "placer=1", "--scale", "health-monitor=1")
        await site.ready("placer", "health-monitor")
        assert len(site.containers("placer")) == 1
    assert "ordinal_taken" not in site.logs("placer", 500)
