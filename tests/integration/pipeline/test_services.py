"""Services killed in mid-work: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rackwright.cli.show import ask
from rackwright.cli.stack import SERVICES
from rackwright.core.jobs import JobState
from rackwright.gateway.views import ServicesAnswer
from rackwright.wire.codec import to_json
from rackwright.wire.entries.node import NodeUnfit
from rackwright.wire.entries.slice import SliceSwapped
from rackwright.wire.ids import JobId
from rackwright.wire.wishes import Cancel, Submit, Wish
from tests.support.live import Live

ANSWERING = ("spare-manager", "dispatcher", "placer")
pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]


async def publish(live: Live, wish: Wish) -> None:
    """Wish, and do not wait: whoever answers may be down."""
    subject = live.cell.subjects.wish(live.cell.user, wish.TYPE)
    await live.cell.bus.wishes.publish(subject, to_json(wish))


async def burst(live: Live, tag: str, count: int) -> list[str]:
    """Short jobs, published and not waited for."""
    names = [f"{tag}-{turn}" for turn in range(count)]
    for name in names:
        spec = live.spec(name, None, gpus=1, env={"LIVE_EXIT": "0"})
        await publish(live, Submit(job=spec.name, spec=spec))
    return names


async def all_finish_once(live: Live, names: list[str]) -> None:
    """Each of them ends well and had one process."""
    ends = {name: (await live.ended(name)).state for name in names}
    assert {name: state for name, state in ends.items() if state is not JobState.FINISHED} == {}
    assert {name: len(live.starts(name, 0)) for name in names} == dict.fromkeys(names, 1)


@pytest_asyncio.fixture(loop_scope="package")
async def patient(live: Live) -> AsyncIterator[Live]:
    """A cell whose leases outlast the start of a monitor on a busy machine."""
    async with live.long_leases(60.0):
        yield live


async def test_each_service_killed_in_mid_work(patient: Live) -> None:
    live = patient
    await live.start(live.spec("rides", 4))
    before = live.identities("rides")
    for service in SERVICES:
        kept = live.stack.kept[f"{service}-0"]
        names = await burst(live, f"{service}-up", 2)
        kept.kill(signal.SIGKILL)
        names += await burst(live, f"{service}-down", 2)
        await kept.running()
        await live.stack.ready(live.watched)
        await all_finish_once(live, names)
    assert live.identities("rides") == before
    assert live.job("rides").membership == 1


async def test_a_fault_while_all_who_would_answer_it_are_down(patient: Live) -> None:
    live = patient
    job = await live.start(live.spec("hurt", 4))
    before = live.identities("hurt")
    lost = job.worker(1)
    del before[lost]
    node = live.nodes_of("hurt")[1]
    since = live.now()
    others = [live.stack.kept[f"{service}-0"] for service in ANSWERING]
    for kept in others:
        kept.hold()
        kept.kill(signal.SIGKILL)
    live.stack.kept["health-monitor-0"].kill(signal.SIGKILL)
    await live.xid(node)
    await publish(live, Cancel(job=JobId("gone-before")))
    await live.entry(NodeUnfit, since)
    for kept in others:
        kept.release()
    await live.entry(SliceSwapped, since)
    after = await live.running("hurt")
    now = live.identities("hurt")
    assert {w: p for w, p in now.items() if w != after.worker(1)} == before
    assert node not in live.nodes_of("hurt")
    assert (await live.ended("gone-before")).state is JobState.CANCELLED


async def seen(live: Live, silent: set[str]) -> ServicesAnswer:
    """The first answer of the gateway in which just these are missing, and no copy's earlier life
    is counted any more."""
    async with asyncio.timeout(60.0):
        while True:
            view, _ = await ask(live.cell, "services", ServicesAnswer)
            many = any(len(one.copies) > 1 for one in view.services)
            if {one.service for one in view.services if one.missing} == silent and not many:
                return view
            await asyncio.sleep(0.2)


async def test_a_service_that_is_away_is_missed(patient: Live) -> None:
    live = patient
    kept = live.stack.kept["defragmenter-0"]
    before = await seen(live, set())
    assert {one.service: len(one.copies) for one in before.services} == dict.fromkeys(SERVICES, 1)
    kept.hold()
    kept.kill(signal.SIGKILL)
    view = await seen(live, {"defragmenter"})
    assert view.notices == tuple(one.missing for one in view.services if one.missing)
    kept.release()
    assert (await seen(live, set())).notices == ()
