"""Jobs that have stopped making progress, where their owner has said how long that may last.

A rank tells of progress through its node's status. When none of a job has for
`progress_timeout_s`, all of them are given up: the ladder starts them anew where they are. It is
the job's own doing as far as anybody knows, so it costs a try of its retry budget, once.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import Event
from rackwright.core.policy.triage import HANG, HANG_PEER
from rackwright.placer.state import State
from rackwright.wire.entries.job import JobFailed, WorkerFailed
from rackwright.wire.ids import JobId
from rackwright.wire.reasons import Reason

LOOK_S = 5.0


def to_watch(state: State, job: Job, mono: float) -> None:
    """This job has nodes; does its owner want to know when it hangs?"""
    if job.spec.progress_timeout_s is not None and job.id not in state.watched:
        state.watched.add(job.id)
        heappush(state.hangs, (mono, job.id))


def hanging(
    state: State, fleet: Fleet, event: Event
) -> Iterator[tuple[JobId, tuple[WorkerFailed | JobFailed, ...]]]:
    """Verdicts on jobs of which nobody has told of progress for too long."""
    while state.hangs and state.hangs[0][0] <= event.mono:
        _, name = heappop(state.hangs)
        job = fleet.jobs.get(name)
        if job is None or not job.slices or job.spec.progress_timeout_s is None:
            state.watched.discard(name)
            continue
        left = _left(state, job, job.spec.progress_timeout_s, event.now)
        heappush(state.hangs, (event.mono + max(left, LOOK_S), name))
        if left <= 0.0:
            yield name, _given_up(state, job, job.spec.progress_timeout_s, event.now)


def _left(state: State, job: Job, patience: float, now: float) -> float:
    """Seconds until it hangs; a job whose ranks are not all up is looked at when they are."""
    if not job.all_run:
        return patience
    return max(_progress(state, job, rank, now) for rank in _ranks(job)) + patience - now


def _ranks(job: Job) -> Iterator[int]:
    for part in job.slices:
        yield from range(part.first_rank, part.first_rank + part.size)


def _progress(state: State, job: Job, rank: int, now: float) -> float:
    """When this rank last told of progress, at least since all ranks were up."""
    since = job.started_at or now
    status = state.reports.status_of(job.worker(rank))
    if status is None or status.progress_at is None:
        return since
    return max(since, min(status.progress_at, now))


def _given_up(
    state: State, job: Job, patience: float, now: float
) -> tuple[WorkerFailed | JobFailed, ...]:
    """The rank that has been silent for longest is named first, and pays."""
    ranks = sorted(_ranks(job), key=lambda rank: (_progress(state, job, rank, now), rank))
    numbers: dict[str, int | float | str] = {
        "rank": ranks[0],
        "since_s": round(now - _progress(state, job, ranks[-1], now), 3),
        "limit_s": patience,
        "retries": job.retries,
        "budget": job.spec.retry_budget,
    }
    reason = Reason(code=HANG, numbers=numbers)
    if not job.spec.restartable or job.retries >= job.spec.retry_budget:
        return (JobFailed(job=job.id, reason=reason),)
    return tuple(
        WorkerFailed(
            job=job.id,
            rank=rank,
            worker=job.worker(rank),
            reason=reason if rank == ranks[0] else Reason(code=HANG_PEER),
        )
        for rank in ranks
    )
