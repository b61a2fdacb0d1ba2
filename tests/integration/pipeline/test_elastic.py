"""Jobs that become smaller and larger while they run: who stays keeps its process."""

from __future__ import annotations

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobBlocked, JobFailed, JobGrown, JobShrunk
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Group, JobClass
from rackwright.wire.wishes import Cancel, LetGo
from tests.support.live import Live

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


async def test_an_elastic_job_goes_on_without_a_slice_and_gets_it_back(live: Live) -> None:
    await live.start(live.spec("beside-elastic", 4, slice_nodes=4, preemptible=False))
    await live.start(live.spec("elastic", 8, slice_nodes=4, min_slices=1))
    mine = {live.rack_of("elastic", index) for index in (0, 1)}
    assert live.rack_of("beside-elastic") not in mine
    before = live.identities("elastic")
    # The rack of slice 1 has two spares: the third failure finds none, and no rack is free.
    since = live.now()
    for turn in range(3):
        await live.xid(live.nodes_of("elastic", 1)[turn])
        if turn < 2:
            await live.running("elastic")
    shrunk = await live.entry(JobShrunk, since)
    assert shrunk.indexes == (1,)
    job = await live.running("elastic")
    assert (job.state, [part.index for part in job.slices]) == (JobState.RUNNING, [0])
    await live.board.until(lambda board: len(board.pids("elastic")) == 4)
    staying = live.identities("elastic")
    assert staying == {w: p for w, p in before.items() if int(w.split("/")[1]) < 4}

    since = live.now()
    await live.wish(Cancel(job=JobId("beside-elastic")))
    grown = await live.entry(JobGrown, since)
    assert [(part.index, part.first_rank) for part in grown.slices] == [(1, 4)]
    after = await live.running("elastic")
    now = live.identities("elastic")
    assert {w: now[w] for w in staying} == staying
    assert sorted(now) == sorted(after.worker(rank) for rank in range(8))


async def test_a_service_gets_its_other_replica_when_there_is_room(live: Live) -> None:
    for turn in range(2):
        await live.start(live.spec(f"pinned-{turn}", 6, slice_nodes=6, preemptible=False))
    groups = (Group(name=JobId("decode"), nodes=4, replicas=2, min_replicas=1),)
    serving = await live.start(
        live.spec("serve", None, groups=groups, job_class=JobClass.SERVICE, slice_nodes=4)
    )
    assert [part.replica for part in serving.slices] == [0]
    staying = live.identities("serve")
    since = live.now()
    await live.wish(Cancel(job=JobId("pinned-0")))
    await live.entry(JobGrown, since)
    after = await live.running("serve")
    assert [part.replica for part in after.slices] == [0, 1]
    now = live.identities("serve")
    assert {w: now[w] for w in staying} == staying
    assert len(now) == 8


async def test_a_failed_job_that_asks_for_it_keeps_its_nodes(live: Live) -> None:
    await live.start(live.spec("looked-at", 2, restartable=False, keep_on_failure=True))
    nodes = live.nodes_of("looked-at")
    since = live.now()
    live.tell("looked-at", "exit 3", 0)
    failed = await live.entry(JobFailed, since)
    assert failed.keep_s == live.fleet.policy.keep_on_failure_s
    await live.board.until(lambda board: not board.pids("looked-at"))
    assert {live.node(node).kept_for for node in nodes} == {"looked-at"}

    # The two other racks can be had; a slice that needs this one waits until they are let go.
    await live.start(live.spec("others", 12, slice_nodes=6))
    since = live.now()
    await live.submit(live.spec("next", 6, slice_nodes=6))
    assert (await live.entry(JobBlocked, since)).reason.code == "held"
    await live.wish(LetGo(job=JobId("looked-at")))
    await live.running("next")
    assert set(nodes) <= set(live.nodes_of("next"))
