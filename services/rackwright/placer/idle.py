"""Interactive work whose GPUs stand idle: its owner is told, and where its queue says so it ends.

Since when they do is what its nodes tell; that the owner was told is in the ledger. Work of which
not every rank is said to be idle is looked at again when a node says so, or the ledger tells of it.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import Event
from rackwright.placer.state import State
from rackwright.wire.entries.job import JobFailed, JobNotified
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass
from rackwright.wire.reasons import Reason

LOOK_S = 60.0  # between two looks at work that is idle


def to_look(state: State, job: Job, mono: float) -> None:
    """This job has nodes; is it of the kind that is looked at?"""
    if job.spec.job_class is JobClass.INTERACTIVE and job.id not in state.looked:
        state.looked.add(job.id)
        heappush(state.idles, (mono, job.id))


def idling(
    state: State, fleet: Fleet, event: Event
) -> Iterator[tuple[JobId, tuple[JobNotified | JobFailed, ...]]]:
    """What is to be said of jobs whose GPUs have been idle for too long."""
    _told(state, fleet, event)
    while state.idles and state.idles[0][0] <= event.mono:
        _, name = heappop(state.idles)
        job = fleet.jobs.get(name)
        since = None if job is None else _since(state, job, event.now)
        if job is None or since is None:
            state.looked.discard(name)
            continue
        heappush(state.idles, (event.mono + LOOK_S, name))
        if event.now - since >= fleet.policy.idle_gpus_s:
            said = _said(fleet, job, since, event.now)
            if said is not None:
                yield name, (said,)


def _told(state: State, fleet: Fleet, event: Event) -> None:
    """Look at jobs of which a rank has just been said to be idle."""
    for name in state.reports.idle:
        job = fleet.jobs.get(name)
        if job is not None:
            to_look(state, job, event.mono)
    state.reports.idle.clear()


def _since(state: State, job: Job, now: float) -> float | None:
    """Since when no GPU of any rank is used; None: one is, or nobody says."""
    if not job.slices or not job.all_run:
        return None
    last = job.started_at or now
    for rank in job.rank_numbers():
        status = state.reports.status_of(job.worker(rank))
        if status is None or status.idle_since is None:
            return None
        last = max(last, min(status.idle_since, now))
    return last


def _said(fleet: Fleet, job: Job, since: float, now: float) -> JobNotified | JobFailed | None:
    policy = fleet.policy
    ends = job.spec.queue in policy.idle_stop_queues and not job.pinned_by
    notice_s = policy.idle_notice_s if ends else 0.0
    numbers: dict[str, int | float | str] = {"idle_s": round(now - since, 1)}
    if job.idle_told is None or job.idle_told < since:
        if ends:
            numbers["notice_s"] = notice_s
        why = Reason(code="gpus.idle", numbers=numbers)
        return JobNotified(job=job.id, notice_s=notice_s, idle_s=now - since, reason=why)
    if ends and now - job.idle_told >= notice_s:
        return JobFailed(job=job.id, reason=Reason(code="gpus.idle-ended", numbers=numbers))
    return None
