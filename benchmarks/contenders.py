"""The six writers of `benchmarks.contention`: each a process with the host, the fold and the way to
commit that services have, and a mind that says at once what it is to say.

The spare-manager is the product's own. The others stand for services that have more to think about:
what they write is legal and folded like any other, what it costs to find is not the question here.
"""

import asyncio
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import structlog
import uvloop

from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.legality import illegal
from rackwright.core.machine import Acked, Effect, Event, Machine, Offer, Refused, Turn, WakeAt
from rackwright.core.pace import fewer, more
from rackwright.core.policy.placement import place
from rackwright.core.policy.precedence import recovery_first
from rackwright.host.collecting import Collector
from rackwright.host.hearing import Hears
from rackwright.host.service import in_process
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.entries.job import JobBlocked, JobPlaced, JobQueued
from rackwright.wire.entries.node import NodeUnfit
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.reasons import Cause, Reason

FALLEN = Reason(code="xid.79", numbers={"xid": 79, "count": 1})
THOUGHT_S = 1.0


@dataclass(slots=True, kw_only=True)
class Course:
    """What happens when. From `begins` on (`mono` of this machine, told when all are ready) come
    `jobs`, `newcomers` and, from each of two monitors, `faults` a second. The faults go on for
    `lasts` seconds, the others until `ends`; at `bursts` there are `burst` faults at once. `racks`
    racks hold one job each: w0, w1 and so on."""

    lasts: float
    bursts: float
    ends: float
    jobs: float
    newcomers: float
    faults: float
    burst: int
    racks: int
    begins: float = math.inf

    @property
    def all_jobs(self) -> int:
        """How many will be due in the end."""
        return int(self.ends * self.jobs)

    @property
    def single_faults(self) -> int:
        """How many of each monitor come one by one."""
        return int(self.lasts * self.faults)

    def due(self, rate: float, mono: float) -> int:
        """How many of a kind that goes on until the end should be out by now."""
        return int(min(mono - self.begins, self.ends) * rate) if mono > self.begins else 0

    def faults_due(self, mono: float) -> int:
        """By one of the monitors."""
        if mono <= self.begins:
            return 0
        single = min(self.single_faults, int((mono - self.begins) * self.faults))
        return single + (self.burst // 2 if mono - self.begins >= self.bursts else 0)

    def victim(self, monitor: int, turn: int) -> tuple[JobId, int]:
        """Job and rank of the node that fails next: each rack in turn, then each a second time."""
        number = 2 * turn + monitor
        return JobId(f"w{number % self.racks}"), number // self.racks


@dataclass(slots=True)
class Contender:
    """A mind that is asked at each turn what is due, at most `group` entries. What still holds of a
    refused offer is offered again; like the placer it says less at once while others come first.
    `yields`: nothing is offered while a failure is unanswered."""

    service: str
    due: Callable[[Fleet, Turn, int], Iterable[Effect]]
    yields: bool = False
    group: int = MAX_ENTRIES

    def start(self, copy: int) -> None:
        """It remembers nothing: the fleet shows what is done."""

    def handle(self, state: None, fleet: Fleet, event: Event) -> tuple[None, list[Effect]]:
        """Take one event."""
        match event:
            case Turn():
                return None, list(self.due(fleet, event, self.group))
            case Acked():
                self.group = more(self.group)
                return None, []
            case Refused(offer=offer):
                self.group = fewer(self.group, len(offer.entries))
                if self.yields and recovery_first(fleet, event.now) is not None:
                    return None, []  # as the placer does: it is decided anew after the recovery
                return None, _what_holds(fleet, offer, self.group)
            case _:
                return None, []


def _what_holds(fleet: Fleet, offer: Offer, most: int) -> list[Effect]:
    kept: list[Entry] = []
    for entry in offer.entries[:most]:
        if illegal(fleet, entry) is None:
            kept.append(entry)
            fleet = apply(fleet, entry)
    return [replace(offer, entries=tuple(kept))] if kept else []


@dataclass(slots=True)
class Placer:
    """Places what is due, up to 64 jobs a commit, and nothing while a failure is unanswered."""

    course: Course
    next: int = 0

    def __call__(self, fleet: Fleet, turn: Turn, most: int) -> Iterable[Effect]:
        """The jobs `p0`.. wait in the fleet."""
        wait = recovery_first(fleet, turn.now)
        if wait is not None:
            return [WakeAt(mono=turn.mono + wait)]
        entries: list[Entry] = []
        for number in range(self.next, self.course.due(self.course.jobs, turn.mono)):
            job = fleet.jobs[JobId(f"p{number}")]
            if job.state is not JobState.QUEUED:
                self.next += number == self.next
                continue
            found = place(fleet, job)
            if found is None:
                break  # what is free is kept for the recovery of others, until that is done
            reason = Reason(code="placed", numbers={"racks": 1})
            placed = JobPlaced(
                job=job.id, membership=job.membership + 1, slices=found, reason=reason
            )
            entries.append(placed)
            fleet = apply(fleet, placed)
            if len(entries) == most:
                break
        return _with_wake(entries, turn.mono + 1.0 / self.course.jobs)


@dataclass(slots=True)
class Intake:
    """New jobs come, and wait."""

    course: Course
    next: int = 0

    def __call__(self, fleet: Fleet, turn: Turn, most: int) -> Iterable[Effect]:
        """They are named `q0`.. in their order."""
        while JobId(f"q{self.next}") in fleet.jobs:
            self.next += 1
        due = self.course.due(self.course.newcomers, turn.mono)
        entries = [
            JobQueued(
                job=JobId(f"q{number}"),
                owner=Owner("ann"),
                spec=JobSpec(name=JobId("q"), gpus=1),
                spec_hash="h",
                submitted_at=turn.now,
            )
            for number in range(self.next, min(due, self.next + most))
        ]
        return _with_wake(entries, turn.mono + 1.0 / self.course.newcomers)


@dataclass(slots=True)
class Monitor:
    """Says of one node after the other that it is unfit, without compare."""

    course: Course
    number: int
    next: int = 0

    def __call__(self, fleet: Fleet, turn: Turn, most: int) -> Iterable[Effect]:
        """Those that the fleet shows as unfit have been said."""
        due = self.course.faults_due(turn.mono)
        entries: list[Entry] = []
        for number in range(self.next, due):
            job, rank = self.course.victim(self.number, number)
            part = fleet.jobs[job].slices[0]
            node = fleet.racks[part.rack].nodes[rank]
            if node.fitness is Fitness.NONE:
                self.next += number == self.next
                continue
            entries.append(
                NodeUnfit(
                    node=node.name,
                    of=node.last,
                    fitness=Fitness.NONE,
                    action=RepairAction.REBOOT,
                    gpu=0,
                    observed_at=turn.now,
                    reason=FALLEN,
                )
            )
        due_at = turn.mono + 1.0 / self.course.faults
        burst = self.course.begins + self.course.bursts
        wake = WakeAt(mono=burst if turn.mono < burst < due_at else due_at)
        pieces = iter(entries)
        offers: list[Effect] = []
        while piece := tuple(islice(pieces, MAX_ENTRIES)):
            offers.append(Offer(entries=piece, compare=False))
        return [*offers, wake]


@dataclass(slots=True)
class Thinker:
    """Thinks for a second, blind to what comes meanwhile, and then has one thing to say."""

    course: Course
    thought: int = 0

    def __call__(self, fleet: Fleet, turn: Turn, most: int) -> Iterable[Effect]:
        """Jobs `t0`.. wait in the fleet; each thought is about one of them."""
        since = turn.mono - self.course.begins
        if not 0.0 <= since < self.course.lasts:
            return [WakeAt(mono=turn.mono + 0.1)]
        job = fleet.jobs[JobId(f"t{self.thought}")]
        time.sleep(THOUGHT_S)  # stands for a search of that length: the process does nothing else
        self.thought += 1
        reason = Reason(code=Cause.CAPACITY, numbers={"free": fleet.index.usable})
        return [Offer(entries=(JobBlocked(job=job.id, reason=reason),)), WakeAt(mono=turn.mono)]


def _with_wake(entries: list[Any], mono: float) -> Iterable[Effect]:
    wake = WakeAt(mono=mono)
    return [Offer(entries=tuple(entries)), wake] if entries else [wake]


def minds(course: Course) -> dict[str, tuple[Machine[Any], int]]:
    """The six by name, each with its ordinal."""
    return {
        "placer": (Contender("placer", Placer(course), yields=True), 0),
        "intake": (Contender("placer", Intake(course)), 1),
        "monitor-0": (Contender("health-monitor", Monitor(course, 0)), 0),
        "monitor-1": (Contender("health-monitor", Monitor(course, 1)), 1),
        "spare-manager": (SpareManager(), 0),
        "defragmenter": (Contender("defragmenter", Thinker(course)), 0),
    }


async def contend(name: str, servers: tuple[str, ...], replicas: int) -> None:
    """Be one of them: take the course from standard input, say when ready and what was refused."""
    bus = await connect(ConnectOptions(servers=servers, identity=name), "bench", replicas=replicas)
    course = Course(**json.loads(await asyncio.to_thread(sys.stdin.readline)))
    machine, ordinal = minds(course)[name]
    collector = Collector()
    async with in_process(
        machine, Hears(), bus, ordinal=ordinal, patience_s=0.0, collector=collector
    ) as runner:
        used = time.process_time()
        collector.begin()
        print("ready", flush=True)
        course.begins = float(await asyncio.to_thread(sys.stdin.readline))
        await asyncio.to_thread(sys.stdin.readline)
        count = runner.metrics.registry.get_sample_value
        said = {one: count(f"rackwright_{one}_total") for one in ("offers", "refusals")}
        print(json.dumps({**said, "cpu_s": round(time.process_time() - used, 1)}))
    await bus.close()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(contend(sys.argv[1], tuple(sys.argv[3:]), int(sys.argv[2])))
