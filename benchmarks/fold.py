"""How many ledger entries a service folds in a second, with and without decoding them."""

import gc
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.fleets import empty_cell, mixed_spec
from benchmarks.measuring import Row, Scale, alone, machine
from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply, fold
from rackwright.core.machine import Offer
from rackwright.core.policy.placement import place
from rackwright.host.commits import Author
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.entries.job import (
    JobBlocked,
    JobFinished,
    JobFinishing,
    JobPlaced,
    JobQueued,
    JobStarted,
)
from rackwright.wire.entries.node import NodeCleaning, NodeRecovered, NodeUnfit
from rackwright.wire.entries.slice import NodeSwap, SliceSwapped
from rackwright.wire.ids import CellName, JobId, Owner
from rackwright.wire.message import Commit, Entry
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.reasons import Cause, Reason, Rung, RungTaken

RACKS = 140
SHARE = 0.7  # of the nodes in use
GROUP = 4  # entries a commit takes at most when there is much to say
FAULTS = 0.01  # by job


@dataclass(slots=True)
class Recorder:
    """Writes a ledger as services would, in memory: each commit sealed, and folded at once."""

    fleet: Fleet
    author: Author = field(default_factory=lambda: Author(CellName("bench"), "bench", 0, "b"))
    kept: list[tuple[str, bytes, float]] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)

    def append(self, *entries: Entry, compare: bool = True) -> None:
        """One commit. Raises RuntimeError when the fold would not have it."""
        at = self.fleet.time + 0.002
        sealed = self.author.seal(self.fleet, Offer(entries=entries, compare=compare), at)
        commit = decode_commit(sealed.commit.type, sealed.data)
        folding = fold(self.fleet, self.fleet.seq + 1, at, commit)
        if folding.void:
            raise RuntimeError(folding.why)
        self.fleet = folding.fleet
        self.kept.append((commit.type, sealed.data, at))
        self.types[commit.type] += len(entries)

    @property
    def entries(self) -> int:
        """How many are written."""
        return self.types.total()


def record(count: int, racks: int, seed: int) -> tuple[Fleet, Recorder]:
    """A cell and a ledger of about `count` entries: jobs come, run and go, some nodes fail."""
    rng = random.Random(seed)
    start = empty_cell(racks, rng)
    start.last_id = Author(CellName("bench"), "bench", 0, "first").message_id()
    recorder = Recorder(start)
    running: list[JobId] = []
    turn = 0
    while recorder.entries < count:
        names = [JobId(f"job-{turn + more}") for more in range(rng.randint(1, GROUP))]
        turn += len(names)
        recorder.append(*(_queued(recorder.fleet, name, rng) for name in names))
        placed = _place(recorder, names)
        if placed:
            recorder.append(*(JobStarted(job=name, membership=1) for name in placed))
        running += placed
        if rng.random() < 0.1:
            recorder.append(LedgerTicked(), compare=False)
        if running and rng.random() < FAULTS * len(names):
            _fail(recorder, rng.choice(running))
        _end(recorder, running, rng)
    return start, recorder


def _queued(fleet: Fleet, name: JobId, rng: random.Random) -> JobQueued:
    spec = mixed_spec(rng, 64)
    return JobQueued(
        job=name, owner=Owner("ann"), spec=spec, spec_hash="h" * 16, submitted_at=fleet.time
    )


def _place(recorder: Recorder, names: Sequence[JobId]) -> list[JobId]:
    entries: list[JobPlaced] = []
    fleet = recorder.fleet
    for name in names:
        found = place(fleet, fleet.jobs[name])
        if found is None:
            reason = Reason(code=Cause.CAPACITY, numbers={"free": fleet.index.usable})
            recorder.append(JobBlocked(job=name, reason=reason))
            continue
        reason = Reason(code="placed", numbers={"racks": len(found)})
        entries.append(JobPlaced(job=name, membership=1, slices=found, reason=reason))
        fleet = apply(fleet, entries[-1])
    if entries:
        recorder.append(*entries)
    return [entry.job for entry in entries]


