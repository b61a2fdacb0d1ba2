"""The last rung before the queue: a place that is known to come free soon is worth standing still.

Known are the ends of jobs, holds and probations, and repairs with a date. The healthy ranks wait no
longer than it would cost to start the job anew.
"""

from dataclasses import replace

from rackwright.core.policy.defrag_releases import Releases, fleet_at, known_releases
from rackwright.core.policy.moves import free_seat
from rackwright.core.policy.replacements import Case, case_of
from rackwright.core.policy.triage import better_left, triage


def patience_until(case: Case) -> float:
    """Ledger time up to which the job may stand still: `hold_max_s` or its own restart cost, the
    shorter of the two, from its first wound in this slice on."""
    longest = min(case.fleet.policy.hold_max_s, case.job.spec.checkpoint.restart_s)
    return min(wound.at for wound in case.wounds) + longest


def release_for(case: Case) -> float | None:
    """Ledger time, within that patience, at which there will be a place; None: not in time."""
    until = patience_until(case)
    if until <= case.now:
        return None
    found = known_releases(case.fleet, case.now, until)
    others = tuple(one for one in found.jobs if one[1] != case.job.id)
    known = replace(found, jobs=others)
    times = [at for at in known.times if at > case.now]
    if not times or not _heals(case, known, times[-1]):
        return None
    return next(at for at in times if _heals(case, known, at))


def _heals(case: Case, known: Releases, at: float) -> bool:
    """Would there be a spare in its rack, or another rack, once all that has come free?"""
    trial = fleet_at(case.fleet, known, at)
    later = case_of(trial, case.job, case.part, case.wounds, at)
    in_rack = not case.part.gpus and better_left(later) is None
    if in_rack and len(later.spares) >= triage(later).needed:
        return True
    return free_seat(later) is not None
