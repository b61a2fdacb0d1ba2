"""Defragmentation: which running work to move so that a job blocked by topology fits, if it pays.

A plan is whole or it is none: racks for the blocked job, a home for every victim, at a cost that
the wait justifies (policy page, section 3). Pure; costs are in GPU-hours, times in ledger time.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.legality import illegal
from rackwright.core.policy.ask import kept_off
from rackwright.core.policy.defrag_cost import (
    Blocked,
    benefit,
    blocked,
    forbidden,
    pays_at,
    terms,
)
from rackwright.core.policy.defrag_homes import Home, Settled, settle
from rackwright.core.policy.defrag_hopeless import with_homes
from rackwright.core.policy.defrag_limits import avoiding, most_moved, moved, within
from rackwright.core.policy.defrag_racks import Left, Survey, surveys
from rackwright.core.policy.defrag_releases import fleet_at, known_releases, release_at
from rackwright.core.policy.defrag_search import Chosen, cheapest_sets, least_cost
from rackwright.core.policy.pinning import Checkpoints
from rackwright.core.policy.placement import place
from rackwright.core.policy.prices import HOUR, weight
from rackwright.wire.entries.slice import DefragPlanned, Victim, VictimMove
from rackwright.wire.ids import JobId, PlanId
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Cause, Reason

DRAWN = 1_000  # sets looked at in all
HOMELESS = 3  # times a victim may lack a home before sets with it are passed over


ANSWERABLE = frozenset({Cause.TOPOLOGY_MOVABLE, Cause.CAPACITY})


class Outcome(StrEnum):
    """What came of looking for a plan."""

    GO = "go"
    FITS = "fits"
    NO_WAY = "no-way"
    NO_HOMES = "no-homes"
    DEAR = "dear"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of it for one job. `again`: ledger time from which the answer may be another one.

    `chosen` and `settled` are the cheapest set that has homes, whether it pays or not; `failed`
    says why cheaper ones have none. `next_best` is the next set, homes not looked for. `bound`:
    GPU-hours that no plan can cost less than, for one that goes ahead. `reason`:
    why the job cannot be planned for at all, or how many sets were beyond the limits of one plan.
    """

    job: Job
    outcome: Outcome
    benefit: float = 0.0
    again: float | None = None
    case: Blocked | None = None
    found: tuple[Survey, ...] = ()
    chosen: Chosen | None = None
    settled: Settled | None = None
    next_best: Chosen | None = None
    bound: float | None = None
    failed: tuple[tuple[Chosen, Reason], ...] = ()
    reason: Reason | None = None


def hindrance(fleet: Fleet, now: float) -> Reason | None:
    """Why nothing is planned for anybody now; number `again` says until when, if that is known."""
    policy = fleet.policy
    until = fleet.paused_until(Automation.DEFRAG, now)
    if until is not None:
        return Reason(code="defrag.paused", numbers={"again": until})
    if fleet.plans:
        return Reason(code="defrag.in-flight", numbers={"plan": min(fleet.plans)})
    hour = [at for at in fleet.plan_times if at > now - HOUR]
    if len(hour) >= policy.defrag_per_hour:
        again = hour[-policy.defrag_per_hour] + HOUR
        return Reason(code="defrag.per-hour", numbers={"plans": len(hour), "again": again})
    return None


def ripe_at(fleet: Fleet, job: Job) -> float | None:
    """Ledger time at which this job has been blocked long enough by what a plan could answer:
    movable topology, or capacity that lower priority has; None: never while it is as it is."""
    if job.state is not JobState.QUEUED or job.blocked is None or job.blocked_since is None:
        return None
    if job.blocked.code not in ANSWERABLE:
        return None
    return job.blocked_since + fleet.policy.defrag_delay_s


def judge(fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float) -> Verdict:
    """Look for the cheapest plan for a job that waits, and say whether it pays.

    What is known to come free before a plan's drain would be over counts: if it saves more than the
    job loses by waiting for it, it is waited for, and then planned anew.
    """
    verdict = _judged(fleet, job, checkpoints, now)
    case = verdict.case
    if case is None or verdict.outcome in (Outcome.FITS, Outcome.RELEASE) or case.starved:
        return verdict
    known = known_releases(fleet, now, drained_at(case))
    ahead = [at for at in known.times if at > now]
    if not ahead:
        return verdict
    later = _judged(fleet_at(fleet, known, ahead[-1]), job, checkpoints, now)
    if later.outcome is Outcome.FITS:
        return replace(verdict, outcome=Outcome.RELEASE, again=ahead[0], bound=None)
    if later.outcome is not Outcome.GO or later.settled is None:
        return verdict
    wait = case.gpus * weight(job.spec.priority) * (ahead[-1] - now) / HOUR
    saves = verdict.settled is None or later.settled.cost + wait < verdict.settled.cost
    if verdict.outcome is Outcome.GO and not saves:
        return verdict
    return replace(verdict, outcome=Outcome.RELEASE, again=ahead[0], bound=None)


def drained_at(case: Blocked) -> float:
    """Ledger time at which the nodes that a plan of now frees could start something."""
    return case.now + case.notice_s + case.fleet.policy.defrag_drain_s


