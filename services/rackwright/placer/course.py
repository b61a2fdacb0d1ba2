"""The course of placed jobs: what has to be said of those of which something new is known."""

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import ASSIGNED
from rackwright.core.machine import Effect, Event, Offer, WakeAt
from rackwright.core.policy.limits import ends_at
from rackwright.placer.hangs import hanging
from rackwright.placer.idle import idling
from rackwright.placer.starts import overdue
from rackwright.placer.state import State
from rackwright.placer.verdicts import judge
from rackwright.wire.entries.job import (
    JobFailed,
    JobFinished,
    JobFinishing,
    JobNotified,
    JobRequeued,
    JobStarted,
    WorkerFailed,
)
from rackwright.wire.ids import JobId
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.reasons import Reason

JUDGED = 256  # jobs a turn; the others are judged in the next one

# What sets nodes free comes first.
KINDS = (JobFinished, JobFailed, JobRequeued, WorkerFailed, JobStarted, JobFinishing, JobNotified)
FREEING = frozenset(kind.TYPE for kind in KINDS[:3])
COURSE = frozenset(kind.TYPE for kind in KINDS)


def course(state: State, fleet: Fleet, event: Event) -> tuple[list[Effect], Fleet]:
    """Offers by type, and the fleet with the nodes that they set free."""
    found: dict[str, list[Entry]] = {}
    said: set[JobId] = set()
    trial = fleet
    for name, entries in _verdicts(state, fleet, event):
        if name in said:
            continue
        said.add(name)
        for entry in entries:
            entry = kept(fleet, entry)
            found.setdefault(entry.TYPE, []).append(entry)
            if entry.TYPE in FREEING:
                trial = apply(trial, entry)
    effects: list[Effect] = [
        Offer(entries=tuple(found[kind.TYPE][start : start + MAX_ENTRIES]))
        for kind in KINDS
        if kind.TYPE in found
        for start in range(0, len(found[kind.TYPE]), MAX_ENTRIES)
    ]
    if state.reports.dirty:
        effects.append(WakeAt(mono=event.mono))
    return effects, trial


def kept(fleet: Fleet, entry: Entry) -> Entry:
    """Its nodes are kept if the failed job asks for that; lent ones are not its to keep."""
    if not isinstance(entry, JobFailed):
        return entry
    job = fleet.jobs[entry.job]
    lent = any(part.lent for part in job.slices)
    if not job.spec.keep_on_failure or not job.slices or lent:
        return entry
    return replace(entry, keep_s=fleet.policy.keep_on_failure_s)


def _verdicts(
    state: State, fleet: Fleet, event: Event
) -> Iterator[tuple[JobId, tuple[Entry, ...]]]:
    yield from _at_their_limit(state, fleet, event)
    for name, late in overdue(state, fleet, event):
        yield name, late
    yield from hanging(state, fleet, event)
    yield from idling(state, fleet, event)
    while state.again and state.again[0][0] <= event.mono:
        name = heappop(state.again)[1]
        state.due.pop(name, None)
        state.reports.dirty.setdefault(name, None)
    reports = state.reports
    names = dict.fromkeys([*reports.offered, *list(reports.dirty)[:JUDGED]])
    for name in names:
        before = reports.offered.pop(name, None)
        cause = reports.dirty.pop(name, before)
        job = fleet.jobs.get(name)
        if job is None:
            continue
        verdict = judge(state, fleet, job, event)
        if verdict.again is not None:
            _judge_again(state, name, event.mono + verdict.again)
        if verdict.entries:
            reports.offered[name] = cause
            yield name, tuple(evolve(entry, cause=cause) for entry in verdict.entries)


def _judge_again(state: State, name: JobId, mono: float) -> None:
    known = state.due.get(name)
    if known is None or mono < known:
        state.due[name] = mono
        heappush(state.again, (mono, name))


def _at_their_limit(
    state: State, fleet: Fleet, event: Event
) -> Iterator[tuple[JobId, tuple[Entry, ...]]]:
    """Jobs that have had their nodes for as long as they may."""
    while state.ends and state.ends[0][0] <= event.now:
        _, name = heappop(state.ends)
        job = fleet.jobs.get(name)
        end = ends_at(fleet.policy, job) if job is not None else None
        if job is None or end is None or job.state not in ASSIGNED:
            continue
        if end > event.now:
            heappush(state.ends, (end, name))
            continue
        seconds = end - (job.placed_at or 0.0)
        reason = Reason(code="time-limit", numbers={"limit_s": seconds})
        yield name, (JobFailed(job=name, reason=reason),)
