"""Faults: from what nodes report to who is out, what is asked for, and what people are told."""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Effect, Event, Note, Observed, Tally
from rackwright.core.policy.health import (
    RACK_ORDER,
    Answer,
    Evidence,
    alone,
    answer,
    evidence,
    explained,
    graver,
    rack_verdict,
    unfit,
)
from rackwright.core.policy.xid_tables import SignalClass
from rackwright.core.policy.xids import evidence_key
from rackwright.core.racks import Rack
from rackwright.health_monitor.state import State, Symptoms
from rackwright.wire.entries.node import NodeUnfit, RackDegraded
from rackwright.wire.ids import NodeId, RackId
from rackwright.wire.nodes import RackFitness
from rackwright.wire.reasons import Reason

KEPT_S = 60.0  # evidence that another copy should act on, or of a node that has not joined
NOTE_S = 60.0  # the same fault of the same part is told once in so long
NOTES_KEPT = 4096
REPEATS_TOLD = 3  # jobs that one GPU failed in the same way
REPEATS_KEPT = 1024


def hear(state: State, fleet: Fleet, event: Observed) -> list[Effect]:
    """A fault has been reported."""
    found = evidence(event.fault, event.id, event.at)
    return weigh(state, fleet, found, event)


def weigh(state: State, fleet: Fleet, found: Evidence, event: Event) -> list[Effect]:
    """Put a piece of evidence where it waits for what it leads to, or tell people of it."""
    name, code = found.fault.node, found.verdict.code
    if not state.ready:
        state.others[name, code] = (event.mono, found)
        return []
    place = fleet.places.get(name)
    if place is None or fleet.rack_name(place.rack) != found.fault.rack:
        state.stranger(name, found.fault.rack)
        return []
    if not state.owns(found.fault.rack):
        state.others[name, code] = (event.mono, found)
        return []
    rack = fleet.racks[place.rack]
    said = answer(rack, place.node, found)
    told: list[Effect] = [Tally(kind=_kind(said, found), by=found.fault.count)]
    match said:
        case Answer.OUT:
            state.blamed[name] = graver(state.blamed.get(name), found)
        case Answer.LATER:
            state.requests[name] = graver(state.requests.get(name), found)
        case Answer.SYMPTOM:
            _wait(state, fleet, rack, found, event)
        case Answer.WAIT:
            state.unjoined[name] = (event.mono, found)
        case Answer.KNOWN | Answer.RACK:
            pass
        case Answer.NOTHING:
            told += _tell(state, rack, place.node, found, event)
    return told


_KINDS = {Answer.OUT: "culprit", Answer.WAIT: "unjoined", Answer.NOTHING: "noted"}


def _kind(said: Answer, found: Evidence) -> str:
    """What a report was taken for, as it is counted; `unmapped` are those no table knows."""
    if said is Answer.NOTHING and found.verdict.signal_class is SignalClass.ALERT_ONLY:
        return "unmapped"
    return _KINDS.get(said, said.value)


def _wait(state: State, fleet: Fleet, rack: Rack, found: Evidence, event: Event) -> None:
    """A symptom waits for the culprit of its rack, unless there is one."""
    here = set(rack.spec.nodes)
    if explained(rack, fleet.policy, event.now) or not here.isdisjoint(state.blamed):
        return
    symptoms = state.symptoms.get(rack.spec.rack)
    if symptoms is None:
        symptoms = Symptoms(until=event.mono + fleet.policy.symptom_window_s)
        state.symptoms[rack.spec.rack] = symptoms
    code = found.verdict.code
    symptoms.codes[code] = symptoms.codes.get(code, 0) + found.fault.count
    symptoms.nodes.add(found.fault.node)
    if answer(rack, rack.spec.nodes.index(found.fault.node), alone(found)) is Answer.LATER:
        symptoms.after[found.fault.node] = alone(found)