def _judged(fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float) -> Verdict:
    case = blocked(fleet, job, checkpoints, now)
    if isinstance(case, Reason):
        return Verdict(job=job, outcome=Outcome.NO_WAY, reason=case)
    gain = benefit(case)
    if place(fleet, job) is not None:
        return Verdict(job=job, outcome=Outcome.FITS, case=case, benefit=gain)
    found = surveys(case)
    search = _Search(case=case)
    homed = [with_homes(case, survey) for survey in found]
    search.hopeless = homed != found
    narrowed = [within(case, survey) for survey in homed]
    if any(_shut(survey) for survey in narrowed) and not any(_shut(survey) for survey in homed):
        search.beyond["share"] += 1
    while search.look(narrowed):
        narrowed = [avoiding(survey, search.without_home) for survey in narrowed]
    if not search.drawn and least_cost(case, narrowed) is not None:
        search.beyond["victims"] += 1
    return _weighed(case, gain, tuple(found), search)


def _shut(survey: Survey) -> bool:
    """Has it no way at all to let something in that is missing?"""
    return any(not survey.ways[size] for size, _ in survey.missing)


@dataclass(slots=True, kw_only=True)
class _Search:
    """Sets taken in the order of their cost until none that comes can be cheaper than the best.

    A victim that found no home in a few sets is held for homeless: it must not use up the tries.
    `hopeless`: there are ways that no set may have, as somebody would have no home for sure.
    """

    case: Blocked
    homeless: Counter[JobId] = field(default_factory=Counter)
    without_home: set[JobId] = field(default_factory=set)
    tried: set[tuple[Left, ...]] = field(default_factory=set)
    hopeless: bool = False
    drawn: int = 0
    beyond: Counter[str] = field(default_factory=Counter)
    best: tuple[Chosen, Settled] | None = None
    homed: int = 0
    next_best: Chosen | None = None
    failed: tuple[tuple[Chosen, Reason], ...] = ()

    def look(self, narrowed: list[Survey]) -> bool:
        """Take sets; whether to begin anew, without those of a victim that has no home."""
        known = len(self.without_home)
        most = self.case.fleet.policy.defrag_max_victims
        for chosen in cheapest_sets(self.case, narrowed, most):
            self.drawn += 1
            if self.drawn > DRAWN or not self.take(chosen):
                return False
            if len(self.without_home) > known:
                return True
        return False

    def take(self, chosen: Chosen) -> bool:
        """Look at one more set; whether to go on."""
        if chosen.leaves in self.tried:
            return True
        limit = over_limits(self.case, chosen)
        if limit is not None:
            self.beyond[limit] += 1
            return True
        if self.best is not None and chosen.cost >= self.best[1].cost:
            self.next_best = chosen
            return False
        self.tried.add(chosen.leaves)
        settled = settle(self.case, chosen)
        if isinstance(settled, Reason):
            self.failed = (*self.failed, (chosen, settled))
            if settled.code == "no-home":
                self._no_home(JobId(str(settled.numbers["job"])))
            return len(self.failed) < self.case.fleet.policy.defrag_candidates
        if self.best is None or settled.cost < self.best[1].cost:
            self.best = (chosen, settled)
        # What is still to come differs by the wait for homes: hours of search would save minutes.
        self.homed += 1
        return self.homed < self.case.fleet.policy.defrag_candidates

    def _no_home(self, name: JobId) -> None:
        self.homeless[name] += 1
        if self.homeless[name] >= HOMELESS:
            self.without_home.add(name)


def over_limits(case: Blocked, chosen: Chosen) -> str | None:
    """The limit of one plan that a set breaks, if any."""
    fleet, policy = case.fleet, case.fleet.policy
    victims = chosen.victims
    if len(victims) > policy.defrag_max_victims:
        return "victims"
    for name, indexes in victims.items():
        victim = fleet.jobs[name]
        if victim.spec.priority == case.job.spec.priority and not case.takes_back(victim):
            gpus = moved(case, [(name, index) for index in indexes])
            if (len(indexes), gpus) >= case.size:
                return "not-smaller"
    return "share" if moved(case, chosen.leaves) > most_moved(case) else None


def _weighed(case: Blocked, gain: float, found: tuple[Survey, ...], search: _Search) -> Verdict:
    """Is the best set worth it, now or later?"""
    outcome, again, reason = Outcome.GO, None, None
    if search.best is None:
        homeless = search.hopeless or search.failed
        outcome = Outcome.NO_HOMES if homeless else Outcome.NO_WAY
        if search.beyond:
            reason = Reason(code="limits", numbers=dict(sorted(search.beyond.items())))
    else:
        cost = search.best[1].cost
        worth_s = 0.0 if case.owed else cost / case.gpus * HOUR  # what is owed is not waited for
        again = release_at(case, max(case.now + worth_s, drained_at(case)))
        if again is not None:
            outcome = Outcome.RELEASE
        elif cost * case.fleet.policy.defrag_kappa > gain and not case.unpriced:
            outcome, again = Outcome.DEAR, pays_at(case, cost)
    chosen, settled = search.best or (None, None)
    return Verdict(
        job=case.job,
        outcome=outcome,
        benefit=gain,
        again=again,
        case=case,
        found=found,
        chosen=chosen,
        settled=settled,
        next_best=_next_best(case, found, search),
        bound=_bound(case, found, settled) if outcome is Outcome.GO else None,
        failed=search.failed,
        reason=reason,
    )


