"""Running jobs that lack slices or replicas: each is before the queued jobs of its priority."""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.machine import Offer
from rackwright.core.policy.regrow import grow
from rackwright.core.policy.starvation import Kept, kept_from
from rackwright.placer.jobqueue import JobQueue
from rackwright.wire.entries.job import JobGrown
from rackwright.wire.ids import JobId
from rackwright.wire.message import MAX_ENTRIES


@dataclass(slots=True)
class Growth:
    """One turn's growth. `left` are the jobs not tried yet, the last is the next."""

    queue: JobQueue
    fleet: Fleet
    left: list[tuple[int, JobId]] = field(default_factory=list)
    entries: list[JobGrown] = field(default_factory=list)

    def __post_init__(self) -> None:
        jobs = self.fleet.jobs
        short = (name for name in self.queue.short if name in jobs)
        self.left = sorted((-jobs[name].spec.priority, name) for name in short)
        self.left.reverse()

    def up_to(self, priority: int, trial: Fleet, kept: list[Kept], now: float) -> Fleet:
        """Try those of this priority or a higher; returns the fleet with what they got."""
        while self.left and -self.left[-1][0] >= priority and len(self.entries) < MAX_ENTRIES:
            name = self.left.pop()[1]
            job = trial.jobs.get(name)
            entry = None
            if job is not None:
                entry = grow(trial, job, now, kept_from(trial, kept, job, now))
            if entry is None:
                self.queue.short.discard(name)
                self.queue.short_in_vain.add(name)
                continue
            self.entries.append(entry)
            trial = apply(trial, entry)
        return trial

    def offers(self) -> list[Offer]:
        """What they are to get."""
        return [Offer(entries=tuple(self.entries))] if self.entries else []
