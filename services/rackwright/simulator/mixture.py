"""Habits of owners: which jobs are interactive, restartable, urgent, and how they save their state.

Traces do not say. The shares are an assumption, drawn with a seed by job, so that every policy sees
the same; they are those with which the recorded workloads of `benchmarks/trace` are run.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rackwright.simulator.speed import COMMUNICATION
from rackwright.simulator.workload import DAY, HOUR, LEAST_S, Row, SimJob
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass

# (weight, checkpoint interval in s or None, saves when told)
LARGE_HABITS = ((45, 1800.0, True), (25, 1800.0, False), (20, 3600.0, True), (10, 7200.0, False))
SMALL_HABITS = ((40, 7200.0, True), (30, 7200.0, False), (20, 14400.0, False), (10, None, False))
PRIORITIES = ((10, 30), (80, 50), (10, 70))  # (weight, priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Shares that a trace does not tell. `large_gpus`: from this size on a job is a large one."""

    seed: int
    interactive: float = 0.2  # of small jobs that fit one node and end within interactive_s
    interactive_s: float = 12 * HOUR
    unrestartable: float = 0.05  # of small batch jobs that end within a day
    large_gpus: int = 64
    gpus_per_node: int = 4
    restart_s: float = 600.0
    owners: int = 40

    def job(self, row: Row) -> SimJob:
        """The job of a row, with its own draw from the seed and its name."""
        rng = random.Random(f"{self.seed}/{row.name}/{row.row}")
        large = row.gpus >= self.large_gpus
        interval, on_notice = _habit(LARGE_HABITS if large else SMALL_HABITS, rng)
        ((_, priority),) = rng.choices(PRIORITIES, [weight for weight, _ in PRIORITIES])
        one_node = row.gpus <= self.gpus_per_node
        work = max(LEAST_S, row.duration_s)
        owner = f"user-{rng.randrange(self.owners)}"
        name = JobId(f"{row.kind or 'job'}-{row.row}")
        if one_node and work <= self.interactive_s and rng.random() < self.interactive:
            return SimJob(
                id=name,
                submit_s=row.submit_s,
                gpus=row.gpus,
                work_s=work,
                job_class=JobClass.INTERACTIVE,
                checkpoint_s=None,
                restart_s=self.restart_s,
                owner=owner,
            )
        short = not large and work <= DAY
        return SimJob(
            id=name,
            submit_s=row.submit_s,
            gpus=row.gpus,
            work_s=work,
            priority=priority,
            restartable=not (short and rng.random() < self.unrestartable),
            checkpoint_s=interval,
            saves_on_notice=on_notice,
            restart_s=self.restart_s,
            communication=0.0 if one_node else COMMUNICATION,
            owner=owner,
        )


def jobs(rows: Iterable[Row], habits: Habits) -> Iterator[SimJob]:
    """The jobs of a trace, one by one; submit times from the first on."""
    first: float | None = None
    for row in rows:
        if first is None:
            first = row.submit_s
        job = habits.job(row)
        yield _shifted(job, first)


def _shifted(job: SimJob, first: float) -> SimJob:
    return replace(job, submit_s=job.submit_s - first) if first else job


def _habit(
    habits: Sequence[tuple[int, float | None, bool]], rng: random.Random
) -> tuple[float | None, bool]:
    ((_, interval, on_notice),) = rng.choices(habits, [weight for weight, _, _ in habits])
    return interval, on_notice
