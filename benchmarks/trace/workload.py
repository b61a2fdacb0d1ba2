"""Two recorded workloads on one cell: large jobs of one trace, small ones of another beside them.

The files have a header with `submit_s`, `gpus` and `duration_s`, in seconds. Submit times of the
large jobs are compressed more than their durations, so that the recorded load of another, larger
machine becomes one that this cell is busy with; small jobs fill it up to the load asked for.
"""

import csv
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint, JobClass, JobSpec

GPUS = 4  # of a node
HOUR = 3600.0
DAY = 86_400.0
RESTART_S = 600.0
NOTICE_S = 60.0  # to save when told to

# Habits of owners: (weight, checkpoint interval in s or None, saves on notice).
LARGE_HABITS = ((45, 1800.0, True), (25, 1800.0, False), (20, 3600.0, True), (10, 7200.0, False))
SMALL_HABITS = ((40, 7200.0, True), (30, 7200.0, False), (20, 14400.0, False), (10, None, False))
NOT_RESTARTABLE = 0.05  # of the small batch jobs that end within PINNED_S
PINNED_S = DAY


class BadTrace(Exception):
    """A file that is not there or does not hold what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job as recorded."""

    name: str
    submit_s: float
    gpus: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """One job to submit at `submit_s` of the trace; all times are the trace's."""

    id: JobId
    submit_s: float
    gpus: int
    duration_s: float
    job_class: JobClass = JobClass.BATCH
    restartable: bool = True
    interval_s: float | None = 1800.0
    saves_on_notice: bool = False

    @property
    def nodes(self) -> int:
        """Whole nodes it takes; 0 for part of one."""
        return 0 if self.gpus < GPUS else -(-self.gpus // GPUS)

    @property
    def work(self) -> float:
        """GPU-seconds of the GPUs it takes."""
        return (self.nodes * GPUS or self.gpus) * self.duration_s

    def spec(self, speed: float) -> JobSpec:
        """The job with every time divided by `speed`, its workers pretended."""
        checkpoint = Checkpoint(
            interval_s=None if self.interval_s is None else self.interval_s / speed,
            restart_s=RESTART_S / speed,
            on_notice_s=NOTICE_S / speed if self.saves_on_notice else None,
        )
        return JobSpec(
            name=self.id,
            nodes=self.nodes or None,
            gpus=None if self.nodes else self.gpus,
            job_class=self.job_class,
            restartable=self.restartable,
            checkpoint=checkpoint,
            grace_s=0.0,
            pretend_s=max(self.duration_s / speed, 0.001),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """How the two traces become one workload. `window_s` of the small trace, from a seeded start.

    `compress`: by how much more than durations the large jobs' submit times are compressed.
    """

    installed_gpus: int
    load: float = 0.75
    compress: float = 6.5
    small_gpus: int = 32
    interactive: float = 0.2
    interactive_s: float = 12 * HOUR
    longest_small_s: float = 7 * DAY
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs by submit time. `span_s`: to the last large submit, over which the load is counted."""

    jobs: tuple[TimedJob, ...]
    span_s: float
    load: float
    large_load: float

    @property
    def end_s(self) -> float:
        """When the last job would end if nobody waited."""
        return max(job.submit_s + job.duration_s for job in self.jobs)


def read(path: Path) -> list[Row]:
    """The rows of a trace. Raises BadTrace."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = [_row(fields) for fields in csv.DictReader(file)]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise BadTrace(f"{path}: needs columns job, submit_s, gpus, duration_s: {error}") from error
    if not rows:
        raise BadTrace(f"{path}: holds no jobs")
    return sorted(rows, key=lambda row: (row.submit_s, row.name))


def _row(fields: dict[str, str]) -> Row:
    return Row(
        name=fields["job"],
        submit_s=float(fields["submit_s"]),
        gpus=int(fields["gpus"]),
        duration_s=float(fields["duration_s"]),
    )


def mixed(large: Sequence[Row], small: Sequence[Row], how: Mixture) -> Workload:
    """The workload. Raises BadTrace where the small trace is too short or too light."""
    rng = random.Random(how.seed)
    first = large[0].submit_s
    jobs = [_large(row, first, how, rng) for row in large]
    span = max(job.submit_s for job in jobs)
    offered = how.installed_gpus * span
    large_load = sum(job.work for job in jobs) / offered
    end = max(job.submit_s + job.duration_s for job in jobs)
    window = _window(small, span, how, rng)
    candidates = [
        _small(row, start, rng)
        for row, start in window
        if row.submit_s - start + row.duration_s <= end
    ]
    rng.shuffle(candidates)
    chosen = _filling(candidates, (how.load - large_load) * offered)
    jobs += _with_interactive(chosen, how, rng)
    load = sum(job.work for job in jobs) / offered
    jobs.sort(key=lambda job: (job.submit_s, job.id))
    return Workload(jobs=tuple(jobs), span_s=span, load=load, large_load=large_load)


def part(whole: Workload, begin_s: float, span_s: float) -> Workload:
    """The jobs of a part of the time, for a trial; those that would end long after it are left out.

    The loads said are those of the whole.
    """
    jobs = tuple(
        replace(job, submit_s=job.submit_s - begin_s)
        for job in whole.jobs
        if 0 <= job.submit_s - begin_s <= span_s and job.duration_s <= span_s / 2
    )
    return Workload(jobs=jobs, span_s=span_s, load=whole.load, large_load=whole.large_load)


def _filling(candidates: Iterable[TimedJob], wanted: float) -> list[TimedJob]:
    """So many of them that their work is what is wanted."""
    chosen: list[TimedJob] = []
    for job in candidates:
        if wanted <= 0:
            return chosen
        chosen.append(job)
        wanted -= job.work
    raise BadTrace(f"the small trace lacks {wanted / HOUR:.0f} GPU-hours for the load asked for")


def _window(
    rows: Sequence[Row], span: float, how: Mixture, rng: random.Random
) -> list[tuple[Row, float]]:
    """Small jobs submitted within `span` of a seeded start, with that start."""
    last = rows[-1].submit_s
    if last < span:
        raise BadTrace(f"the small trace spans {last / DAY:.1f} d, {span / DAY:.1f} are needed")
    start = rng.uniform(rows[0].submit_s, last - span)
    return [
        (row, start)
        for row in rows
        if start <= row.submit_s <= start + span
        and row.gpus <= how.small_gpus
        and row.duration_s <= how.longest_small_s
    ]


def _large(row: Row, first: float, how: Mixture, rng: random.Random) -> TimedJob:
    interval, on_notice = _habit(LARGE_HABITS, rng)
    return TimedJob(
        id=JobId(f"large-{row.name}"),
        submit_s=(row.submit_s - first) / how.compress,
        gpus=row.gpus,
        duration_s=row.duration_s,
        interval_s=interval,
        saves_on_notice=on_notice,
    )


def _small(row: Row, start: float, rng: random.Random) -> TimedJob:
    interval, on_notice = _habit(SMALL_HABITS, rng)
    return TimedJob(
        id=JobId(f"small-{row.name}"),
        submit_s=row.submit_s - start,
        gpus=row.gpus,
        duration_s=row.duration_s,
        restartable=row.duration_s > PINNED_S or rng.random() >= NOT_RESTARTABLE,
        interval_s=interval,
        saves_on_notice=on_notice,
    )


def _with_interactive(jobs: list[TimedJob], how: Mixture, rng: random.Random) -> list[TimedJob]:
    """So large a share of them becomes interactive: all of these on one node and not for long."""
    may = [job.id for job in jobs if job.gpus <= GPUS and job.duration_s <= how.interactive_s]
    chosen = set(rng.sample(may, min(len(may), round(how.interactive * len(jobs)))))
    return [_interactive(job) if job.id in chosen else job for job in jobs]


def _interactive(job: TimedJob) -> TimedJob:
    return replace(
        job,
        job_class=JobClass.INTERACTIVE,
        restartable=True,
        interval_s=None,
        saves_on_notice=False,
    )


def _habit(
    habits: Sequence[tuple[int, float | None, bool]], rng: random.Random
) -> tuple[float | None, bool]:
    ((_, interval, on_notice),) = rng.choices(habits, [weight for weight, _, _ in habits])
    return interval, on_notice
