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
from rackwright.core.jobs import ASSIGNED, Job, JobState
from rackwright.wire.entries.job import JobGrown, JobQueued, JobShrunk
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
            yield from _swap(before, after, entry)
        case SliceMoved():
            yield from _evictions(before, entry.evicted)
            yield from _others_unchanged(before, after, entry.job, entry.index, None)
        case SliceRestarted():
            changed = set(entry.ranks)
            yield from _others_unchanged(before, after, entry.job, entry.index, changed)
        case JobShrunk() | JobGrown():
            yield from _the_rest_unchanged(before, after, entry.job)
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


def _swap(before: Fleet, after: Fleet, entry: SliceSwapped) -> Iterator[str]:
    for swap in entry.swaps:
        if swap.new == swap.old:
            yield f"{entry.job}: rank {swap.rank} got the node it fled from"
    changed = {swap.rank for swap in entry.swaps}
    yield from _others_unchanged(before, after, entry.job, entry.index, changed)


def _pair(before: Fleet, after: Fleet, name: JobId) -> tuple[Job, Job] | None:
    old, new = before.jobs.get(name), after.jobs.get(name)
    return (old, new) if old is not None and new is not None else None


def _others_unchanged(
    before: Fleet, after: Fleet, name: JobId, index: int, changed: set[int] | None
) -> Iterator[str]:
    """Ranks outside the slice, and in it those not in `changed` (None: all), keep their worker.

    A commit that holds several entries of one job raised its membership by more than one; then the
    ranks of each cannot be told apart here, and legality has looked at every entry by itself. The
    same holds if a later entry of the commit has taken the job's nodes, for another one's recovery.
    """
    pair = _pair(before, after, name)
    if pair is None:
        return
    old, new = pair
    steps = new.membership - old.membership
    if steps != 1 or len(old.slices) != len(new.slices):
        return
    for part, fresh in zip(old.slices, new.slices, strict=True):
        for rank in range(part.first_rank, part.first_rank + part.size):
            inside = part.index == index and (changed is None or rank in changed)
            if not inside and part.worker(name, rank) != fresh.worker(name, rank):
                yield f"{name}: rank {rank} lost its process to somebody else's recovery"


def _the_rest_unchanged(before: Fleet, after: Fleet, name: JobId) -> Iterator[str]:
    """Ranks that are there before and after keep their worker."""
    pair = _pair(before, after, name)
    if pair is None or pair[1].membership - pair[0].membership != 1:
        return
    old, new = pair
    for rank in old.rank_numbers():
        if new.has_rank(rank) and old.worker(rank) != new.worker(rank):
            yield f"{name}: rank {rank} lost its process while others left or came"


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
