"""The mind of the spare-manager: looks at wounded jobs, most urgent first, and heals them.

It hears commits only, so it decides with what the ledger shows. That a spare has not started is
said by the placer, who hears the nodes: `worker.failed` with the code `start-timeout`.
"""

from dataclasses import dataclass, replace

from immutables import Map

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import (
    Effect,
    Event,
    Folded,
    Note,
    Offer,
    Refused,
    Turn,
    WakeAt,
)
from rackwright.core.policy.breaker import breaker
from rackwright.core.policy.spares import heal, inferred, to_heal, urgency
from rackwright.spare_manager.grouping import Grouping, touched
from rackwright.spare_manager.refused import still_holding
from rackwright.wire.entries.job import WorkerFailed
from rackwright.wire.entries.node import NodeCordoned, NodeFailed, NodeJoined, NodeUnfit
from rackwright.wire.ids import JobId, MessageId
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.policy import Automation

LOOK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A wounded job for which nothing could be done when it was looked at, at `mono`."""

    job: Job
    mono: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`causes` are the commits that wounded jobs, `waiting` those for which there is no better
    place; `told` is what people were told last of why nothing is done. `decided_on` is
    the fleet that the decisions of the last turn were made on.
    """

    copy: int
    causes: Map[JobId, MessageId] = Map()
    waiting: Map[JobId, Waiting] = Map()
    told: str = ""
    decided_on: Fleet | None = None


class SpareManager:
    """See the package."""

    service = "spare-manager"

    def start(self, copy: int) -> State:
        """What the fleet shows is all it needs."""
        return State(copy=copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        match event:
            case Folded():
                return _remember_cause(state, fleet, event), []
            case Refused():
                return state, _offer_again(state, fleet, event)
            case Turn():
                return _turn(state, fleet, event)
            case _:
                return state, []


def _remember_cause(state: State, fleet: Fleet, event: Folded) -> State:
    """The first commit that wounded a job is the cause of its recovery."""
    if event.void or fleet.last_id is None or not fleet.wounded:
        return state
    causes = state.causes
    for entry in event.entries:
        for name in _wounded_by(fleet, entry):
            if name in fleet.wounded and name not in causes:
                causes = causes.set(name, fleet.last_id)
    return state if causes is state.causes else replace(state, causes=causes)


def _wounded_by(fleet: Fleet, entry: Entry) -> list[JobId]:
    match entry:
        case WorkerFailed(job=job):
            return [job]
        case NodeUnfit(node=node) | NodeFailed(node=node) | NodeJoined(node=node):
            pass
        case NodeCordoned(node=node, drain=True):
            pass
        case _:
            return []
    place = fleet.places[node]
    return [tenancy.job for tenancy in fleet.racks[place.rack].tenants_at(place.node)]


def _offer_again(state: State, fleet: Fleet, event: Refused) -> list[Effect]:
    """What still holds on the fleet that came between; the rest is decided anew at the turn."""
    if fleet.is_paused(Automation.SWAP, event.now):
        return []
    kept = still_holding(state.decided_on, fleet, event.offer.entries, event.now)
    return [Offer(entries=kept)] if kept else []


def _turn(state: State, fleet: Fleet, event: Turn) -> tuple[State, list[Effect]]:
    if not fleet.wounded:
        return _calm(state), []
    until = fleet.paused_until(Automation.SWAP, event.now)
    if until is not None:
        state, notes = _tell(state, "recovery.paused", until=until, wounded=len(fleet.wounded))
        return state, [*notes, WakeAt(mono=event.mono + until - event.now)]
    wounded = [fleet.jobs[name] for name in fleet.wounded]
    state, effects = _held_back(state, fleet, wounded, event)
    state = _forget(state, fleet)
    due = [job for job in wounded if not _waits(state, job, event.mono)]
    state, offers = _decide(state, fleet, due, event)
    effects += offers
    if state.waiting:
        first = min(waiting.mono for waiting in state.waiting.values())
        effects.append(WakeAt(mono=first + LOOK_AGAIN_S))
    return state, effects


def _calm(state: State) -> State:
    """Nobody is wounded: nothing to remember."""
    if not state.causes and not state.waiting and not state.told and state.decided_on is None:
        return state
    return State(copy=state.copy)


def _forget(state: State, fleet: Fleet) -> State:
    """Drop what is known of jobs that are well again."""
    healed = [name for name in (*state.causes, *state.waiting) if name not in fleet.wounded]
    causes, waiting = state.causes, state.waiting
    for name in healed:
        causes = causes.delete(name) if name in causes else causes
        waiting = waiting.delete(name) if name in waiting else waiting
    return replace(state, causes=causes, waiting=waiting) if healed else state


def _waits(state: State, job: Job, mono: float) -> bool:
    """Was it looked at in vain a moment ago, and has nothing happened to it since?"""
    waiting = state.waiting.get(job.id)
    return waiting is not None and waiting.job is job and mono < waiting.mono + LOOK_AGAIN_S


def _decide(state: State, fleet: Fleet, due: list[Job], event: Turn) -> tuple[State, list[Effect]]:
    """What is most urgent, each decision on the fleet that the ones before it leave."""
    grouping, count = Grouping(), 0
    waiting = state.waiting
    trial = fleet
    for job in sorted(due, key=lambda one: urgency(fleet, one)):
        if count >= MAX_ENTRIES:
            break
        if job.id in waiting:
            waiting = waiting.delete(job.id)
        before = trial
        entries, trial = heal(before, before.jobs[job.id], event.now)
        if not entries and to_heal(before, before.jobs[job.id], event.now):
            waiting = waiting.set(job.id, Waiting(job=job, mono=event.mono))
        for entry in entries:
            caused = evolve(entry, cause=state.causes.get(job.id))
            grouping.add(caused, touched(before, before.jobs[job.id], entry))
        count += len(entries)
    state = replace(state, waiting=waiting, decided_on=fleet)
    return state, [*grouping.offers()]


def _held_back(
    state: State, fleet: Fleet, wounded: list[Job], event: Turn
) -> tuple[State, list[Effect]]:
    """Say that an open breaker keeps recovery from inferred failures, and come back when it closes.

    Nothing else is held back: what is confirmed heals.
    """
    if not any(inferred(wound) for job in wounded for wound in job.wounds):
        return replace(state, told="") if state.told else state, []
    now = breaker(fleet, event.now)
    if not now.open or now.closes_at is None:
        return replace(state, told="") if state.told else state, []
    state, notes = _tell(state, "recovery.breaker_open", culprits=now.culprits, limit=now.limit)
    return state, [*notes, WakeAt(mono=event.mono + now.closes_at - event.now)]


def _tell(state: State, event: str, **fields: object) -> tuple[State, list[Effect]]:
    """Tell people once, not at every turn."""
    if state.told == event:
        return state, []
    return replace(state, told=event), [Note(level="warning", event=event, fields=dict(fields))]
