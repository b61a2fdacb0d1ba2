"""The mind of the health-monitor: one event in, what is to be done out."""

from math import inf

from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Acked,
    Copies,
    Doubt,
    Effect,
    Event,
    Folded,
    Heard,
    Observed,
    SendEcho,
    StatusSeen,
    Turn,
    WakeAt,
    Wished,
    WishSkipped,
)
from rackwright.core.policy.health import missing_gpus
from rackwright.core.policy.leases import may_echo, tick_after
from rackwright.core.racks import Node, Rack
from rackwright.health_monitor import (
    blame,
    checks,
    evacuation,
    orders,
    promises,
    returns,
    rounds,
    silence,
)
from rackwright.health_monitor.state import State
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.entries.job import JobSuspended
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeChecked,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    RackDefined,
    RackDegraded,
    RackIsolated,
    RackRestored,
    RepairRequested,
)
from rackwright.wire.ids import MessageId, NodeId
from rackwright.wire.message import Entry
from rackwright.wire.nodes import RackFitness

SUSPECT_WORKLOAD = "suspect_workload"  # reason code of job.suspended for a job that wedges nodes
SECOND_S = 1.0
STALE_S = 5.0
MINUTE_S = 60.0


class HealthMonitor:
    """See the package. The state is changed in place, see `state`."""

    service = orders.SERVICE

    def start(self, copy: int) -> State:
        """Knows nothing yet; all racks are its own until it hears of other copies."""
        return State(copy=copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        match event:
            case Heard():
                return state, _heard(state, fleet, event)
            case Turn():
                return state, _turn(state, fleet, event)
            case Acked():
                state.freshness = state.freshness.acked(event.sent_mono)
                state.marks = state.marks.acked(event.seq, event.sent_mono)
                return state, _echoes(state, fleet, event.mono)
            case Observed():
                return state, blame.hear(state, fleet, event)
            case Copies():
                return state, _share(state, fleet, event)
            case _:
                _note(state, fleet, event)
                return state, []


def _note(state: State, fleet: Fleet, event: Event) -> None:
    """Take in what asks for nothing before the next turn."""
    match event:
        case Folded():
            _folded(state, fleet, event)
        case StatusSeen():
            returns.hear_status(state, fleet, event)
        case Wished():
            orders.hear(state, fleet, event)
        case WishSkipped():
            state.heard_to = max(state.heard_to, event.seq)
        case _:
            pass  # Refused: what still holds is found again at the next turn


def _heard(state: State, fleet: Fleet, event: Heard) -> list[Effect]:
    """A heartbeat: constant work, whatever the size of the cell."""
    if not state.ready:
        return []
    place = fleet.places.get(event.node)
    if place is None or fleet.racks[place.rack].spec.rack != event.rack:
        state.stranger(event.node, event.rack)
        return []
    node = fleet.racks[place.rack].nodes[place.node]
    if event.node in state.covers and may_echo(node, event.session):
        promises.heard(state, fleet, event)
    if node.session != event.session or not state.owns(event.rack):
        return []
    if not may_echo(node, event.session):
        state.returned[event.node] = event.mono
        return []
    state.beats.hear(event.node, event.mono)
    new = event.rack not in state.echoes.lines
    state.echoes.add(event.rack, event.node, event.session, event.n, event.mono, fleet.policy)
    effects = _echoes(state, fleet, event.mono)
    if new and not effects and state.freshness.holds(fleet.policy, event.mono):
        effects.append(WakeAt(mono=state.echoes.due[0][0]))
    return effects


def _echoes(state: State, fleet: Fleet, mono: float) -> list[Effect]:
    """Echo what is due, if this copy is fresh; until then it waits."""
    if not state.ready or not state.freshness.holds(fleet.policy, mono):
        return []
    return [SendEcho(echo=echo) for echo in state.echoes.take(fleet, mono)]


def _turn(state: State, fleet: Fleet, event: Turn) -> list[Effect]:
    """Look at what time has brought, offer the most urgent, say when to look again."""
    mono, policy = event.mono, fleet.policy
    effects: list[Effect] = []
    if not state.ready:
        state.ready = True
        state.began = mono
        effects += _look_over(state, fleet, event)
    effects += _echoes(state, fleet, mono)
    effects += _housekeeping(state, fleet, event)
    if state.beats.pass_to(mono, policy):
        state.judge_at = mono
    if mono >= state.judge_at and (state.beats.silent or state.blind):
        effects += silence.judge(state, fleet, event)
    effects += promises.attend(state, fleet)
    effects += silence.condemn(state, fleet, mono)
    returns.find_departed(state, fleet)
    effects += rounds.next_offer(state, fleet, event)
    effects.append(WakeAt(mono=_next_look(state, fleet, mono)))
    return effects


def _housekeeping(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """What is looked at once a second or once a minute."""
    effects: list[Effect] = []
    if event.mono >= state.second_at:
        state.second_at = event.mono + SECOND_S
        effects += blame.give_up(state, event.mono)
        effects += _doubt(state, event.mono)
        returns.find_restored(state, fleet, event)
        checks.find_answers(state, fleet, event)
    if event.mono >= state.minute_at:
        state.minute_at = event.mono + MINUTE_S
        effects += returns.remind(state, fleet, event.now)
        checks.find_due(state, fleet, event.now)
        effects += returns.find_strangers(state, fleet)
    return effects


def _doubt(state: State, mono: float) -> list[Effect]:
    """A copy that has not reached a quorum for five seconds is not to be relied on (P3.5)."""
    proved = state.freshness.proved
    stale = mono - (state.began if proved is None else proved) > STALE_S
    if stale == state.stale:
        return []
    state.stale = stale
    return [Doubt(why="no append was acknowledged for 5 s" if stale else "")]


def _next_look(state: State, fleet: Fleet, mono: float) -> float:
    """The next `mono` time at which something may be due."""
    policy = fleet.policy
    times = [state.second_at, state.sees_from]
    change = state.beats.next_change(policy)
    if change is not None:
        times.append(change)
    if state.beats.silent:
        times.append(state.judge_at)
    wait = silence.declared_after(state, fleet, mono)
    due = (one.since + wait for one in state.suspicions.values())  # in their order
    times.append(next((at for at in due if at > mono), inf))
    if state.freshness.proved is not None:
        times.append(state.freshness.proved + tick_after(policy))
    if state.echoes.due and state.freshness.holds(policy, mono):
        times.append(state.echoes.due[0][0])
    return min(time for time in times if time > mono)


def _folded(state: State, fleet: Fleet, event: Folded) -> None:
    """Bring what waits in step with what was decided, by whomever."""
    if event.void or not state.ready:
        return
    for entry in event.entries:
        if entry.wish is not None:
            state.wishes.pop(entry.wish, None)
        name: NodeId | None = getattr(entry, "node", None)
        if name is not None and name in fleet.places:
            _node_changed(state, fleet, entry, fleet.node(name), event)
        elif isinstance(entry, RackDegraded | RackIsolated | RackRestored):
            _rack_changed(state, fleet.rack(entry.rack))
        elif isinstance(entry, MaintenanceScheduled | MaintenanceEnded):
            state.evacuate_at = 0.0
        elif isinstance(entry, PolicySet):
            state.evacuate_at = 0.0
            silence.policy_changed(state, fleet, event.mono)
        elif isinstance(entry, JobSuspended) and entry.reason.code == SUSPECT_WORKLOAD:
            checks.suspect(state, fleet, entry.job)
        elif isinstance(entry, RackDefined):
            state.evacuate_at = 0.0
            returns.meet(state, fleet, entry.rack.nodes)


def _node_changed(state: State, fleet: Fleet, entry: Entry, node: Node, event: Folded) -> None:
    state.admitted(node.name, node.session)
    lease_changed = node.session is None or node.suspected or node.name in state.suspicions
    if lease_changed or isinstance(entry, NodeJoined):
        silence.watch(state, fleet, node, event.mono)
    if not state.owns_node(fleet, node.name):
        return
    returns.follow(state, node)
    checks.follow(state, node, event.mono)
    match entry:
        case NodeUnfit() | NodeFailed():
            state.requests.setdefault(node.name, None)
            blame.found_culprit(state, fleet, _rack_of(fleet, node).spec.rack, event.now)
        case NodeSuspected():
            blame.found_culprit(state, fleet, _rack_of(fleet, node).spec.rack, event.now)
        case NodeJoined():
            returns.may_return(state, node)
            _has_joined(state, fleet, node, event)
        case NodeCleared() | NodeChecked(passed=True):
            returns.may_return(state, node)
        case NodeChecked():
            state.requests.setdefault(node.name, None)
        case RepairRequested():
            state.requests.pop(node.name, None)
        case NodeCordoned() | NodeUncordoned():
            evacuation.follow(state, node)
        case _:
            pass


def _has_joined(state: State, fleet: Fleet, node: Node, event: Folded) -> None:
    """What was seen before the node joined counts now, and what it brought is looked at."""
    state.joined_at[node.name] = (fleet.time, event.mono)
    state.moved[node.name] = None
    _, found = state.unjoined.pop(node.name, (0.0, None))
    if found is not None:
        blame.weigh(state, fleet, found, event)
    short = missing_gpus(fleet, node, MessageId(f"join.{node.session}"), event.now)
    if short is not None:
        blame.weigh(state, fleet, short, event)


def _rack_of(fleet: Fleet, node: Node) -> Rack:
    return fleet.racks[fleet.places[node.name].rack]


def _rack_changed(state: State, rack: Rack) -> None:
    name = rack.spec.rack
    state.restores.pop(name, None)
    state.evacuate_at = 0.0
    if state.owns(name) and (rack.isolated or rack.fitness is not RackFitness.GOOD):
        state.troubled[name] = None
    else:
        state.troubled.pop(name, None)


def _share(state: State, fleet: Fleet, event: Copies) -> list[Effect]:
    """Other copies have come or gone: other racks are this one's now."""
    if (event.present, event.ordinal) == (state.present, state.ordinal):
        return []
    state.present, state.ordinal = event.present, event.ordinal
    state.own.clear()
    return _look_over(state, fleet, event) if state.ready else []


def _look_over(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """Look at the whole cell, once at the start and when the shares change."""
    state.looked_at = event.mono
    silence.policy_changed(state, fleet, event.mono)
    state.drop_drafts()
    for rack in fleet.racks.values():
        _rack_changed(state, rack)
        mine = state.owns(rack.spec.rack)
        for node in rack.nodes:
            state.admitted(node.name, node.session)
            if not mine or node.name not in state.beats:
                silence.watch(state, fleet, node, event.mono)
            if mine:
                returns.follow(state, node)
                checks.follow(state, node, event.mono)
                evacuation.follow(state, node)
                state.moved[node.name] = None
                returns.may_return(state, node)
                if returns.unrequested(node):
                    state.requests.setdefault(node.name, None)
    return _look_again(state, fleet, event)


def _look_again(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """Weigh anew what was heard before it was known whose it is."""
    state.reports = True
    returns.meet(state, fleet, tuple(state.strange))
    for status in state.statuses.values():
        returns.find_join(state, fleet, status)
    effects: list[Effect] = []
    for found in state.take_evidence():
        effects += blame.weigh(state, fleet, found, event)
    return effects
