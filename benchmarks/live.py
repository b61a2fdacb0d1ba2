"""A live cell for measurements: nats-server and every service as processes of their own."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import fsync_now, load, machine
from rackwright.bus.jetstream import JetStreamBus
from rackwright.cli.credentials import ADMIN
from rackwright.cli.stack import Stack, StackOptions
from rackwright.cli.watcher import Watched
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Folded
from rackwright.host.files.topologyfile import read_topology
from rackwright.wire.codec import encode, to_json
from rackwright.wire.ids import CellName, JobId, MessageId, Owner, RackId, SessionId, WorkerId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body, Envelope
from rackwright.wire.nodes import Hardware
from rackwright.wire.policy import Policy
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Submit

IN_FLIGHT = 64
CALM = Policy(
    suspect_after_s=20.0,
    fence_after_s=60.0,
    breaker_min=100_000,
    rack_event_nodes=1_000,
    symptom_window_s=0.001,
    poison_swaps=1_000,
)
"""No suspicion by a busy machine, no breaker, no suspect racks: only the path is measured."""


@dataclass(slots=True, kw_only=True)
class LiveCell:
    """A cell that is up."""

    stack: Stack
    watched: Watched
    bus: JetStreamBus
    fsync_ms: float

    @property
    def subjects(self) -> Subjects:
        """Of the cell."""
        return Subjects(CellName(self.stack.options.cell))

    def params(self, **more: Any) -> Mapping[str, Any]:
        """The circumstances of a figure."""
        racks = len(self.stack.options.racks)
        return {"racks": racks, **more, "fsync_p50_ms": self.fsync_ms, "load": load(), **machine()}

    async def submit(self, names: Iterable[str], spec: JobSpec) -> None:
        """Publish jobs as any client would, many publishes side by side."""
        subject = self.subjects.wish(Owner(self.stack.options.owner), Submit.TYPE)
        turns = asyncio.Semaphore(IN_FLIGHT)

        async def one(name: str) -> None:
            async with turns:
                body = Submit(job=JobId(name), spec=replace(spec, name=JobId(name)))
                await self.bus.wishes.publish(subject, to_json(body))

        await asyncio.gather(*(one(name) for name in names))

    async def started(self, names: Iterable[str]) -> Fleet:
        """Wait until these jobs run."""
        wanted = [JobId(name) for name in names]

        def all_up(fleet: Fleet) -> bool:
            jobs = [fleet.jobs.get(name) for name in wanted]
            return all(job is not None and 0 < job.membership == job.started for job in jobs)

        return await self.watched.until(all_up, 300.0)

    async def started_again(self, name: str, membership: int) -> None:
        """Wait until all ranks of a later membership run."""

        def up(fleet: Fleet) -> bool:
            job = fleet.jobs[JobId(name)]
            return membership < job.membership == job.started

        await self.watched.until(up, 60.0)

    async def pretend_joins(self) -> None:
        """Let every node join without an agent: only its status, which nothing follows up.

        No heartbeat comes; a monitor that hears nobody is blind and suspects nobody.
        """
        await asyncio.gather(
            *(
                self.bus.status.put(self.subjects.status(rack.rack, node), _status(rack.rack, node))
                for rack in self.stack.options.racks
                for node in rack.nodes
            )
        )

    async def pretend_ends(self, n: int) -> None:
        """Let the nodes say that whatever was taken off them has ended; `n` rises from call to
        call, from 2. Waits until the ledger knows."""
        workers: dict[tuple[int, int], list[WorkerId]] = {}
        for worker, place in self.watched.fleet.leaving.items():
            workers.setdefault((place.rack, place.node), []).append(worker)
        told = []
        for (number, turn), ended in workers.items():
            spec = self.watched.fleet.racks[number].spec
            node = spec.nodes[turn]
            told.append((self.subjects.status(spec.rack, node), _status(spec.rack, node, n, ended)))
        await asyncio.gather(*(self.bus.status.put(subject, data) for subject, data in told))
        await self.watched.until(lambda fleet: not fleet.leaving, 300.0)


def _status(rack: RackId, node: str, n: int = 1, ended: Iterable[WorkerId] = ()) -> bytes:
    body: Body = NodeStatus(
        node=node,  # type: ignore[arg-type]
        rack=rack,
        session=SessionId(f"s-{node}"),
        boot="bench",
        n=n,
        workers=tuple(WorkerStatus(worker=one, state=WorkerState.STOPPED) for one in ended),
        hardware=Hardware(serial=f"sn-{node}", gpus=4, gpu_model="GB200", driver="bench"),
    )
    return encode(
        Envelope(
            id=MessageId(f"status-{node}-{n}"),
            type=NodeStatus.TYPE,
            v=1,
            at=0.0,
            source="bench",
            cell=CellName("main"),
            body=body,
        )
    )


@asynccontextmanager
async def live_cell(racks: int, **options: Any) -> AsyncIterator[LiveCell]:
    """Start a cell of so many racks of 18 nodes, and throw it away afterwards."""
    root = Path(tempfile.mkdtemp(prefix="rackwright-bench-"))
    size = f"{racks}x18"
    settings = {"policy": CALM, "log_level": "error", **options}
    try:
        async with AsyncExitStack() as stack:
            made = Stack(
                StackOptions(
                    state_dir=root, racks=read_topology(size.encode(), name=size), **settings
                )
            )
            await stack.enter_async_context(made)
            watched = await stack.enter_async_context(made.watching())
            bus = await made.connect(ADMIN)
            stack.push_async_callback(bus.close)
            yield LiveCell(stack=made, watched=watched, bus=bus, fsync_ms=round(fsync_now(root), 3))
    finally:
        shutil.rmtree(root)


def at_of(commits: Iterable[Folded], type_name: str) -> dict[str, float]:
    """When (CLOCK_BOOTTIME of this process, s) the first entry of each job of a type was folded."""
    found: dict[str, float] = {}
    for commit in commits:
        if commit.type == type_name and not commit.void:
            for entry in commit.entries:
                found.setdefault(entry.job, commit.mono)  # type: ignore[attr-defined]
    return found
