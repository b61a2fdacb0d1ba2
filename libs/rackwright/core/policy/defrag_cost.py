"""What it costs to move a job out of the way, term by term, and which jobs nobody may move.

The formula and the list are those of the policy page, section 3. Costs are in GPU-hours.
"""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, Slice, is_movable
from rackwright.core.policy.ask import Ask, ask_of, kept_off
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.guarantees import owed, takes_back
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.pinning import Checkpoints, stays, unsaved
from rackwright.core.policy.prices import HOUR, recently_stopped, weight
from rackwright.core.policy.quota import gpus_of as gpus_asked
from rackwright.core.policy.starvation import is_starved
from rackwright.wire.entries.slice import CostTerms, VictimMove
from rackwright.wire.ids import JobId
from rackwright.wire.reasons import Cause, Reason

DAY = 86_400.0
Price = CostTerms | str
"""What moving a job costs, or the code of what forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A blocked job as it is at `now`, resolved once for a decision.

    `gpus` is what it asks for; `prices` is filled as jobs are looked at. `evicts`: work of lower
    priority that finds no home may go into the queue. `starved`: it has waited too long to ask what
    it costs. `owed`: its queue is promised these GPUs, and takes them back from whoever has more
    than it is promised.
    """

    fleet: Fleet
    job: Job
    made: Cut
    ask: Ask
    gpus: int
    checkpoints: Checkpoints
    now: float
    notice_s: float
    evicts: bool = False
    starved: bool = False
    owed: bool = False
    prices: dict[JobId, Price] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int]:
        """Slices and GPUs: what is as large or larger does not make room at equal priority."""
        return len(self.made.pieces), self.gpus

    @property
    def unpriced(self) -> bool:
        """Need a plan for it not pay?"""
        return self.starved or self.owed

    def takes_back(self, victim: Job, gone: int = 0) -> bool:
        """Is it owed what this job has, whose queue loses `gone` GPUs besides?"""
        return self.owed and takes_back(self.fleet, self.job.spec.queue, victim, gone)

    def price(self, name: JobId) -> Price:
        """What moving this job costs, its home free at once, or what forbids it."""
        found = self.prices.get(name)
        if found is None:
            victim = self.fleet.jobs[name]
            found = forbidden(self, victim) or terms(self, victim, 0.0)
            self.prices[name] = found
        return found


def blocked(
    fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float, notice_s: float | None = None
) -> Blocked | Reason:
    """Resolve what this job asks for, or say which field of it cannot stand."""
    made = cut(job.spec, fleet.policy, fleet.topology)
    if isinstance(made, Reason):
        return made
    kept = kept_off(fleet, job.spec.priority)
    starved = is_starved(fleet, job, now)
    for_capacity = job.blocked is not None and job.blocked.code == Cause.CAPACITY
    gpus = gpus_asked(fleet, made)
    promised = owed(fleet, job, gpus)
    return Blocked(
        fleet=fleet,
        job=job,
        made=made,
        ask=ask_of(fleet, job, made, kept),
        gpus=gpus,
        checkpoints=checkpoints,
        now=now,
        notice_s=fleet.policy.defrag_notice_s if notice_s is None else notice_s,
        evicts=starved or for_capacity or promised,
        starved=starved,
        owed=promised,
    )


def forbidden(case: Blocked, victim: Job) -> str | None:
    """The code of the first rule that forbids moving this job, None when it may be moved."""
    return (
        _pinned(case, victim)
        or _unsettled(victim)
        or _outranks(case, victim)
        or _disturbed(case, victim)
    )


def _pinned(case: Blocked, victim: Job) -> str | None:
    return stays(case.fleet, victim, case.checkpoints, case.now)


def _unsettled(victim: Job) -> str | None:
    if victim.state is JobState.FINISHING:
        return "finishing"
    if victim.wounds:
        return "wounded"
    if victim.plan is not None:
        return "in-plan"
    if victim.started < victim.membership:
        return "starting"
    return None


def _outranks(case: Blocked, victim: Job) -> str | None:
    """At equal priority only what is smaller makes room, so A moves B moves A cannot occur."""
    theirs, ours = victim.spec.priority, case.job.spec.priority
    if theirs >= ours and case.takes_back(victim):
        return None
    if theirs > ours:
        return "higher-priority"
    if theirs == ours and len(victim.slices) == 1 and (1, victim_gpus(case, victim)) >= case.size:
        return "not-smaller"
    return None


