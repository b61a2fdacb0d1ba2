"""First signs of life after a recovery: a new worker that runs, and the job's first progress.

The ledger knows of neither, so they are counted from what nodes say while this process hears them.
"""

from dataclasses import dataclass, field

from immutables import Map

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Folded, StatusSeen
from rackwright.core.measures import Family
from rackwright.wire.entries.job import JobRequeued, JobShrunk
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, WorkerId, parse_worker
from rackwright.wire.signals import WorkerState

MAX_AWAITED = 20_000
Answered = SliceSwapped | SliceMoved | SliceRestarted


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """Since when (ledger time of the first wound), by which rung, and what of before `after` does
    not count."""

    since: float
    rung: str
    after: float


@dataclass(slots=True, kw_only=True)
class Firsts:
    """to_start: the first wound of a job to a single new worker running; to_progress: to the first
    progress that a rank reports after the recovery. By rung, both in seconds of the server's clock.

    `wounded` is as it was before the last commit; `workers` and `jobs` are waited for.
    """

    to_start: Family = field(default_factory=Family)
    to_progress: Family = field(default_factory=Family)
    wounded: Map[JobId, float] = Map()
    workers: dict[WorkerId, Awaited] = field(default_factory=dict)
    jobs: dict[JobId, Awaited] = field(default_factory=dict)

    def folded(self, fleet: Fleet, event: Folded) -> None:
        """A commit; `fleet` is after it."""
        for entry in () if event.void else event.entries:
            match entry:
                case SliceSwapped() | SliceMoved() | SliceRestarted() | JobRequeued() | JobShrunk():
                    self._answered(fleet, entry)
                case _:
                    pass
        for name in fleet.touched_jobs:
            if name not in fleet.jobs:
                self.jobs.pop(name, None)
        self.wounded = fleet.wounded

    def _answered(self, fleet: Fleet, entry: Answered | JobRequeued | JobShrunk) -> None:
        since, job = self.wounded.get(entry.job), fleet.jobs.get(entry.job)
        rung = next((one.rung.value for one in entry.rungs if one.taken), None)
        if since is None or job is None or rung is None:
            return
        awaited = Awaited(since=since, rung=rung, after=fleet.time)
        known = self.jobs.get(job.id)
        self.jobs[job.id] = awaited if known is None else known
        if isinstance(entry, Answered):
            part = job.part(entry.index)
            for turn, incarnation in enumerate(part.incarnations):
                if incarnation == entry.membership:
                    self.workers[part.worker(job.id, part.first_rank + turn)] = awaited
        while len(self.workers) > MAX_AWAITED:
            del self.workers[next(iter(self.workers))]

    def heard(self, event: StatusSeen) -> None:
        """What a node says of its workers."""
        if not self.workers and not self.jobs:
            return
        for worker in event.status.workers:
            awaited = self.workers.get(worker.worker)
            if awaited is not None and worker.state is not WorkerState.PREPARED:
                del self.workers[worker.worker]
                if worker.state is WorkerState.RUNNING:
                    self.to_start.add((awaited.rung,), event.at - awaited.since)
            job = parse_worker(worker.worker)[0]
            hoped = self.jobs.get(job)
            if hoped is not None and (worker.progress_at or 0.0) > hoped.after:
                del self.jobs[job]
                self.to_progress.add((hoped.rung,), event.at - hoped.since)
