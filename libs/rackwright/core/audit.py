"""Safety properties of a whole ledger, commit by commit; the invariants are those of one fleet.

Used by `rackwright verify`, the demo, the simulator and the crash tests alike. What is checked is
in CHECKS, so that a clean result can say what it means.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding
from rackwright.core.invariants import broken
from rackwright.core.jobs import ASSIGNED, Job, JobState, Slice
from rackwright.wire.entries.job import JobGrown, JobQueued, JobShrunk, SlicePlacement
from rackwright.wire.entries.slice import (
    DefragPlanned,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
    VictimMove,
)
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Commit, Entry

CHECKS = (
    "no GPU has two tenants, and racks and jobs agree on who sits where",
    "every rank waits for the leaving workers of its rank and its GPUs",
    "counters and the index equal a scan of the cell",
    "a recovery gives no rank the node it fled from, and leaves every other rank its process",
    "recovery never uses up an owner's retry budget, except for the owner's own exits",
    "interactive and non-restartable work is never evicted or moved by an automation",
    "every victim of a defragmentation has its home in the same commit",
    "every job that was queued lives or has ended, and has ended once",
    "every wish is answered once",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken property at a ledger sequence."""

    seq: int
    what: str


@dataclass(slots=True)
class Audit:
    """Feed it every commit in order. `every`: the cell is scanned at each so many commits."""

    every: int = 1
    commits: int = 0
    entries: int = 0
    voids: int = 0
    scans: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    queued: set[JobId] = field(default_factory=set)
    wishes: set[tuple[str, int]] = field(default_factory=set)
    violations: list[Violation] = field(default_factory=list)

    def take(self, before: Fleet, commit: Commit[Any], folding: Folding) -> None:
        """One commit, with the fleet before it and what the fold made of it."""
        self.commits += 1
        after = folding.fleet
        if folding.void:
            self.voids += 1
            if "chain broken" in folding.why:
                self._found(after.seq, folding.why)
            return
        for entry in commit.entries:
            self.entries += 1
            self.counts[entry.TYPE] = self.counts.get(entry.TYPE, 0) + 1
            for what in self._entry(before, after, entry):
                self._found(after.seq, what)
        for what in _budgets(before, after, commit.entries):
            self._found(after.seq, what)
        for what in _survivors(before, after, commit.entries):
            self._found(after.seq, what)
        if self.commits % self.every == 0:
            self.scan(after)

    def scan(self, fleet: Fleet) -> None:
        """Check the whole cell, and that no job is missing."""
        self.scans += 1
        for what in broken(fleet):
            self._found(fleet.seq, what)
        lost = sorted(self.queued - set(fleet.jobs) - set(fleet.tombstones))
        # Tombstones are dropped after a week; until then none may be missing.
        if fleet.ends_first == 0:
            for name in lost:
                self._found(fleet.seq, f"{name}: neither lives nor has ended")

    def _found(self, seq: int, what: str) -> None:
        self.violations.append(Violation(seq=seq, what=what))

    def _entry(self, before: Fleet, after: Fleet, entry: Entry) -> Iterator[str]:
        if entry.wish is not None:
            key = (_answerer(entry), entry.wish)
            if key in self.wishes:
                yield f"wish {entry.wish} is answered twice"
            self.wishes.add(key)
        if isinstance(entry, JobQueued):
            if entry.job in self.queued:
                yield f"{entry.job}: is queued twice as new"
            self.queued.add(entry.job)
        yield from _recovery(before, after, entry)


def _recovery(before: Fleet, after: Fleet, entry: Entry) -> Iterator[str]:
    match entry:
        case SliceSwapped():
            yield from _evictions(before, entry.evicted)
            yield from _swap(entry)
        case SliceMoved():
            yield from _evictions(before, entry.evicted)
        case DefragPlanned():
            yield from _evictions(before, [victim.job for victim in entry.victims])
            yield from _homes(after, entry)
        case _:
            pass


def _answerer(entry: Entry) -> str:
    return entry.TYPE.partition(".")[0] if entry.TYPE.startswith("node.") else "placer"


