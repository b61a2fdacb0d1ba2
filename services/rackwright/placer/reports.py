"""What nodes say of workers: the last value of each, and counts by job.

A report is old if and only if its worker is not the current one of its rank; so all of them are
kept as they are, and only who judges a job compares.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import StatusSeen
from rackwright.wire.ids import JobId, MessageId, NodeId, SessionId, WorkerId, parse_worker
from rackwright.wire.quick import quick
from rackwright.wire.signals import ENDED, WorkerState, WorkerStatus


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A worker that did not end well, as its node said in `session`. `at` is the server's time of
    the first report of it.
    """

    worker: WorkerId
    rank: int
    status: WorkerStatus
    at: float
    session: SessionId


@dataclass(slots=True, kw_only=True)
class Tally:
    """Of one job: workers that are up (or have ended well), that ended well, that did not."""

    up: int = 0
    done: int = 0
    bad: dict[WorkerId, Exit] = field(default_factory=dict)


class Last(NamedTuple):
    """The last value of a node."""

    session: SessionId
    workers: tuple[WorkerStatus, ...]


class Said(NamedTuple):
    """What a node says of a worker in its session, and the server's time since when it is."""

    status: WorkerStatus
    at: float
    session: SessionId


@dataclass(slots=True, kw_only=True)
class Reports:
    """`dirty` are the jobs of which something new is known, by the message that said it.

    `offered` are those whose verdict no entry has taken yet: a copy that leaves it to its betters
    has to say it on every turn until somebody has. `saved` is what was found of when a job saved
    last, with the membership it was found for, until one of its workers says something else.
    `idle` are jobs of which a node has said since the last look that GPUs of a rank are idle.
    """

    nodes: dict[NodeId, Last] = field(default_factory=dict)
    workers: dict[WorkerId, Said] = field(default_factory=dict)
    tallies: dict[JobId, Tally] = field(default_factory=dict)
    dirty: dict[JobId, MessageId | None] = field(default_factory=dict)
    offered: dict[JobId, MessageId | None] = field(default_factory=dict)
    saved: dict[JobId, tuple[int, float | None]] = field(default_factory=dict)
    idle: dict[JobId, None] = field(default_factory=dict)

    def see(self, fleet: Fleet, event: StatusSeen) -> None:
        """The last value of one node."""
        status = event.status
        known = self.nodes.get(status.node)
        before = () if known is None else known.workers
        again = known is not None and known.session == status.session
        if again and status.workers == before:
            return
        self.nodes[status.node] = Last(status.session, status.workers)
        there = {worker.worker for worker in status.workers}
        for worker in before:
            if worker.worker not in there:
                self._unsaved(worker)
                self._count(fleet, self.workers.pop(worker.worker, None), None, event.id)
        for worker in status.workers:
            old = self.workers.get(worker.worker)
            same = old is not None and _what(old.status) == _what(worker)
            at = event.at if old is None or not same else old.at
            said = Said(worker, at, status.session)
            self.workers[worker.worker] = said
            if old is None or old.status.checkpoint_at != worker.checkpoint_at:
                self._unsaved(worker)
            if worker.idle_since is not None:
                self.idle.setdefault(parse_worker(worker.worker)[0])
            if not (same and again):
                self._count(fleet, old, said, event.id)

    def trust(self, fleet: Fleet, node: NodeId) -> None:
        """What this node has said counts from now on: its session is admitted, or no longer in
        doubt.
        """
        last = self.nodes.get(node)
        for worker in () if last is None else last.workers:
            name = parse_worker(worker.worker)[0]
            if name in self.tallies and name in fleet.jobs:
                self.dirty.setdefault(name, fleet.last_id)

    def forget(self, name: JobId) -> None:
        """The job has ended."""
        self.tallies.pop(name, None)
        self.dirty.pop(name, None)
        self.offered.pop(name, None)
        self.saved.pop(name, None)

    def know(self, job: Job) -> None:
        """A job has nodes: count what was said of its workers before it was known."""
        if job.id in self.tallies:
            return
        self.tallies[job.id] = Tally()
        for part in job.slices:
            for rank in range(part.first_rank, part.first_rank + part.size):
                said = self.workers.get(part.worker(job.id, rank))
                if said is not None:
                    self._tally(job.id, rank, said)

    def status_of(self, worker: WorkerId) -> WorkerStatus | None:
        """What is said of a worker, None if nothing is."""
        said = self.workers.get(worker)
        return None if said is None else said.status

    def has_ended(self, worker: WorkerId) -> bool:
        """Has its node said that it has ended?"""
        status = self.status_of(worker)
        return status is not None and status.state in ENDED

    def _unsaved(self, worker: WorkerStatus) -> None:
        if self.saved:
            self.saved.pop(parse_worker(worker.worker)[0], None)

    def saved_at(self, job: Job) -> float | None:
        """When it saved its last checkpoint; None: none of its ranks has told."""
        known = self.saved.get(job.id)
        if known is None or known[0] != job.membership:
            told = (self.status_of(job.worker(rank)) for rank in job.rank_numbers())
            times = [one.checkpoint_at for one in told if one is not None]
            found = min((at for at in times if at is not None), default=None)
            known = self.saved[job.id] = (job.membership, found)
        return known[1]

    def _count(self, fleet: Fleet, old: Said | None, new: Said | None, cause: MessageId) -> None:
        seen = new or old
        if seen is None:
            return
        name, rank, _ = parse_worker(seen.status.worker)
        if name not in fleet.jobs:
            return
        if old is not None:
            self._untally(name, old.status)
        if new is not None:
            self._tally(name, rank, new)
        self.dirty[name] = cause

    def _tally(self, name: JobId, rank: int, said: Said) -> None:
        tally = self.tallies.setdefault(name, Tally())
        status = said.status
        up, done, bad = _what(status)
        tally.up += up
        tally.done += done
        if bad:
            end = Exit(
                worker=status.worker,
                rank=rank,
                status=status,
                at=said.at,
                session=said.session,
            )
            tally.bad[status.worker] = end

    def _untally(self, name: JobId, status: WorkerStatus) -> None:
        tally = self.tallies.setdefault(name, Tally())
        up, done, _ = _what(status)
        tally.up -= up
        tally.done -= done
        tally.bad.pop(status.worker, None)


class Saved(Mapping[JobId, float]):
    """When jobs saved their last checkpoint: the oldest of what their ranks tell of, since one is
    whole when every rank that writes it has. Found when it is asked for.
    """

    def __init__(self, reports: Reports, fleet: Fleet) -> None:
        self.reports = reports
        self.fleet = fleet

    def __getitem__(self, name: JobId) -> float:
        found = self.reports.saved_at(self.fleet.jobs[name])
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[JobId]:
        return (name for name in self.fleet.jobs if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def is_done(status: WorkerStatus | None) -> bool:
    """Has this worker ended well?"""
    return status is not None and status.state is WorkerState.EXITED and status.code == 0


def is_up(status: WorkerStatus | None) -> bool:
    """Does this worker run and is it ready, or has it run and ended well?"""
    if status is None:
        return False
    return (status.state is WorkerState.RUNNING and status.ready) or is_done(status)


def _what(status: WorkerStatus) -> tuple[bool, bool, bool]:
    """(is up, has ended well, has ended otherwise)"""
    done = is_done(status)
    return is_up(status), done, status.state in ENDED and not done
