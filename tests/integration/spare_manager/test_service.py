"""The spare-manager in its host, on both buses: a fault in the ledger is answered by a swap."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from rackwright.bus.ports import Appended, Bus
from rackwright.core.fleet import Fleet
from rackwright.core.invariants import check
from rackwright.core.jobs import Job
from rackwright.core.machine import Offer
from rackwright.host.commits import Author
from rackwright.host.create import create_ledger
from rackwright.host.runner import Runner
from rackwright.host.service import in_process
from rackwright.spare_manager.config import HEARS
from rackwright.spare_manager.machine import SpareManager, State
from rackwright.wire.entries.job import JobPlaced, JobQueued, JobStarted, SlicePlacement
from rackwright.wire.entries.node import NodeJoined, NodeUnfit, RackDefined
from rackwright.wire.ids import CellName, JobId, NodeId, Owner, RackId, SessionId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness, Hardware, RackSpec, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.integration.bus.harness import MemoryHarness, opened
from tests.integration.host.helpers import until

RACK = RackId("r0")
NODES = tuple(NodeId(f"r0-n{place}") for place in range(6))
JOB = JobId("a")
WHY = Reason(code="xid.79")


@dataclass(slots=True)
class Stage:
    """Running copies, and somebody who writes what the other services would."""

    bus: Bus
    runners: list[Runner[State]]

    @property
    def fleet(self) -> Fleet:
        return self.runners[0].standing.fleet

    @property
    def job(self) -> Job:
        return self.fleet.jobs[JOB]

    async def say(self, service: str, *entries: Entry, compare: bool = True) -> None:
        """Append these, again if somebody else came first."""
        author = Author(CellName(self.bus.cell), service, 0)
        while True:
            fleet = self.fleet
            sealed = author.seal(fleet, Offer(entries=entries, compare=compare), 0.0)
            expected = fleet.seq if compare else None
            outcome = await self.bus.ledger.append(sealed.subject, sealed.data, expected=expected)
            if isinstance(outcome, Appended):
                break
            await until(partial(self.has_folded, fleet.seq + 1))
        await until(partial(self.has_folded, outcome.seq))

    def has_folded(self, seq: int) -> bool:
        """Is the first copy so far?"""
        return self.fleet.seq >= seq

    async def unfit(self, place: int) -> None:
        """A fault takes the node out."""
        entry = NodeUnfit(
            node=NODES[place],
            of=self.fleet.node(NODES[place]).last,
            fitness=Fitness.NONE,
            action=RepairAction.REBOOT,
            reason=WHY,
        )
        await self.say("health-monitor", entry, compare=False)


async def build(stage: Stage) -> None:
    """A rack of six nodes, a running job on four of them."""
    await stage.say("placer", RackDefined(rack=RackSpec(rack=RACK, nodes=NODES)))
    joins = [
        NodeJoined(
            node=node,
            of=stage.fleet.node(node).last,
            session=SessionId(f"{node}-s"),
            boot="b",
            hardware=Hardware(serial=f"sn-{node}", gpus=4),
        )
        for node in NODES
    ]
    await stage.say("health-monitor", *joins, compare=False)
    spec = JobSpec(name=JOB, nodes=4)
    queued = JobQueued(job=JOB, owner=Owner("ann"), spec=spec, spec_hash="h", submitted_at=0.0)
    await stage.say("placer", queued)
    part = SlicePlacement(index=0, first_rank=0, rack=RACK, nodes=0b1111)
    await stage.say("placer", JobPlaced(job=JOB, membership=1, slices=(part,), reason=WHY))
    await stage.say("placer", JobStarted(job=JOB, membership=1))


@pytest.fixture(params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)])
async def s(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with opened(request.param, tmp_path / "nats") as harness, AsyncExitStack() as running:
        if isinstance(harness, MemoryHarness):
            harness.now = time.time()
        bus = await harness.bus()
        assert await create_ledger(bus, Policy())
        runners = [
            await running.enter_async_context(
                in_process(SpareManager(), HEARS, await harness.bus(), ordinal=copy)
            )
            for copy in (0, 1)
        ]
        stage = Stage(bus, runners)
        await until(lambda: stage.fleet.last_id is not None)
        await build(stage)
        yield stage


async def test_a_fault_is_answered_by_one_swap_of_one_copy(s: Stage) -> None:
    before = s.job
    await s.unfit(1)
    await until(lambda: s.job.membership == 2)
    assert s.job.slices[0].nodes == (0, 4, 2, 3)
    assert [s.job.worker(rank) for rank in (0, 2, 3)] == [before.worker(rank) for rank in (0, 2, 3)]
    await s.unfit(2)
    await until(lambda: s.job.membership == 3)
    await until(lambda: s.runners[1].standing.fleet.seq == s.fleet.seq)
    assert (s.job.swap_count, s.job.wounds, s.fleet.voids) == (2, (), 0)
    check(s.fleet)


async def test_without_a_place_the_job_goes_back_to_the_queue(s: Stage) -> None:
    for place in (4, 5):
        await s.unfit(place)
    await s.unfit(1)
    await until(lambda: not s.job.slices)
    assert (s.job.state, s.job.requeues, s.job.retries) == ("queued", 1, 0)