def found_culprit(state: State, fleet: Fleet, rack: RackId, now: float) -> None:
    """A node of this rack went out: its symptoms may be explained, and the rack be in doubt."""
    state.racks[rack] = None
    if rack in state.symptoms and explained(fleet.rack(rack), fleet.policy, now):
        del state.symptoms[rack]


def give_up(state: State, mono: float) -> list[Effect]:
    """Symptoms whose culprit nobody has named: no node leaves for them, people are told."""
    told: list[Effect] = []
    for rack in [rack for rack, waiting in state.symptoms.items() if waiting.until <= mono]:
        waiting = state.symptoms.pop(rack)
        for node, found in waiting.after.items():
            state.requests[node] = graver(state.requests.get(node), found)
        fields = {
            "rack": rack,
            "nodes": sorted(waiting.nodes),
            "codes": dict(sorted(waiting.codes.items())),
        }
        told.append(Note(level="warning", event="symptoms.unexplained", fields=fields))
    for key in [key for key, (at, _) in state.others.items() if at + KEPT_S <= mono]:
        del state.others[key]
    for node in [node for node, (at, _) in state.unjoined.items() if at + KEPT_S <= mono]:
        del state.unjoined[node]
    return told


def _tell(state: State, rack: Rack, place: int, found: Evidence, event: Event) -> list[Effect]:
    """A fault that asks nothing of the node: told to people, once a minute for the same part."""
    key = evidence_key(found.fault)
    told: list[Effect] = []
    if found.verdict.repeats_matter and _repeated(state, rack, place, key):
        fields = {"node": found.fault.node, "code": found.verdict.code, "gpu": found.fault.gpu}
        told.append(Note(level="warning", event="signal.repeated", fields=fields))
    if event.mono < state.noted.get(key, event.mono - NOTE_S) + NOTE_S:
        return told
    state.noted[key] = event.mono
    state.noted.move_to_end(key)
    if len(state.noted) > NOTES_KEPT:
        state.noted.popitem(last=False)
    strange = found.verdict.signal_class is SignalClass.ALERT_ONLY
    note = Note(
        level="warning" if strange else "info",
        event="signal.not_understood" if strange else "signal.seen",
        fields={
            "node": found.fault.node,
            "code": found.verdict.code,
            "signal": found.verdict.signal_class.value,
            "line": found.fault.line,
        },
    )
    return [*told, note]


def _repeated(state: State, rack: Rack, place: int, key: str) -> bool:
    """Has one GPU failed several jobs in the same way, just now?"""
    jobs = state.repeats.get(key, frozenset())
    more = jobs | {tenancy.job for tenancy in rack.tenants_at(place)}
    if more == jobs:
        return False
    state.repeats[key] = more
    state.repeats.move_to_end(key)
    if len(state.repeats) > REPEATS_KEPT:
        state.repeats.popitem(last=False)
    return len(jobs) < REPEATS_TOLD <= len(more)


def out(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeUnfit | None:
    """The culprit is good for less, if that is still news."""
    place = fleet.places[name]
    rack = fleet.racks[place.rack]
    found = state.blamed[name]
    said = answer(rack, place.node, found)
    if said is Answer.LATER:
        state.requests[name] = graver(state.requests.get(name), found)
    if said is not Answer.OUT:
        return None
    return unfit(rack.nodes[place.node], found)


def degraded(state: State, fleet: Fleet, name: RackId, event: Event) -> RackDegraded | None:
    """What several culprits at once say of their rack, if it is worse than what is known."""
    rack = fleet.rack(name)
    said = rack_verdict(rack, fleet.policy, event.now)
    if RACK_ORDER[said] <= RACK_ORDER[rack.fitness]:
        return None
    code = "rack.event" if said is RackFitness.EVACUATE else "culprits"
    numbers: dict[str, int | float | str] = {"window_s": fleet.policy.symptom_window_s}
    return RackDegraded(rack=name, fitness=said, reason=Reason(code=code, numbers=numbers))
