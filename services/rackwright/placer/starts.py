"""Ranks that do not start: after `swap_start_s` with open gates the node has failed the job; so it
has when the other ranks stayed, and one that got a new process is not ready `rejoin_s` later.

The spare-manager, who hears commits only, then takes the next spare.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, Slice, WoundKind
from rackwright.core.machine import Event
from rackwright.core.policy.triage import START_TIMEOUT
from rackwright.placer.reports import is_up
from rackwright.placer.state import State
from rackwright.wire.entries.job import JobFailed, WorkerFailed
from rackwright.wire.ids import JobId, WorkerId
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import WorkerState

LOOK_S = 5.0  # gates open without an entry, so a job whose ranks wait is looked at so often


def to_start(state: State, name: JobId, mono: float) -> None:
    """Ranks of this job are to start."""
    if name not in state.startable:
        state.startable[name] = {}
        heappush(state.starts, (mono, name))


def overdue(
    state: State, fleet: Fleet, event: Event
) -> Iterator[tuple[JobId, tuple[WorkerFailed | JobFailed, ...]]]:
    """Verdicts on ranks that could have started long ago, by job."""
    while state.starts and state.starts[0][0] <= event.mono:
        _, name = heappop(state.starts)
        job = fleet.jobs.get(name)
        if job is None or name not in fleet.starting:
            state.startable.pop(name, None)
            continue
        late, again = _look(state, fleet, job, event)
        heappush(state.starts, (again, name))
        if late and not job.spec.restartable:
            yield name, (_failed(job, late[0]),)
        elif late:
            yield name, tuple(_timed_out(job, rank) for rank in late)


def _look(state: State, fleet: Fleet, job: Job, event: Event) -> tuple[list[int], float]:
    """Ranks that are overdue, and when to look again."""
    patience = fleet.policy.swap_start_s
    known = state.startable.setdefault(job.id, {})
    wounded = {wound.rank for wound in job.wounds if wound.kind is not WoundKind.DRAIN}
    late, again = [], event.mono + LOOK_S
    # Ranks that stayed wait for the new ones. Where none did, nobody waits, and how long the work
    # takes to be ready is its owner's affair.
    awaited = any(one <= job.started for part in job.slices for one in part.incarnations)
    for part in job.slices:
        for rank in range(part.first_rank, part.first_rank + part.size):
            if part.incarnations[rank - part.first_rank] <= job.started or rank in wounded:
                continue
            worker = part.worker(job.id, rank)
            if _is_there(state, worker):
                if awaited and not _rejoins(state, fleet, job, worker, event.mono):
                    late.append(rank)
            elif _open(state, fleet, part, rank):
                since = known.setdefault(worker, event.mono)
                if event.mono - since >= patience:
                    late.append(rank)
    return late, again


def _rejoins(state: State, fleet: Fleet, job: Job, worker: WorkerId, mono: float) -> bool:
    """Is this rank ready, or has it time yet?"""
    known = state.startable.setdefault(job.id, {})
    status = state.reports.status_of(worker)
    over = status is None or status.state is not WorkerState.RUNNING
    if is_up(status) or over:
        known.pop(worker, None)
        return True
    return mono - known.setdefault(worker, mono) < fleet.policy.rejoin_s


def _is_there(state: State, worker: WorkerId) -> bool:
    status = state.reports.status_of(worker)
    return status is not None and status.state is not WorkerState.PREPARED


def _open(state: State, fleet: Fleet, part: Slice, rank: int) -> bool:
    """Have all earlier workers of this rank and its GPUs ended?"""
    return all(
        worker not in fleet.leaving or state.reports.has_ended(worker)
        for worker in part.gates_of(rank)
    )


def _timed_out(job: Job, rank: int) -> WorkerFailed:
    reason = Reason(code=START_TIMEOUT, numbers={"rank": rank})
    return WorkerFailed(job=job.id, rank=rank, worker=job.worker(rank), reason=reason)


def _failed(job: Job, rank: int) -> JobFailed:
    return JobFailed(job=job.id, reason=Reason(code=START_TIMEOUT, numbers={"rank": rank}))
