"""Known releases: what comes free by itself at a time that is known, and whether it would do.

Known are the time limits of jobs, the ends of holds and probations, and repairs with a date. One
whose date has passed is not known any more.
"""

from bisect import bisect_left
from dataclasses import dataclass

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import give_back, put_rack
from rackwright.core.policy.defrag_cost import Blocked
from rackwright.core.policy.defrag_homes import trial_of
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.placement import place
from rackwright.core.policy.probation import probation_until
from rackwright.core.rackhealth import refresh_health, without_kept
from rackwright.wire.ids import JobId, SessionId
from rackwright.wire.nodes import Fitness

RETURNED = SessionId("returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """What comes free up to some time, by what it is; each with its ledger time."""

    jobs: tuple[tuple[float, JobId], ...]
    racks: tuple[tuple[float, int], ...]
    repairs: tuple[tuple[float, int, int], ...]

    @property
    def times(self) -> list[float]:
        """The ledger times at which something comes free, rising."""
        found = {at for at, _ in self.jobs} | {at for at, _ in self.racks}
        return sorted(found | {at for at, _, _ in self.repairs})


def release_at(case: Blocked, horizon: float) -> float | None:
    """Ledger time, at most `horizon`, at which releases alone let the job start; None: not so soon.

    What others would make of them first is not known, and not counted.
    """
    known = known_releases(case.fleet, case.now, horizon)
    times = known.times
    if not times or not _fits(case, known, times[-1]):
        return None

    def fits(at: float) -> bool:
        return _fits(case, known, at)

    return times[bisect_left(times, True, hi=len(times) - 1, key=fits)]


def known_releases(fleet: Fleet, now: float, horizon: float) -> Releases:
    """Everything that is known to come free from `now` to `horizon`. Looks at the whole cell."""
    jobs = []
    for job in fleet.jobs.values():
        end = ends_at(fleet.policy, job)
        if end is not None and end <= horizon:
            jobs.append((max(end, now), job.id))
    racks = [(at, number) for at, number in fleet.timers if at <= horizon]
    repairs = [
        (until, number, place)
        for number, rack in fleet.racks.items()
        if rack.takes.bit_count() < len(rack.nodes)
        for place, node in enumerate(rack.nodes)
        if node.repair_eta is not None
        and node.repair_eta > now
        and (until := probation_until(node, fleet.policy, node.repair_eta)) <= horizon
    ]
    return Releases(jobs=tuple(sorted(jobs)), racks=tuple(racks), repairs=tuple(sorted(repairs)))


def _fits(case: Blocked, known: Releases, at: float) -> bool:
    """Would the job fit once all that is known until `at` has come free?"""
    return place(fleet_at(case.fleet, known, at), case.job) is not None


def fleet_at(fleet: Fleet, known: Releases, at: float) -> Fleet:
    """The fleet with all that is known until `at` come free."""
    trial = trial_of(fleet)
    for time, name in known.jobs:
        if time <= at:
            for part in fleet.jobs[name].slices:
                give_back(trial, name, part)
    numbers = {number for time, number in known.racks if time <= at}
    for time, number, spot in known.repairs:
        if time <= at:
            numbers.add(number)
            _repair(trial, number, spot)
    for number in sorted(numbers):
        rack = trial.racks[number]
        put_rack(trial, rack, refresh_health(without_kept(rack, at), trial.policy, at))
    return trial


def _repair(trial: Fleet, number: int, spot: int) -> None:
    rack = trial.racks[number]
    node = rack.nodes[spot]
    good = evolve(
        node,
        fitness=Fitness.FULL,
        session=node.session or RETURNED,
        suspected=0,
        failed=False,
        probation_until=0.0,
    )
    nodes = (*rack.nodes[:spot], good, *rack.nodes[spot + 1 :])
    put_rack(trial, rack, evolve(rack, nodes=nodes))
