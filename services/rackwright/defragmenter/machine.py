"""The mind of the defragmenter: one plan in flight, decided once, checked again before each offer.

It thinks slowly and may: a plan that was refused because somebody was faster is checked against the
fleet that came between and offered again as it is.
"""

from dataclasses import replace

from rackwright.core.fleet import Fleet, Plan
from rackwright.core.jobs import Job
from rackwright.core.legality import illegal
from rackwright.core.machine import (
    Effect,
    Event,
    Folded,
    Note,
    Offer,
    Refused,
    StatusSeen,
    Turn,
    WakeAt,
)
from rackwright.core.policy.defrag import (
    Outcome,
    Verdict,
    entry_of,
    hindrance,
    judge,
    ripe_at,
    still_holds,
)
from rackwright.core.policy.defrag_course import Asked, approved, course, notices
from rackwright.core.policy.guarantees import is_owed
from rackwright.core.policy.pinning import lowest_priority
from rackwright.core.policy.precedence import recovery_first
from rackwright.core.policy.zero_spares import in_want, planned_move
from rackwright.defragmenter.state import Decided, Ending, Look, State
from rackwright.wire.entries.job import JobNotified
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import JobId, PlanId, QueueName, WorkerId
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Cause

ASK_S = 0.5  # a plan in flight is asked again so often
LOOK_S = 5.0  # a blocked job is looked at again so soon when the fleet has changed, sooner where
LOOKS = 6  # the delay before a first look is so short that as many would not fit in it, but not
LEAST_LOOK_S = 0.2  # sooner than that
STALE_S = 30.0  # a plan that was not committed by then is decided anew
IDLE_LOOK_S = 30.0  # and so soon when it has not: time alone makes work old enough to be moved


