"""Telling owners why their jobs wait: when the cause changes, or its numbers by a quarter."""

from heapq import heappop, heappush

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.machine import Effect, Event, Offer, WakeAt
from rackwright.core.policy.causes import why_blocked
from rackwright.placer.jobqueue import Shape
from rackwright.placer.reports import Saved
from rackwright.placer.state import Judged, State
from rackwright.wire.entries.job import JobBlocked
from rackwright.wire.ids import JobId
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.reasons import Reason

FRESH_S = 1.0  # a cause found for one job of a shape serves the others for so long
UNTRIED_S = 0.1  # a job that was not tried yet is looked at again
LOOKS = 2_000  # racks looked at a turn, so that large cells are not looked at for every job
QUARTER = 0.25
PASSING = frozenset({"for_s", "next_due_s"})  # numbers that change by themselves


def blocks(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """What has to be said now, and when to look again."""
    if not state.untold:
        return []
    entries: list[JobBlocked] = []
    looks = max(1, LOOKS // max(1, len(fleet.racks)))
    while state.untold and state.untold[0][0] <= event.mono and len(entries) < MAX_ENTRIES:
        name = state.untold[0][1]
        job = fleet.jobs.get(name)
        found = state.queue.where.get(name)
        if job is None or job.state is not JobState.QUEUED or found is None:
            heappop(state.untold)
            state.telling.discard(name)
            continue
        shape = found[0]
        if shape in state.queue.stuck and not _fresh(state, shape, event):
            if not looks:
                break
            looks -= 1
        again, entry = _look(state, fleet, job, shape, event)
        heappop(state.untold)
        heappush(state.untold, (again, name))
        if entry is not None:
            entries.append(entry)
    effects: list[Effect] = [Offer(entries=tuple(entries))] if entries else []
    if state.untold:
        effects.append(WakeAt(mono=max(state.untold[0][0], event.mono + UNTRIED_S)))
    return effects


def _look(
    state: State, fleet: Fleet, job: Job, shape: Shape, event: Event
) -> tuple[float, JobBlocked | None]:
    """When to look at this job again, and what to say of it."""
    if shape not in state.queue.stuck:
        return event.mono + UNTRIED_S, None
    wait = fleet.policy.block_repeat_s
    if job.blocked is not None and event.now < job.blocked_at + wait:
        return event.mono + job.blocked_at + wait - event.now, None
    reason = _judged(state, fleet, job, shape, event)
    again = event.mono + max(wait, FRESH_S)
    if job.blocked is not None and not differs(job.blocked, reason):
        return again, None
    return again, JobBlocked(job=job.id, reason=reason)


def _fresh(state: State, shape: Shape, event: Event) -> bool:
    judged = state.judged.get(shape)
    return judged is not None and event.mono < judged.mono + FRESH_S


def _judged(state: State, fleet: Fleet, job: Job, shape: Shape, event: Event) -> Reason:
    if not _fresh(state, shape, event):
        reason = why_blocked(fleet, job, event.now, Saved(state.reports, fleet))
        state.judged[shape] = Judged(mono=event.mono, reason=reason)
    return state.judged[shape].reason


def differs(old: Reason, new: Reason) -> bool:
    """Is this another cause, or the same with numbers that moved by a quarter or more?"""
    if old.code != new.code:
        return True
    for name in sorted((old.numbers.keys() | new.numbers.keys()) - PASSING):
        before, after = old.numbers.get(name), new.numbers.get(name)
        if isinstance(before, str) or isinstance(after, str):
            continue  # names of examples
        if before is None or after is None or abs(after - before) > QUARTER * abs(before):
            return True
    return False


def to_tell(state: State, name: JobId, mono: float) -> None:
    """This job waits since now."""
    if name not in state.telling:
        state.telling.add(name)
        heappush(state.untold, (mono, name))
