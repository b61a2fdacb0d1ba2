"""Two copies of each deciding service at once, then one of them alone."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from rackwright.core.jobs import JobState
from rackwright.wire.entries.slice import SliceSwapped
from tests.integration.pipeline.test_services import all_finish_once, burst
from tests.support.live import Live, Small, live_cell
from tests.support.quick import POLICY

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]
DECIDING = ("placer", "health-monitor", "spare-manager", "defragmenter", "dispatcher")
JOBS = 24


@pytest_asyncio.fixture(loop_scope="package")
async def doubled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """2 racks x 6 nodes, two copies of whoever decides; leases that a busy machine does not end."""
    patient = replace(POLICY, fence_after_s=60.0, symptom_window_s=0.001)
    small = Small(racks=2, copies=dict.fromkeys(DECIDING, 2), policy=patient)
    async with live_cell(tmp_path_factory.mktemp("doubled"), small) as live:
        yield live
        await live.tidy_up()
        assert live.twice() == []
        assert await live.audit() == []


def decided_by(live: Live, since: int) -> set[str]:
    """The copies that said something since then, but for the monitors' ticks."""
    return {one.source for one in live.watched.commits[since:] if one.type != "ledger.ticked"}


async def swapped(live: Live, rank: int) -> None:
    """A node of the job fails and is swapped; the others keep their processes."""
    since = live.now()
    before = live.identities("doubled")
    del before[live.job("doubled").worker(rank)]
    await live.xid(live.nodes_of("doubled")[rank])
    await live.entry(SliceSwapped, since)
    after = await live.running("doubled")
    now = live.identities("doubled")
    assert {w: p for w, p in now.items() if w != after.worker(rank)} == before


async def test_two_copies_decide_once_and_one_is_enough(doubled: Live) -> None:
    live = doubled
    await live.start(live.spec("doubled", 4))
    await all_finish_once(live, await burst(live, "both", JOBS))
    await swapped(live, 0)
    compared = [one for one in live.watched.commits if not one.type.startswith("node.")]
    assert [(one.seq, one.type, one.why) for one in compared if one.void] == []
    voids = sum(one.void for one in live.watched.commits)
    assert voids <= len(live.watched.commits) // 20

    for service in DECIDING:
        kept = live.stack.kept[f"{service}-0"]
        kept.hold()
        kept.kill(signal.SIGKILL)
    since = live.now()
    await all_finish_once(live, await burst(live, "alone", JOBS))
    await swapped(live, 1)
    live.tell("doubled", "exit 0")
    assert (await live.ended("doubled")).state is JobState.FINISHED
    assert decided_by(live, since) <= {f"{service}/1" for service in DECIDING}
