"""Planned maintenance: what still runs there shortly before is queued, and windows end."""

from collections.abc import Iterator

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import Job, JobState, Slice, WoundKind
from rackwright.core.machine import Effect, Event, Offer, WakeAt
from rackwright.core.policy.elastic import replica_of
from rackwright.core.policy.turns import stays_until
from rackwright.core.policy.windows import next_telling, nodes_of, parts_there, to_tell
from rackwright.wire.entries.job import JobNotified, JobRequeued
from rackwright.wire.entries.node import MaintenanceEnded
from rackwright.wire.ids import JobId
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.reasons import Reason


def windows(fleet: Fleet, event: Event) -> list[Effect]:
    """What has to be said of windows now, and when to look again."""
    if not fleet.maintenance:
        return []
    effects: list[Effect] = []
    over = tuple(
        MaintenanceEnded(of=window.seq) for window in fleet.maintenance if window.end <= event.now
    )
    if over:
        effects.append(Offer(entries=over[:MAX_ENTRIES]))
    late = _too_late(fleet, event.now)
    if late:
        effects.append(Offer(entries=late[:MAX_ENTRIES]))
    told = _tell(fleet, event.now)
    if told:
        effects.append(Offer(entries=told[:MAX_ENTRIES]))
    force = fleet.policy.maintenance_force_s
    times = [at for one in fleet.maintenance for at in (one.begin - force, one.begin, one.end)]
    times += [at for one in fleet.maintenance if (at := next_telling(one, event.now)) is not None]
    later = [at for at in times if at > event.now]
    if later:
        effects.append(WakeAt(mono=event.mono + min(later) - event.now))
    return effects


def _tell(fleet: Fleet, now: float) -> tuple[JobNotified, ...]:
    """Owners are told of maintenance where their work is; the same job once at a time."""
    found: dict[JobId, JobNotified] = {}
    for window in fleet.maintenance:
        for name, reason in to_tell(fleet, window, now):
            ahead = round(window.begin - now, 3)
            found.setdefault(
                name, JobNotified(job=name, window=window.seq, notice_s=ahead, reason=reason)
            )
    return tuple(found[name] for name in sorted(found))


def _too_late(fleet: Fleet, now: float) -> tuple[JobRequeued, ...]:
    """Jobs that were to leave, have found no better place, and can wait no longer.

    A replica that can leave alone is not among them: that is the spare-manager's work.
    """
    force = fleet.policy.maintenance_force_s
    names: dict[JobId, Maintenance] = {}
    for window in fleet.maintenance:
        if window.begin - force <= now < window.end:
            for job, part in _still_there(fleet, window):
                if now >= stays_until(fleet, job, part, window):
                    names.setdefault(job.id, window)
    return tuple(
        JobRequeued(
            job=name,
            reason=Reason(code="maintenance", numbers={"begin_s": round(window.begin - now, 3)}),
        )
        for name, window in sorted(names.items())
    )


def _still_there(fleet: Fleet, window: Maintenance) -> Iterator[tuple[Job, Slice]]:
    """Slices with a drained rank there, which may be restarted elsewhere, but not alone."""
    away = nodes_of(fleet, set(window.racks), set(window.nodes))
    for job, part in parts_there(fleet, away):
        ranks = range(part.first_rank, part.first_rank + part.size)
        drained = any(wound.kind is WoundKind.DRAIN and wound.rank in ranks for wound in job.wounds)
        if drained and job.state is not JobState.FINISHING and not replica_of(job, part):
            yield job, part
