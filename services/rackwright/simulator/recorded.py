"""What a recorded ledger says of the world and not of its policy: jobs with their work, the wishes
of owners, and what happened to nodes and racks. That is what happens again under another policy.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor, inf

from rackwright.core.accounts import loses
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, WoundKind
from rackwright.host.ledgers import Step
from rackwright.wire.entries.job import JobCancelled, JobQueued
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    RackDefined,
    RackDegraded,
    RackHeld,
    RackIsolated,
    RackReleased,
    RackRestored,
    RepairRequested,
)
from rackwright.wire.entries.slice import DefragPlanned, SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId
from rackwright.wire.message import Entry

WORLD = (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    RackDefined,
    RackDegraded,
    RackHeld,
    RackIsolated,
    RackReleased,
    RackRestored,
    RepairRequested,
)
WISHED = (JobQueued, JobCancelled)


@dataclass(slots=True, kw_only=True)
class Work:
    """One job's work: seconds done and kept, and since when it goes on (None: it does not)."""

    done_s: float = 0.0
    since: float | None = None
    finished: bool = False

    def at(self, now: float) -> float:
        """Seconds done at `now`, what is not saved yet included."""
        return self.done_s + (0.0 if self.since is None else now - self.since)


@dataclass(slots=True, kw_only=True)
class Recorded:
    """`fleet` as it was at the sequence from which decisions are made again, `works` of its jobs
    then; `events` of the world and wishes since, by ledger time; `works_end` at the end."""

    start: int
    fleet: Fleet = field(default_factory=Fleet)
    end: float = 0.0
    events: list[tuple[float, Entry]] = field(default_factory=list)
    works: dict[JobId, Work] = field(default_factory=dict)
    works_end: dict[JobId, Work] = field(default_factory=dict)
    placed: dict[JobId, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def read(self, steps: Iterable[Step]) -> None:
        """All of the ledger, in order."""
        for one in steps:
            before, after = one.before, one.folding.fleet
            if not one.folding.void:
                self._follow(before, after)
                if after.seq > self.start:
                    self._take(after, one.commit.entries)
            if after.seq == self.start:
                self.fleet = after
                self.works = {
                    name: Work(done_s=work.done_s, since=work.since)
                    for name, work in self.works_end.items()
                    if name in after.jobs
                }
            self.end = after.time

    def work_s(self, job: Job | JobQueued) -> float:
        """How much work the job has in all: as it says itself, or as it took; endless where the
        record ends before it does."""
        name = job.id if isinstance(job, Job) else job.job
        if job.spec.pretend_s is not None:
            return job.spec.pretend_s
        known = self.works_end.get(name)
        return known.done_s if known is not None and known.finished else inf

    def _follow(self, before: Fleet, after: Fleet) -> None:
        for name in after.touched_jobs:
            old, job = before.jobs.get(name), after.jobs.get(name)
            work = self.works_end.setdefault(name, Work())
            over = old is not None and (loses(old, job, after) or job is None or not works(job))
            if over and old is not None and work.since is not None:
                self._stop(work, old, job, after)
            if job is not None and works(job) and work.since is None:
                work.since = after.time
            placed = job is not None and bool(job.slices)
            if placed and after.seq > self.start:
                self.placed.setdefault(name, after.time)

    @staticmethod
    def _stop(work: Work, old: Job, job: Job | None, after: Fleet) -> None:
        assert work.since is not None
        did = after.time - work.since
        broken = job is not None and any(one.kind is not WoundKind.DRAIN for one in job.wounds)
        if broken or loses(old, job, after):
            interval = old.spec.checkpoint.interval_s
            did = interval * floor(did / interval) if interval else 0.0
        work.done_s += did
        work.since = None
        if job is None:
            stone = after.tombstones.get(old.id)
            work.finished = stone is not None and stone.state is JobState.FINISHED

    def _take(self, after: Fleet, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.counts[entry.TYPE] += 1
            self.counts["preempted"] += preempted(entry)
            again = isinstance(entry, (*WORLD, *WISHED))
            if again and not _of_the_policy(entry):
                self.events.append((after.time, entry))


def works(job: Job) -> bool:
    """Do all its ranks work?"""
    return (
        bool(job.slices)
        and not job.wounds
        and job.state in (JobState.RUNNING, JobState.FINISHING)
        and job.started == job.membership
    )


def preempted(entry: Entry) -> int:
    """Jobs that this entry puts off their nodes for another one."""
    match entry:
        case SliceSwapped(evicted=names) | SliceMoved(evicted=names):
            return len(names)
        case DefragPlanned(victims=victims):
            return len(victims)
        case _:
            return 0


def _of_the_policy(entry: Entry) -> bool:
    """A cordon that a service decided (for a suspect job, or a swap that was asked for)."""
    return isinstance(entry, NodeCordoned) and entry.cause is not None
