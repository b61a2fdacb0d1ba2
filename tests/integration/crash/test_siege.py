"""Each process killed or paused in turn, under load; the many come with `make crash`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.crash.siege import CELL, Siege
from tests.support.live import live_cell

pytestmark = pytest.mark.integration
SEED = 7
STRIKES = (
    ("nats-server", "kill"),
    ("placer-0", "kill"),
    ("node-agent-0", "kill"),
    ("health-monitor-0", "pause"),
    ("supervisor", "kill"),
    ("dispatcher-0", "kill"),
    ("spare-manager-0", "pause"),
    ("nats-server", "pause"),
    ("worker", "kill"),
    ("nats-server", "kill"),
)


async def test_each_is_struck_and_the_cell_heals(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    async with live_cell(tmp_path, CELL) as live:
        siege = Siege(live=live, seed=SEED)
        for target, how in STRIKES:
            await siege.strike(target, how)
            assert siege.violations == [], siege.story
        await siege.end()
        assert siege.violations == [], siege.story
