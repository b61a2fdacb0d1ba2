"""A rack is cleared for a job that only topology blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobBlocked, JobNotified
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned, DefragWithdrawn
from rackwright.wire.ids import JobId, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.wishes import Cancel
from tests.support.live import Live
from tests.support.world import appears

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


async def scatter(live: Live, tag: str, **more: object) -> RackId:
    """Two nodes free in two racks each, three in the third: no four in any.

    The third holds an interactive job and two that may move; the others work that may not.
    """
    pinned = {"job_class": JobClass.INTERACTIVE, "restartable": False}
    for name in (f"{tag}-pin-1", f"{tag}-pin-2"):
        await live.start(live.spec(name, 4, **pinned))
    fillers = [f"{tag}-fill-{turn}" for turn in range(4)]
    for name in fillers:
        await live.start(live.spec(name, 1))
    await live.start(live.spec(f"{tag}-note", 1, **pinned))
    for name in movers(tag):
        await live.start(live.spec(name, 1, **more))
    for name in fillers:
        await live.wish(Cancel(job=JobId(name)))
    await live.board.until(lambda board: not any(board.pids(name) for name in fillers))
    rack = live.rack_of(f"{tag}-note")
    assert {live.rack_of(name) for name in movers(tag)} == {rack}
    return rack


def movers(tag: str) -> tuple[str, str]:
    """The jobs that may move."""
    return f"{tag}-move-1", f"{tag}-move-2"


async def test_victims_save_on_notice_and_go_on_elsewhere(live: Live) -> None:
    rack = await scatter(live, "cleared")
    note = live.identities("cleared-note")
    old = {name: live.identities(name) for name in movers("cleared")}
    since = live.now()
    await live.submit(live.spec("cleared-big", 4, priority=60))
    blocked = await live.entry(JobBlocked, since, lambda one: one.job == "cleared-big")
    assert blocked.reason.code == "topology.movable"
    plan = await live.entry(DefragPlanned, since)
    [victim] = [one.job for one in plan.victims]
    assert plan.job == "cleared-big"
    told = await live.entry(JobNotified, since)
    assert (told.job, told.plan) == (victim, plan.plan)
    await live.running("cleared-big")
    await live.running(victim)
    await live.entry(DefragFinished, since)

    assert live.rack_of("cleared-big") == rack
    assert live.rack_of(victim) != rack
    first, second = live.starts(victim, 0)
    assert first == (1, 0)
    assert second[1] > 0
    assert set(live.identities(victim).values()).isdisjoint(old[victim].values())
    [other] = set(movers("cleared")) - {victim}
    assert live.identities(other) == old[other]
    assert live.identities("cleared-note") == note


async def test_a_plan_withdrawn_in_time_leaves_its_victims_where_they_are(live: Live) -> None:
    """They do not save on notice, so they have all of it."""
    quiet = {"notice_signal": None, "checkpoint": Checkpoint(restart_s=1.0)}
    await scatter(live, "spared", **quiet)
    old = {name: live.identities(name) for name in movers("spared")}
    since = live.now()
    await live.submit(live.spec("spared-big", 4, priority=60))
    plan = await live.entry(DefragPlanned, since)
    victim = plan.victims[0].job
    notice = Path(live.env(victim, 0, 1)["RACKWRIGHT_NOTICE_FILE"])
    await appears(notice.exists)
    await live.wish(Cancel(job=JobId("spared-big")))
    withdrawn = await live.entry(DefragWithdrawn, since)
    assert (withdrawn.plan, withdrawn.spared) == (plan.plan, (victim,))
    await appears(lambda: not notice.exists())
    await live.running(victim)
    assert {name: live.identities(name) for name in movers("spared")} == old
    assert live.job(victim).state is JobState.RUNNING
    assert live.starts(victim, 0) == [(1, 0)]
