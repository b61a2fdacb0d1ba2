"""What breaks: single nodes by chance, and now and then several of one rack, until its spares are
used up and a slice must move."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.trace.workload import DAY, HOUR
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, Slice
from rackwright.core.racks import Rack
from rackwright.wire.ids import NodeId

MTBF_S = 490 * DAY  # of a node
REPAIR_S = 1 * DAY
BURST_REPAIR_S = 12 * HOUR
LEAST = 8  # nodes of a slice that is broken on purpose
SILENT_SHARE = 0.15  # of the failures; the others are a line of the driver in the kernel log

XIDS = (
    "79, pid=4711, name=python, GPU has fallen off the bus.",
    "95, pid=4711, name=python, Uncontained: LTC TAG (0x0,0x0). RST: Yes, D-RST: No",
    "119, pid=4711, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP!",
)


class Kind(StrEnum):
    """How a node fails: its driver says so, or nobody hears from it any more."""

    XID = "xid"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A node fails at `at_s` of the trace and is repaired `repair_s` later."""

    at_s: float
    node: NodeId
    kind: Kind
    line: str
    repair_s: float


def by_chance(nodes: list[NodeId], end_s: float, seed: int) -> list[Failure]:
    """Failures of single nodes: exponential, independent, repaired after an exponential time."""
    rng = random.Random(f"failures-{seed}")
    found: list[Failure] = []
    at = rng.expovariate(len(nodes) / MTBF_S)
    while at < end_s:
        silent = rng.random() < SILENT_SHARE
        found.append(
            Failure(
                at_s=at,
                node=rng.choice(nodes),
                kind=Kind.SILENCE if silent else Kind.XID,
                line=rng.choice(XIDS),
                repair_s=rng.expovariate(1 / REPAIR_S),
            )
        )
        at += rng.expovariate(len(nodes) / MTBF_S)
    return found


def burst_times(end_s: float, count: int, seed: int) -> list[float]:
    """When a rack has a bad hour: one in each of `count` equal parts of the time."""
    rng = random.Random(f"bursts-{seed}")
    part = end_s / count
    return [(turn + rng.uniform(0.1, 0.9)) * part for turn in range(count)]


def can_burst(fleet: Fleet) -> bool:
    """Is there a slice to break now?"""
    return next(_targets(fleet), None) is not None


def burst_target(fleet: Fleet) -> tuple[Job, Slice]:
    """The slice to break. Raises StopIteration if there is none: ask `can_burst` before."""
    return next(_targets(fleet))


def _targets(fleet: Fleet) -> Iterator[tuple[Job, Slice]]:
    """Protected slices that run and could move: spares beside them, another rack whole.

    Of the largest jobs first, where a move of one slice saves most; ties by id.
    """
    if not _whole_racks(fleet):
        return
    running = [
        job
        for job in fleet.jobs.values()
        if len(job.slices) > 1 and job.state is JobState.RUNNING and not job.wounds
    ]
    for job in sorted(running, key=lambda one: (-one.ranks, one.id)):
        for part in job.slices:
            if part.size >= LEAST and _has_spares(fleet.racks[part.rack]):
                yield job, part


def _whole_racks(fleet: Fleet) -> int:
    return sum(
        1 for rack in fleet.racks.values() if not rack.tenancies and rack.usable.bit_count() >= 16
    )


def _has_spares(rack: Rack) -> bool:
    return 0 < rack.usable.bit_count() <= 2


def burst_lines(seed: int) -> Iterator[str]:
    """A different line of the driver each time, so that no job is held for the cause."""
    turn = seed
    while True:
        yield XIDS[turn % len(XIDS)]
        turn += 1
