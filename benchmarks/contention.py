"""Six processes write one ledger at once: who waits how long, and how often somebody was first.

500 jobs a second are placed, 100 come, 15 nodes a second are said to be unfit by each of two
monitors, the spare-manager answers each, the defragmenter thinks a second about each thing it says;
then 750 nodes fail in one moment while the jobs go on. With one server, and with three, where that
may be had (network namespaces need root). A swap counts from when its fault was due until its
commit was stored, by the server's clock, which is this machine's.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contenders import Course, minds
from benchmarks.fleets import empty_cell, queued, seated
from benchmarks.measuring import Row, Scale, alone, fsync_now, load, machine, spread
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.errors import BusAway, RequestFailed
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Appended, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.machine import Offer
from rackwright.core.snapshot import dump
from rackwright.host.clock import boottime
from rackwright.host.commits import Author
from rackwright.host.snapshots import write
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.entries.job import JobBlocked, JobPlaced, SlicePlacement
from rackwright.wire.entries.slice import SliceSwapped
from rackwright.wire.ids import CellName, JobId, LedgerId, RackId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.versions import FOLD_VERSION
from tests.support.needs import administrator_missing
from tests.support.network import lab

CELL = CellName("bench")
SLICE = 16
CALM = Policy(
    breaker_min=100_000, rack_event_nodes=1_000, symptom_window_s=0.001, lend_spares=False
)
THINKING = 16  # jobs that the defragmenter may have thoughts about
SETTLE_S, START_S, PATIENCE_S = 2.0, 1.0, 60.0
RETRY_S = 0.1


@dataclass(slots=True)
class Seen:
    """The ledger as it came in: when each job was placed, each was swapped, what was planned."""

    course: Course
    clock: float  # the server's clock less `mono`
    placed: dict[str, float] = field(default_factory=dict)
    swapped: dict[tuple[str, int], float] = field(default_factory=dict)
    thoughts: int = 0
    commits: Counter[str] = field(default_factory=Counter)

    def take(self, stored: Stored) -> None:
        """One commit."""
        commit = decode_commit(stored.subject.partition(".ledger.")[2], stored.data)
        at = stored.at - self.clock
        self.commits[commit.source] += 1
        for entry in commit.entries:
            match entry:
                case JobPlaced(job=job):
                    self.placed[job] = at
                case SliceSwapped(job=job, swaps=swaps):
                    self.swapped.update(((job, swap.rank), at) for swap in swaps)
                case JobBlocked():
                    self.thoughts += 1
                case _:
                    pass

    def swap_times(self) -> tuple[list[float], list[float]]:
        """Seconds from fault to swap: of those that come one by one, and of the burst."""
        course = self.course
        steady: list[float] = []
        burst: list[float] = []
        before = course.single_faults
        for monitor in range(2):
            for turn in range(before + course.burst // 2):
                at = self.swapped[course.victim(monitor, turn)]
                if turn < before:
                    steady.append(at - (course.begins + (turn + 1) / course.faults))
                else:
                    burst.append(at - course.begins - course.bursts)
        return steady, burst

    def place_times(self) -> list[float]:
        """Seconds from when a job was due until it was placed; those before the burst."""
        count = int(self.course.lasts * self.course.jobs)
        due = self.course.begins
        return [
            self.placed[f"p{n}"] - (due + (n + 1) / self.course.jobs)
            for n in range(count)
            if f"p{n}" in self.placed
        ]

    def __str__(self) -> str:
        return f"{len(self.placed)} placed, {len(self.swapped)} swapped, {dict(self.commits)}"

    @property
    def whole(self) -> bool:
        """Has every fault been answered and every job been placed?"""
        course = self.course
        faults = 2 * (course.single_faults + course.burst // 2)
        return len(self.swapped) >= faults and len(self.placed) >= course.all_jobs


def crowded(course: Course, seed: int) -> Fleet:
    """Racks with a job of 16 nodes and two spares each, empty ones, and jobs that wait."""
    jobs = course.all_jobs
    fleet = empty_cell(course.racks + jobs // 60, random.Random(seed), down=0.0)
    fleet = replace(fleet, time=time.time(), policy=CALM)
    for number in range(course.racks):
        name = f"w{number}"
        fleet = queued(fleet, name, JobSpec(name=JobId(name), nodes=SLICE))
        mask = (1 << SLICE) - 1
        part = SlicePlacement(index=0, first_rank=0, rack=RackId(f"r{number}"), nodes=mask)
        fleet = seated(fleet, name, (part,))
    for number in range(jobs):
        fleet = queued(fleet, f"p{number}", JobSpec(name=JobId(f"p{number}"), gpus=1))
    for number in range(THINKING):
        fleet = queued(fleet, f"t{number}", JobSpec(name=JobId(f"t{number}"), nodes=SLICE))
    return fleet


async def begin(bus: JetStreamBus, fleet: Fleet) -> None:
    """A ledger that is created, and a snapshot that says that all of `fleet` followed from it."""
    author = Author(CELL, "bench", 0)
    ledger = LedgerId("bench-" + author.message_id()[-10:].replace(".", ""))
    entry = LedgerCreated(ledger=ledger, fold_version=FOLD_VERSION, policy=fleet.policy)
    empty = replace(Fleet(), ledger=ledger)
    sealed = author.seal(empty, Offer(entries=(entry,)), fleet.time)
    outcome = await bus.ledger.append(sealed.subject, sealed.data, expected=0)
    if not isinstance(outcome, Appended):
        raise RuntimeError(f"no ledger could be begun: {outcome}")
    async with bus.ledger.follow(1) as feed:
        stored = await anext(feed)
    first = fold(Fleet(), 1, stored.at, decode_commit(entry.TYPE, stored.data)).fleet
    made = replace(
        fleet,
        ledger=first.ledger,
        seq=1,
        last_id=first.last_id,
        fold_version=first.fold_version,
    )
    await write(bus, author, made, dump(made), fleet.time)


async def opened(servers: tuple[str, ...], replicas: int) -> JetStreamBus:
    """A connection, and the streams are there."""
    options = ConnectOptions(servers=servers, identity="admin")
    bus = await connect(options, CELL, replicas=replicas)
    async with asyncio.timeout(60):
        while True:
            try:
                await bus.ensure()
                return bus
            except (BusAway, RequestFailed):
                await asyncio.sleep(RETRY_S)  # the servers are electing


async def run(servers: tuple[str, ...], replicas: int, scale: Scale) -> tuple[Seen, dict[str, Any]]:
    """One course with these servers; what was seen, and what each process says of its offers."""
    lasts = float(scale.pick(12, 4))
    course = Course(
        lasts=lasts,
        bursts=lasts + SETTLE_S,
        ends=lasts + 2 * SETTLE_S,
        jobs=500.0,
        newcomers=100.0,
        faults=15.0,
        burst=scale.pick(750, 150),
        racks=scale.pick(560, 140),
    )
    bus = await opened(servers, replicas)
    await begin(bus, crowded(course, scale.seed))
    processes = {
        name: await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.contenders", name, str(replicas), *servers),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for name in minds(course)
    }
    for each in processes.values():
        _tell(
            each,
            json.dumps({key: value for key, value in asdict(course).items() if key != "begins"}),
        )
    for each in processes.values():
        await _says(each, "ready")
    course.begins = boottime() + START_S
    for each in processes.values():
        _tell(each, str(course.begins))
    seen = Seen(course, time.time() - boottime())
    async with bus.ledger.follow(2) as feed:
        try:
            async with asyncio.timeout(course.ends + PATIENCE_S):
                while not seen.whole:
                    for stored in await feed.batch():
                        seen.take(stored)
        except TimeoutError:
            raise RuntimeError(f"unfinished: {seen}") from None
    said = {}
    for name, each in processes.items():
        _tell(each, "end")
        out, _ = await each.communicate()
        said[name] = json.loads(out)
    await bus.close()
    return seen, said


def _tell(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")


async def _says(process: asyncio.subprocess.Process, word: str) -> None:
    assert process.stdout is not None
    said = await process.stdout.readline()
    if said.decode().strip() != word:
        raise RuntimeError(f"{word!r} was expected, {said!r} came")


@asynccontextmanager
async def _servers(replicas: int, root: Path) -> AsyncIterator[tuple[str, ...]]:
    if replicas == 1:
        async with EmbeddedServer(EmbeddedOptions(data_dir=root / "data")) as server:
            yield (server.url,)
    else:
        async with lab(root) as three:
            yield tuple(server.url for server in three.servers)


def _rows(seen: Seen, said: Mapping[str, Any], params: Mapping[str, Any]) -> Iterator[Row]:
    course = seen.course
    offered = int(course.lasts * course.jobs)
    placing = seen.place_times()
    in_time = sum(
        at <= course.begins + course.lasts + 1.0 / course.jobs for name, at in seen.placed.items()
    )
    yield Row(
        name="contention_placed",
        params={**params, "offered": offered, "seconds": course.lasts},
        value=float(min(in_time, offered)),
        unit="jobs",
    )
    yield from spread("contention_place", "ms", [1000 * one for one in placing], params)
    steady, burst = seen.swap_times()
    yield from spread("contention_swap", "ms", [1000 * one for one in steady], params)
    told = {**params, "faults": course.burst, "p50": round(1000 * median(burst))}
    yield Row(name="contention_burst_ms", params=told, value=1000 * max(burst), unit="ms")
    thoughts = {**params, "seconds": course.lasts}
    yield Row(name="contention_plans", params=thoughts, value=float(seen.thoughts), unit="plans")
    for name in ("placer", "spare-manager"):
        mine = said[name]
        told = {**params, "of": name, **mine, "commits": seen.commits[f"{name}/0"]}
        value = mine["refusals"] / seen.commits[f"{name}/0"]
        yield Row(name="contention_refused", params=told, value=value, unit="per commit")


async def _contended(scale: Scale) -> list[Row]:
    rows: list[Row] = []
    for replicas in (1, 3):
        if replicas == 3 and (why := administrator_missing()):
            print(f"three servers are left out: {why}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="rackwright-bench-") as folder:
            root = Path(folder)
            async with _servers(replicas, root) as servers:
                seen, said = await run(servers, replicas, scale)
            params = {"replicas": replicas, "fsync_p50_ms": round(fsync_now(root), 3)}
            rows += _rows(seen, said, {**params, "load": load(), **machine()})
    return rows


def measure(scale: Scale) -> Iterator[Row]:
    """Six writers at one ledger: placing, swapping and planning beside each other, and a burst."""
    yield from asyncio.run(_contended(scale))


if __name__ == "__main__":
    alone(measure)