def _disturbed(case: Blocked, victim: Job) -> str | None:
    policy, now = case.fleet.policy, case.now
    began = max(victim.started_at or 0.0, victim.moved_at or 0.0)
    if now - began < policy.defrag_min_runtime_s:
        return "young"
    if victim.preempted and now - victim.preempted[-1] < policy.defrag_cooldown_s:
        return "cooldown"
    if repeats(victim, now) >= policy.defrag_max_repeats:
        return "repeats"
    end = ends_at(policy, victim)
    if end is not None and end - now <= policy.defrag_near_limit_s:
        return "near-limit"
    return None


def repeats(victim: Job, now: float) -> int:
    """Preemptions and moves of the last 24 hours; one that was both counts once."""
    moved = victim.moved_at
    apart = moved is not None and moved not in victim.preempted and moved > now - DAY
    return recently_stopped(victim, now) + apart


def slice_gpus(fleet: Fleet, part: Slice) -> int:
    """GPUs of one slice."""
    rack = fleet.racks[part.rack]
    return part.gpus.bit_count() or sum(rack.nodes[place].gpus for place in part.nodes)


def victim_gpus(case: Blocked, victim: Job) -> int:
    """G_v: all GPUs of the job, as synchronous work stalls whole."""
    return sum(slice_gpus(case.fleet, part) for part in victim.slices)


def move_of(victim: Job) -> VictimMove:
    """A job of several slices keeps its state and moves slice by slice; others start anew."""
    return VictimMove.SLICE if len(victim.slices) > 1 else VictimMove.RESTART


def terms(case: Blocked, victim: Job, home_s: float, move: VictimMove | None = None) -> CostTerms:
    """G x (L + R + H) x w(p) x (1 + b n) + c, for a home that is free in `home_s` seconds.

    One that goes into the queue has its home there, at the head of its priority: the wait is not
    counted, since nobody knows it. A service loses nothing, as it serves on until its successor
    does; the move is priced as that of a slice.
    """
    policy, checkpoint = case.fleet.policy, victim.spec.checkpoint
    if (move or move_of(victim)) is VictimMove.SLICE or is_movable(victim.spec):
        lost, restart = 0.0, policy.defrag_slice_move_s
    else:
        saves = checkpoint.on_notice_s is not None and checkpoint.on_notice_s <= case.notice_s
        lost = 0.0 if saves else unsaved(victim, case.checkpoints, case.now, case.notice_s)
        restart = checkpoint.restart_s
    gpus, again = victim_gpus(case, victim), repeats(victim, case.now)
    heavy = weight(victim.spec.priority)
    hours = lost / HOUR + restart / HOUR + home_s / HOUR
    stop = gpus * hours * heavy * (1.0 + policy.defrag_repeat * again)
    return CostTerms(
        gpus=gpus,
        lost_h=lost / HOUR,
        restart_h=restart / HOUR,
        home_h=home_s / HOUR,
        weight=heavy,
        repeats=again,
        total=stop + policy.defrag_victim_cost_gpu_h,
    )


def hold_cost(case: Blocked, free_gpus: int) -> float:
    """Free GPUs of a rack that wait, with it, for the notice and the drain."""
    return free_gpus * (case.notice_s + case.fleet.policy.defrag_drain_s) / HOUR


def benefit(case: Blocked) -> float:
    """GPU-hours that are credited for starting the job now: what it has waited, at least W0."""
    since = case.job.blocked_since
    waited = 0.0 if since is None else case.now - since
    hours = max(waited, case.fleet.policy.defrag_wait0_s) / HOUR
    return case.gpus * weight(case.job.spec.priority) * hours


def pays_at(case: Blocked, cost: float) -> float:
    """Ledger time from which a plan of this cost pays."""
    since = case.job.blocked_since if case.job.blocked_since is not None else case.now
    rate = case.gpus * weight(case.job.spec.priority)
    hours = cost * case.fleet.policy.defrag_kappa / rate
    return since + hours * HOUR