def _fail(recorder: Recorder, name: JobId) -> None:
    """A node of the job fails, is swapped for another one of the rack if there is one, returns."""
    fleet = recorder.fleet
    job = fleet.jobs[name]
    part = job.slices[0]
    rack = fleet.racks[part.rack]
    node = rack.nodes[part.nodes[0]]
    if rack.usable == 0 or part.gpus or job.pinned or not job.spec.restartable:
        return
    reason = Reason(code="xid.79", numbers={"count": 1, "xid": 79})
    recorder.append(
        NodeUnfit(
            node=node.name,
            of=node.last,
            fitness=Fitness.NONE,
            action=RepairAction.REBOOT,
            gpu=0,
            reason=reason,
        ),
        compare=False,
    )
    spare = rack.usable.bit_length() - 1
    rung = RungTaken(rung=Rung.SPARE, taken=True, price_gpu_h=1.0, reason=Reason(code="spare"))
    recorder.append(
        SliceSwapped(
            job=name,
            membership=job.membership + 1,
            index=0,
            swaps=(NodeSwap(rank=part.first_rank, old=part.nodes[0], new=spare),),
            rungs=(rung,),
        )
    )
    recorder.append(JobStarted(job=name, membership=job.membership + 1))
    gone = (job.worker(part.first_rank),)
    of = recorder.fleet.node(node.name).last
    recorder.append(NodeCleaning(node=node.name, of=of, ended=gone, done=True), compare=False)
    last = recorder.fleet.node(node.name).last
    recorder.append(
        NodeRecovered(
            node=node.name, of=last, fitness=Fitness.FULL, reason=Reason(code="returned")
        ),
        compare=False,
    )


def _end(recorder: Recorder, running: list[JobId], rng: random.Random) -> None:
    """End jobs until as much is free as should be, a few in a commit."""
    free = recorder.fleet.installed_nodes * (1.0 - SHARE)
    expected = recorder.fleet.index.usable
    ending: list[JobId] = []
    while expected < free and running:
        turn = rng.randrange(len(running))
        running[turn], running[-1] = running[-1], running[turn]
        ending.append(running.pop())
        expected += recorder.fleet.jobs[ending[-1]].ranks
    for start in range(0, len(ending), GROUP):
        group = ending[start : start + GROUP]
        recorder.append(*(JobFinishing(job=name) for name in group))
        recorder.append(*(JobFinished(job=name) for name in group))


def replay(fleet: Fleet, kept: Sequence[tuple[str, bytes, float]]) -> float:
    """Seconds to decode and fold all of it."""
    began = time.process_time()
    for type_name, data, at in kept:
        fleet = fold(fleet, fleet.seq + 1, at, decode_commit(type_name, data)).fleet
    return time.process_time() - began


def refold(fleet: Fleet, commits: Sequence[tuple[Commit[Any], float]]) -> float:
    """Seconds to fold what is decoded already."""
    began = time.process_time()
    for commit, at in commits:
        fleet = fold(fleet, fleet.seq + 1, at, commit).fleet
    return time.process_time() - began


def measure(scale: Scale) -> Iterator[Row]:
    """Entries folded in a second of processor time, garbage collection off as in a replay.

    The fastest run counts, as with `timeit`: whatever else the machine does can only slow one. The
    median stands beside it.
    """
    count, runs = scale.pick(20_000, 5_000), scale.pick(9, 3)
    start, recorder = record(count, RACKS, scale.seed)
    commits = [(decode_commit(kind, data), at) for kind, data, at in recorder.kept]
    params = {
        **machine(),
        "racks": RACKS,
        "entries": recorder.entries,
        "entries_per_commit": round(recorder.entries / len(commits), 2),
        "bytes_per_entry": sum(len(data) for _, data, _ in recorder.kept) // recorder.entries,
        "runs": runs,
        "seed": scale.seed,
    }
    gc.collect()
    gc.disable()
    try:
        whole = [replay(start, recorder.kept) for _ in range(runs)]
        alone_ = [refold(start, commits) for _ in range(runs)]
    finally:
        gc.enable()
    for decoding, seconds in ((True, whole), (False, alone_)):
        yield Row(
            name="fold_entries_per_s",
            params={
                **params,
                "decoding": decoding,
                "median": round(recorder.entries / median(seconds)),
            },
            value=recorder.entries / min(seconds),
            unit="1/s",
        )


if __name__ == "__main__":
    alone(measure)
