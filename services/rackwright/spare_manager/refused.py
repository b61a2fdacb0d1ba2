"""Decisions that somebody else's commit has overtaken: which of them are right all the same.

While 750 nodes fail and jobs go on coming, most of what comes between has to do with other jobs in
other racks. To judge anew is as dear as to decide, and by then the next commit has come between; so
a decision of which nothing that it was made from has changed is offered again as it is.
"""

from collections import Counter

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.legality import illegal
from rackwright.core.legality.apart import Healed, healed_in
from rackwright.core.policy.breaker import breaker_open
from rackwright.core.policy.spares import holds
from rackwright.wire.message import Entry


def still_holding(
    decided_on: Fleet | None, fleet: Fleet, entries: tuple[Entry, ...], now: float
) -> tuple[Entry, ...]:
    """Those entries that hold on `fleet`, in order, each beside those before it.

    One that takes somebody's place, or whose slice is gone, does not: it is decided anew.
    """
    before = decided_on
    if before is not None and not _same_ground(before, fleet, now):
        before = None
    about = [
        (entry, racks)
        for entry in entries
        if isinstance(entry, Healed) and (racks := healed_in(fleet, entry)) is not None
    ]
    jobs = Counter(entry.job for entry, _ in about)
    in_racks = Counter(number for _, racks in about for number in racks)
    kept: list[Entry] = []
    trial = fleet
    for entry, racks in about:
        if jobs[entry.job] > 1 or any(in_racks[number] > 1 for number in racks):
            if holds(trial, entry, now):
                kept.append(entry)
                trial = apply(trial, entry)
        elif (before is not None and _unchanged(before, fleet, entry, racks)) or holds(
            fleet, entry, now
        ):
            kept.append(entry)
    return tuple(kept)


def _same_ground(before: Fleet, after: Fleet, now: float) -> bool:
    """Is what concerns every decision as it was: the settings, the breaker, planned absences?"""
    return (
        before.policy is after.policy
        and before.topology is after.topology
        and before.maintenance is after.maintenance
        and (
            before.culprits is after.culprits
            or breaker_open(before, now) == breaker_open(after, now)
        )
    )


def _unchanged(before: Fleet, after: Fleet, entry: Healed, racks: tuple[int, ...]) -> bool:
    """Is it legal, and are its job and its racks the very ones that it was decided with?

    It may have been decided after another decision that has been dropped: then it is not legal.
    """
    return (
        illegal(after, entry) is None
        and before.jobs.get(entry.job) is after.jobs[entry.job]
        and all(before.racks.get(number) is after.racks[number] for number in racks)
    )
