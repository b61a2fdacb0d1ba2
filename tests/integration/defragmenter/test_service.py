"""Two defragmenters in their hosts, on both buses: one plan, its notice, and its end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from rackwright.bus.ports import Appended, Bus
from rackwright.core.fleet import Fleet
from rackwright.core.invariants import check
from rackwright.core.jobs import JobState
from rackwright.core.machine import Offer
from rackwright.defragmenter.config import HEARS
from rackwright.defragmenter.machine import Defragmenter
from rackwright.defragmenter.state import State
from rackwright.host.commits import Author
from rackwright.host.create import create_ledger
from rackwright.host.runner import Runner
from rackwright.host.service import in_process
from rackwright.host.steps import Step
from rackwright.wire.entries.job import (
    JobBlocked,
    JobCancelled,
    JobPlaced,
    JobQueued,
    JobStarted,
    SlicePlacement,
)
from rackwright.wire.entries.node import NodeJoined, RackDefined
from rackwright.wire.ids import CellName, JobId, NodeId, Owner, RackId, SessionId
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Hardware, RackSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Cause, Reason
from tests.integration.bus.harness import MemoryHarness, opened
from tests.integration.host.helpers import until

RACKS = {rack: tuple(NodeId(f"{rack}-n{place}") for place in range(4)) for rack in ("r0", "r1")}
WAITS, MOVES = JobId("waits"), JobId("moves")
POLICY = Policy(
    slice_nodes=4,
    spares_large=0,
    spares_small=0,
    defrag_delay_s=0.0,
    defrag_min_runtime_s=0.0,
)


@dataclass(slots=True)
class Stage:
    """Running copies, and somebody who writes what the other services would."""

    bus: Bus
    runners: list[Runner[State]]
    told: list[str] = field(default_factory=list)

    @property
    def fleet(self) -> Fleet:
        return self.runners[0].standing.fleet

    def heard(self, step: Step) -> None:
        """Keep what defragmenters commit."""
        if step.commit.source.startswith("defragmenter/"):
            self.told.append(step.commit.type)

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

    async def queue(self, spec: JobSpec) -> None:
        """A new job waits."""
        await self.say(
            "placer",
            JobQueued(
                job=spec.name, owner=Owner("ann"), spec=spec, spec_hash="h", submitted_at=0.0
            ),
        )


async def build(stage: Stage) -> None:
    """Each of two racks has a job on one of its four nodes; a job of four nodes waits."""
    for rack, nodes in RACKS.items():
        await stage.say("placer", RackDefined(rack=RackSpec(rack=RackId(rack), nodes=nodes)))
        joins = [
            NodeJoined(
                node=node,
                of=stage.fleet.node(node).last,
                session=SessionId(f"{node}-s"),
                boot="b",
                hardware=Hardware(serial=f"sn-{node}", gpus=4),
            )
            for node in nodes
        ]
        await stage.say("health-monitor", *joins, compare=False)
    for name, rack, more in ((MOVES, "r0", 10), (JobId("stays"), "r1", 60)):
        saves = Checkpoint(on_notice_s=1.0, restart_s=60.0)
        await stage.queue(JobSpec(name=name, nodes=1, priority=more, checkpoint=saves))
        part = SlicePlacement(index=0, first_rank=0, rack=RackId(rack), nodes=1)
        why = Reason(code="test")
        await stage.say("placer", JobPlaced(job=name, membership=1, slices=(part,), reason=why))
        await stage.say("placer", JobStarted(job=name, membership=1))
    await stage.queue(JobSpec(name=WAITS, nodes=4))


async def block(stage: Stage) -> None:
    await stage.say("placer", JobBlocked(job=WAITS, reason=Reason(code=Cause.TOPOLOGY_MOVABLE)))


@pytest.fixture(params=["memory", pytest.param("jetstream", marks=pytest.mark.integration)])
async def s(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with opened(request.param, tmp_path / "nats") as harness, AsyncExitStack() as running:
        if isinstance(harness, MemoryHarness):
            harness.now = time.time()
        bus = await harness.bus()
        assert await create_ledger(bus, POLICY)
        runners = [
            await running.enter_async_context(
                in_process(Defragmenter(), HEARS, await harness.bus(), ordinal=copy)
            )
            for copy in (0, 1)
        ]
        stage = Stage(bus, runners)
        runners[0].on_folded(stage.heard)
        await until(lambda: stage.fleet.last_id is not None)
        await build(stage)
        yield stage


async def test_a_plan_its_notice_and_its_end(s: Stage) -> None:
    await block(s)
    await until(lambda: s.told == ["defrag.planned", "job.notified"])
    jobs = s.fleet.jobs
    assert (jobs[WAITS].state, jobs[WAITS].slices[0].rack) == (JobState.PLACED, 0)
    assert (jobs[MOVES].state, jobs[MOVES].slices[0].rack) == (JobState.PLACED, 1)
    for name in (MOVES, WAITS):
        await s.say("placer", JobStarted(job=name, membership=s.fleet.jobs[name].membership))
    await until(lambda: not s.fleet.plans)
    await until(lambda: s.runners[1].standing.fleet.seq == s.fleet.seq)
    assert s.told == ["defrag.planned", "job.notified", "defrag.finished"]
    assert s.fleet.voids == 0
    check(s.fleet)


async def test_a_cancelled_job_takes_its_plan_along(s: Stage) -> None:
    await block(s)
    await until(lambda: "job.notified" in s.told)
    gone = JobCancelled(job=WAITS, by=Owner("ann"), reason=Reason(code="owner"))
    await s.say("placer", gone)
    await until(lambda: not s.fleet.plans)
    assert s.told[-1] == "defrag.withdrawn"
    # No node has said that the old worker runs, so nobody could be sent back.
    assert s.fleet.jobs[MOVES].slices[0].rack == 1
    check(s.fleet)