def _evictions(before: Fleet, names: Any) -> Iterator[str]:
    for name in names:
        job = before.jobs.get(name)
        if job is None:
            continue  # queued and placed in the same commit: legality has looked at it
        allowed = job.spec.queue in before.policy.interactive_movable_queues
        if job.spec.job_class is JobClass.INTERACTIVE and not allowed:
            yield f"{name}: interactive work was evicted"
        if not job.spec.restartable or not job.spec.preemptible:
            yield f"{name}: was evicted and is not preemptible and restartable"


def _swap(entry: SliceSwapped) -> Iterator[str]:
    for swap in entry.swaps:
        if swap.new == swap.old:
            yield f"{entry.job}: rank {swap.rank} got the node it fled from"


def _pair(before: Fleet, after: Fleet, name: JobId) -> tuple[Job, Job] | None:
    old, new = before.jobs.get(name), after.jobs.get(name)
    return (old, new) if old is not None and new is not None else None


def _survivors(before: Fleet, after: Fleet, entries: Sequence[Entry]) -> Iterator[str]:
    """Ranks for which no entry of the commit is keep their worker.

    A job that has no nodes after the commit has made room for another one's recovery in it; then
    there is nothing to compare. Ranks may be missing only if an entry takes a slice from the job.
    """
    named: dict[JobId, set[int]] = {}
    fewer: set[JobId] = set()
    for entry in entries:
        if isinstance(entry, SliceSwapped | SliceMoved | SliceRestarted | JobShrunk | JobGrown):
            named.setdefault(entry.job, set()).update(_ranks_of(before, entry))
            fewer |= {entry.job} if isinstance(entry, JobShrunk) else set()
    for name, ranks in named.items():
        pair = _pair(before, after, name)
        if pair is None or not pair[1].slices:
            continue
        old, new = pair
        for rank in old.rank_numbers():
            if rank in ranks or (name in fewer and not new.has_rank(rank)):
                continue
            if not new.has_rank(rank) or old.worker(rank) != new.worker(rank):
                yield f"{name}: rank {rank} lost its process to somebody else's recovery"


def _ranks_of(
    before: Fleet, entry: SliceSwapped | SliceMoved | SliceRestarted | JobShrunk | JobGrown
) -> set[int]:
    """Ranks that the entry gives a new process."""
    match entry:
        case SliceSwapped():
            return {swap.rank for swap in entry.swaps}
        case SliceRestarted():
            return set(entry.ranks)
        case SliceMoved():
            job = before.jobs.get(entry.job)
            parts = job.slices if job is not None else ()
            return {rank for part in parts if part.index == entry.index for rank in _ranks(part)}
        case JobShrunk():
            return set()
        case JobGrown():
            return {rank for part in entry.slices for rank in _ranks_placed(part)}


def _ranks(part: Slice) -> range:
    return range(part.first_rank, part.first_rank + part.size)


def _ranks_placed(part: SlicePlacement) -> range:
    return range(part.first_rank, part.first_rank + part.nodes.bit_count())


def _budgets(before: Fleet, after: Fleet, entries: Sequence[Entry]) -> Iterator[str]:
    """A recovery uses up a retry only if its entry says so; a commit may hold several of a job."""
    charged: dict[JobId, int] = {}
    for entry in entries:
        if isinstance(entry, SliceSwapped | SliceMoved | SliceRestarted | JobShrunk | JobGrown):
            charge = isinstance(entry, SliceRestarted) and entry.charge
            charged[entry.job] = charged.get(entry.job, 0) + charge
    for name, told in charged.items():
        pair = _pair(before, after, name)
        if pair is not None and pair[1].retries - pair[0].retries != told:
            yield f"{name}: a recovery used up a retry"


def _homes(after: Fleet, entry: DefragPlanned) -> Iterator[str]:
    for victim in entry.victims:
        job = after.jobs.get(victim.job)
        if victim.move is VictimMove.QUEUE:
            if job is None or job.state is not JobState.QUEUED:
                yield f"{victim.job}: was evicted by a plan and is not in the queue"
        elif job is None or job.state not in ASSIGNED:
            yield f"{victim.job}: a victim without a home"
    served = after.jobs.get(entry.job)
    if served is None or served.state is not JobState.PLACED:
        yield f"{entry.job}: a plan that did not place it"