class Defragmenter:
    """See the package. The state is changed in place, see `state`."""

    service = "defragmenter"

    def start(self, copy: int) -> State:
        """Knows nothing; the first turn looks at the whole cell."""
        return State(copy=copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        match event:
            case StatusSeen(status=status):
                state.seen.hear(fleet, status)
                return state, []
            case Folded():
                _folded(state, fleet, event)
                return state, []
            case Refused(offer=offer):
                return state, _offer_again(state, fleet, offer, event.now)
            case Turn():
                return state, _turn(state, fleet, event)
            case _:
                return state, []


def _folded(state: State, fleet: Fleet, event: Folded) -> None:
    if event.void or not state.ready:
        return
    for name in sorted(fleet.touched_jobs):
        state.follow(fleet, name)
    for entry in event.entries:
        if isinstance(entry, DefragPlanned):
            state.decided = None
            state.untold.update((victim.job, fleet.last_id) for victim in entry.victims)
        elif isinstance(entry, JobNotified) and entry.plan is not None:
            state.untold.pop(entry.job, None)
    if any(plan.job in fleet.touched_jobs for plan in fleet.plans.values()):
        state.ask_at = event.mono


def _offer_again(state: State, fleet: Fleet, offer: Offer, now: float) -> list[Effect]:
    """The plan, if it still holds on the fleet that came between."""
    decided = state.decided
    if decided is None or decided.entry not in offer.entries:
        return []
    return _offered(state, fleet, decided, now)


def _offered(state: State, fleet: Fleet, decided: Decided, now: float) -> list[Effect]:
    checkpoints = state.seen.checkpoints()
    why = still_holds(fleet, decided.entry, checkpoints, decided.at, now)
    if now - decided.at > STALE_S:
        why = "was decided too long ago"
    if why is None:
        return [Offer(entries=(decided.entry,))]
    state.decided = None
    fields = {"job": decided.entry.job, "plan": decided.entry.plan, "why": why}
    return [Note(level="info", event="defrag.plan_dropped", fields=fields)]


def _turn(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    """The plan in flight first, then those who must be told, then the next plan."""
    if not state.ready:
        state.ready = True
        state.look_over(fleet, event.now)
    until = fleet.paused_until(Automation.ALL, event.now)
    if until is not None:  # read only: not even a plan in flight is ended
        return [WakeAt(mono=event.mono + until - event.now)]
    wait = recovery_first(fleet, event.now)
    if wait is not None:
        return [WakeAt(mono=event.mono + wait)]
    if fleet.plans:
        return _in_flight(state, fleet, event)
    state.untold.clear()
    state.asked.clear()
    state.ending = None
    return _next_plan(state, fleet, event)


def _in_flight(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    state.decided = None
    told = _tell(state, fleet, event.now)
    if told is not None:
        return [told]
    if event.mono >= state.ask_at or (state.ending and illegal(fleet, state.ending) is not None):
        state.ask_at = event.mono + ASK_S
        state.ending = _ending(state, fleet, event.now)
    wake = WakeAt(mono=state.ask_at)
    # Offered at each turn: a patient copy's host lets go only what it is offered all the while.
    return [wake] if state.ending is None else [Offer(entries=(state.ending,)), wake]


def _ending(state: State, fleet: Fleet, now: float) -> Ending | None:
    """What ends a plan in flight, if one is to end."""

    def runs(worker: WorkerId) -> bool:
        return state.seen.runs(fleet, worker)

    for plan in sorted(fleet.plans.values(), key=_age):
        asked = state.asked.setdefault(plan.id, Asked())
        entry = course(fleet, plan, runs, now, asked)
        if entry is not None:
            return entry
    return None


def _age(plan: Plan) -> int:
    return plan.seq


def _tell(state: State, fleet: Fleet, now: float) -> Offer | None:
    """Notices to the victims of the plan in flight, each caused by it."""
    for plan in sorted(fleet.plans.values(), key=_age):
        names = [victim.job for victim in plan.victims if victim.job in state.untold]
        made = notices(fleet, plan.id, names)
        if made and now < plan.notice_until:
            return Offer(
                entries=tuple(replace(entry, cause=state.untold[entry.job]) for entry in made)
            )
    state.untold.clear()
    return None


def _next_plan(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    hindered = hindrance(fleet, event.now)
    if hindered is not None:
        again = hindered.numbers.get("again")
        return [] if again is None else [_wake(event, float(again))]
    if state.decided is not None:
        return [*_offered(state, fleet, state.decided, event.now), WakeAt(mono=event.mono + ASK_S)]
    moved = _for_spares(state, fleet, event)
    if moved:
        return moved
    names = to_look_at(state, fleet, event.now)
    due = {name: _due(state, fleet, name, event.now) for name in names}
    ripe = [fleet.jobs[name] for name, at in due.items() if at <= event.now]
    effects: list[Effect] = []
    if any(in_want(fleet, event.now)):
        effects.append(WakeAt(mono=event.mono + LOOK_S))
    if ripe:
        job = min(ripe, key=lambda one: _order(state, one))
        effects += _look(state, fleet, job, event)
        due[job.id] = _due(state, fleet, job.id, event.now)
    if due:
        effects.append(_wake(event, min(due.values())))
    return effects


def _for_spares(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    """A slice that leaves a rack without spares; where plans need approval nothing moves so."""
    if fleet.policy.defrag_approve:
        return []
    entry = planned_move(fleet, state.seen.checkpoints(), event.now)
    if entry is None:
        return []
    return [Offer(entries=(entry,)), WakeAt(mono=event.mono + ASK_S)]


def to_look_at(state: State, fleet: Fleet, now: float) -> list[JobId]:
    """Jobs blocked by movable topology; of those that lack capacity, of each priority the one that
    waits longest, if work of a lower priority has what it lacks, and of each queue the one that
    waits longest of its highest priority, if others have what the queue is promised."""
    found: list[JobId] = []
    first: dict[int, tuple[float, JobId]] = {}
    promised: dict[QueueName, tuple[int, float, JobId]] = {}
    for name in state.blocked:
        job = fleet.jobs[name]
        if job.blocked is not None and job.blocked.code == Cause.CAPACITY:
            one = (job.submitted_at, name)
            first[job.spec.priority] = min(one, first.get(job.spec.priority, one))
            if is_owed(fleet, job):
                its = (-job.spec.priority, *one)
                promised[job.spec.queue] = min(its, promised.get(job.spec.queue, its))
        else:
            found.append(name)
    if first and now >= state.lowest_at:
        state.lowest_at = now + LOOK_S
        state.lowest = lowest_priority(fleet)
    found += [name for priority, (_, name) in first.items() if priority > state.lowest]
    return list(dict.fromkeys([*found, *(name for _, _, name in promised.values())]))


def _wake(event: Turn, at: float) -> WakeAt:
    """A turn at this ledger time."""
    return WakeAt(mono=event.mono + max(0.0, at - event.now))


def _due(state: State, fleet: Fleet, name: JobId, now: float) -> float:
    """Ledger time at which a blocked job is to be looked at (again)."""
    ripe = ripe_at(fleet, fleet.jobs[name])
    look = state.looks.get(name)
    if ripe is None or look is None:
        return now if ripe is None else ripe
    soon = min(LOOK_S, max(LEAST_LOOK_S, fleet.policy.defrag_delay_s / LOOKS))
    again = look.at + (soon if fleet.seq > look.seq else IDLE_LOOK_S)
    if look.again is not None and look.again > look.at:
        again = min(again, look.again)
    return max(ripe, again)


def _order(state: State, job: Job) -> tuple[float, int, float, JobId]:
    """Who has waited longest for a look; then priority, submit time, id."""
    look = state.looks.get(job.id)
    seen = 0.0 if look is None else look.at
    return (seen, -job.spec.priority, job.submitted_at, job.id)


def _look(state: State, fleet: Fleet, job: Job, event: Turn) -> list[Effect]:
    """Think about one job, and offer the plan if there is one that pays."""
    verdict = judge(fleet, job, state.seen.checkpoints(), event.now)
    known = state.looks.get(job.id)
    entry = entry_of(verdict, PlanId(f"plan-{fleet.seq}-{state.copy}"))
    saying = verdict.outcome.value
    if verdict.outcome is Outcome.GO and entry is None:
        saying = "illegal"
    elif entry is not None and not approved(fleet, job, event.now):
        saying = f"awaits approval: {entry.reason.numbers['racks']}"
    look = Look(at=event.now, seq=fleet.seq, again=verdict.again, told=saying)
    state.looks[job.id] = look
    effects: list[Effect] = []
    if known is None or known.told != saying:
        effects.append(_note(verdict, saying))
    if entry is not None and approved(fleet, job, event.now):
        caused = replace(entry, cause=state.blocked.get(job.id))
        state.decided = Decided(entry=caused, at=event.now)
        effects.append(Offer(entries=(caused,)))
    return effects


def _note(verdict: Verdict, saying: str) -> Note:
    settled = verdict.settled
    return Note(
        level="info",
        event="defrag.judged",
        fields={
            "job": verdict.job.id,
            "outcome": saying,
            "benefit_gpu_h": round(verdict.benefit, 3),
            "cost_gpu_h": None if settled is None else round(settled.cost, 3),
            "victims": [] if settled is None else [home.job for home in settled.homes],
            "without_homes": len(verdict.failed),
            "again": verdict.again,
        },
    )
