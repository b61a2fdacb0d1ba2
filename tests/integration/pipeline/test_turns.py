"""Replicas of a service leave drained nodes in turn: counted by their processes, all the while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Group, JobClass
from rackwright.wire.wishes import Drain
from tests.support.live import Live

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]

TURNS = JobId("turns")
REPLICAS, LEAST = 3, 2
PATIENCE_S = 120.0
MARK = f"RACKWRIGHT_WORKER={TURNS}/".encode()


def alive() -> Iterator[int]:
    """The rank of each process in the world that a worker of this job is, or has started."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environment.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        for variable in variables:
            if variable.startswith(MARK):
                yield int(variable.split(b"/")[1])


def serving() -> int:
    """Replicas of two ranks of which both have a process."""
    ranks = set(alive())
    return sum({2 * replica, 2 * replica + 1} <= ranks for replica in range(REPLICAS))


@pytest_asyncio.fixture(loop_scope="package")
async def patient(live: Live) -> AsyncIterator[Live]:
    """A cell in which no silence of a busy machine moves anything."""
    async with live.long_leases(60.0):
        yield live


async def test_never_fewer_replicas_serve_than_must_while_two_nodes_are_drained(
    patient: Live,
) -> None:
    live = patient
    group = Group(name=JobId("decode"), nodes=2, replicas=REPLICAS, min_replicas=LEAST)
    service = JobClass.SERVICE
    await live.start(live.spec(TURNS, None, groups=(group,), job_class=service, slice_nodes=2))
    assert serving() == REPLICAS
    leaving = {live.nodes_of(TURNS, index)[0] for index in (0, 1)}
    before = live.identities(TURNS)
    for node in sorted(leaving):
        assert (await live.wish(Drain(node=node))).granted

    def settled(fleet: Fleet) -> bool:
        job = fleet.jobs[TURNS]
        nodes = {node for index in range(REPLICAS) for node in live.nodes_of(TURNS, index)}
        return not job.wounds and job.started == job.membership and not nodes & leaving

    fewest = REPLICAS
    async with asyncio.timeout(PATIENCE_S):
        while not settled(live.fleet):
            fewest = min(fewest, await asyncio.to_thread(serving))
    assert fewest >= LEAST
    after = await live.running(TURNS)
    now = live.identities(TURNS)
    untouched = [
        worker for worker in map(after.worker, (4, 5)) if now[worker] == before.get(worker)
    ]
    assert len(untouched) == 2, "the replica that nobody asked to leave keeps its processes"
