"""Placements of one turn: the queue in order, each job on the fleet that those before it leave."""

from dataclasses import dataclass, replace

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.machine import Effect, Event, Offer, WakeAt
from rackwright.core.policy.fairness import standings
from rackwright.core.policy.guarantees import below
from rackwright.core.policy.placement import place, why_placed
from rackwright.core.policy.precedence import recovery_first
from rackwright.core.policy.promised import kept_for_promised, owed_and_waiting
from rackwright.core.policy.starvation import kept_for_starved, kept_from
from rackwright.placer.growing import Growth
from rackwright.placer.jobqueue import NOBODY
from rackwright.placer.state import Standing, State
from rackwright.wire.entries.job import JobPlaced
from rackwright.wire.policy import Automation

STANDING_S = 5.0
IN_VAIN = 64  # shapes that do not fit, a turn; the others are tried in the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Nothing is placed before this `mono` time."""

    mono: float


def may_place(fleet: Fleet, event: Event) -> Wait | None:
    """Recovery goes first, and an operator may have paused placement; None: go on."""
    until = fleet.paused_until(Automation.PLACEMENT, event.now)
    if until is not None:
        return Wait(mono=event.mono + until - event.now)
    seconds = recovery_first(fleet, event.now)
    return None if seconds is None else Wait(mono=event.mono + seconds)


def whose_turn(state: State, fleet: Fleet, event: Event) -> Standing:
    """Looked at anew every few seconds: use of days does not change sooner. What owners have used
    is not asked for where only one of them has jobs to place."""
    known = state.standing
    if known is None or not 0 <= event.now - known.at < STANDING_S:
        before = event.now - fleet.policy.starve_after_s
        known = state.standing = Standing(
            at=event.now,
            used=None,
            starved=frozenset(state.queue.starved(before).values()),
            kept=kept_for_starved(fleet, event.now),
            owed=owed_and_waiting(fleet),
        )
    if known.used is None and state.queue.rivals():
        used = standings(fleet, event.now, state.memory)
        known = state.standing = replace(known, used=used)
    return known


def placements(state: State, fleet: Fleet, event: Event) -> tuple[list[Effect], Fleet]:
    """As many jobs as fit, at most a commit of them, and the fleet with them."""
    if not state.queue.untried and not state.queue.short:
        return [], fleet
    waits = may_place(fleet, event)
    if waits is not None:
        return [WakeAt(mono=waits.mono)], fleet
    entries: list[JobPlaced] = []
    growth = Growth(state.queue, fleet)
    standing = whose_turn(state, fleet, event)
    candidates = state.queue.candidates(standing.used or NOBODY, standing.starved, below(fleet))
    kept = [*standing.kept, *kept_for_promised(fleet, standing.owed)]
    in_vain = 0
    trial = fleet
    while candidates and len(entries) < state.group and in_vain < IN_VAIN:
        trial = growth.up_to(candidates.priority(), trial, kept, event.now)
        name, shape = candidates.next()
        job = trial.jobs.get(name)
        if job is None or job.state is not JobState.QUEUED:
            continue
        slices = place(trial, job, kept_from(trial, kept, job, event.now))
        if slices is None:
            candidates.leave_out(shape)
            in_vain += 1
            continue
        entry = JobPlaced(
            job=name,
            membership=job.membership + 1,
            slices=slices,
            reason=why_placed(trial, job, slices),
            cause=state.causes.get(name),
        )
        entries.append(entry)
        trial = apply(trial, entry)
        if job.spec.queue not in below(trial):
            candidates.has_its_share(job.spec.queue)
    if not candidates:
        trial = growth.up_to(-1, trial, kept, event.now)
    effects: list[Effect] = [Offer(entries=tuple(entries))] if entries else []
    effects += growth.offers()
    return ([*effects, WakeAt(mono=event.mono)] if candidates else effects), trial