def _next_best(case: Blocked, found: tuple[Survey, ...], search: _Search) -> Chosen | None:
    """The next set, whether its victims have homes or not."""
    if search.best is None or not search.hopeless:
        return search.next_best
    least, most = search.best[1].cost, case.fleet.policy.defrag_max_victims
    sets = cheapest_sets(case, [within(case, survey) for survey in found], most)
    others = (one for one in islice(sets, DRAWN) if one.leaves not in search.tried)
    return next((one for one in others if one.cost >= least and not over_limits(case, one)), None)


def _bound(case: Blocked, found: tuple[Survey, ...], settled: Settled | None) -> float | None:
    """One that goes into the queue is priced without a home, and may be cheaper than any set."""
    least = least_cost(case, list(found))
    return None if least is None or settled is None else min(least, settled.cost)


def entry_of(verdict: Verdict, plan: PlanId) -> DefragPlanned | None:
    """The plan as an entry; None when there is none, or the ledger would not have it."""
    case, settled, chosen = verdict.case, verdict.settled, verdict.chosen
    if verdict.outcome is not Outcome.GO or case is None or settled is None or chosen is None:
        return None
    policy = case.fleet.policy
    racks = ",".join(str(case.fleet.rack_name(number)) for number in chosen.racks)
    made = DefragPlanned(
        plan=plan,
        job=case.job.id,
        membership=case.job.membership + 1,
        slices=settled.slices,
        victims=tuple(_victim(case.fleet, home) for home in settled.homes),
        notice_s=case.notice_s,
        expires_at=case.now + policy.defrag_expiry_s,
        hold_gpu_h=settled.hold,
        cost_gpu_h=settled.cost,
        benefit_gpu_h=verdict.benefit,
        next_best_gpu_h=None if verdict.next_best is None else verdict.next_best.cost,
        bound_gpu_h=verdict.bound,
        reason=Reason(
            code="defrag.pays",
            numbers={
                "cost": settled.cost,
                "benefit": verdict.benefit,
                "racks": racks,
                "victims": len(settled.homes),
                "sets_without_homes": len(verdict.failed),
            },
        ),
    )
    return made if illegal(case.fleet, made) is None else None


def _victim(fleet: Fleet, home: Home) -> Victim:
    victim = fleet.jobs[home.job]
    return Victim(
        job=home.job,
        membership=victim.membership + (home.move is not VictimMove.QUEUE),
        move=home.move,
        homes=home.homes,
        cost=home.cost,
        overlaps=home.overlaps,
    )


def still_holds(
    fleet: Fleet, entry: DefragPlanned, checkpoints: Checkpoints, decided_at: float, now: float
) -> str | None:
    """Check a plan again on a newer fleet: None when it may be offered, else why it may not.

    Its own reasons must hold: nothing hinders it, the job is blocked as before and does not fit by
    itself, no victim has become one that nobody may move, the cost has not risen but by time, and
    it pays now.
    """
    stopped = hindrance(fleet, now)
    if stopped is not None:
        return stopped.code
    problem = illegal(fleet, entry)
    if problem is not None:
        return problem
    job = fleet.jobs[entry.job]
    if ripe_at(fleet, job) is None:
        return f"job {job.id} is not blocked any more by what a plan could answer"
    if place(fleet, job) is not None:
        return f"job {job.id} fits"
    kept = kept_off(fleet, job.spec.priority)
    if any(kept >> fleet.rack_numbers[part.rack] & 1 for part in entry.slices):
        return "a wounded slice could use one of the racks"
    return _still_pays(fleet, job, entry, checkpoints, decided_at, now)


def _still_pays(
    fleet: Fleet,
    job: Job,
    entry: DefragPlanned,
    checkpoints: Checkpoints,
    decided_at: float,
    now: float,
) -> str | None:
    then = blocked(fleet, job, checkpoints, decided_at, entry.notice_s)
    case = blocked(fleet, job, checkpoints, now, entry.notice_s)
    if isinstance(then, Reason) or isinstance(case, Reason):
        return f"job {job.id} cannot be cut any more"
    before = cost = entry.hold_gpu_h
    for victim in entry.victims:
        there = fleet.jobs[victim.job]
        forbids = forbidden(case, there)
        if forbids is not None:
            return f"{victim.job}: {forbids}"
        home_s = victim.cost.home_h * HOUR
        before += terms(then, there, home_s, victim.move).total
        cost += terms(case, there, home_s, victim.move).total
    if before > entry.cost_gpu_h * (1.0 + 1e-9):
        return f"costs {before:.2f} GPU-h, not {entry.cost_gpu_h:.2f}"
    if cost * fleet.policy.defrag_kappa > benefit(case) and not case.unpriced:
        return f"costs {cost:.2f} GPU-h and does not pay"
    return None
