"""Silence: whom it makes suspect, when it is the rack's and not the node's, when it is death."""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Effect, Event, Note
from rackwright.core.policy.health import serial_of
from rackwright.core.policy.leases import declare_after
from rackwright.core.policy.probation import SILENCE
from rackwright.core.policy.witnesses import confirmed, declare_alone_after
from rackwright.core.racks import Node, Rack
from rackwright.health_monitor.state import State, Suspicion
from rackwright.wire.entries.node import NodeCleared, NodeFailed, NodeSuspected, RackIsolated
from rackwright.wire.ids import JobId, NodeId, RackId, parse_worker
from rackwright.wire.jobs import OnLostLease
from rackwright.wire.reasons import Reason


def watch(state: State, fleet: Fleet, node: Node, mono: float) -> None:
    """Watch a node that has a live session and a lease, from now on; others are not watched."""
    live = node.session is not None and not node.suspected
    if live and state.owns_node(fleet, node.name):
        state.beats.hear(node.name, mono)
    else:
        state.beats.forget(node.name)
    state.suspects.pop(node.name, None)
    if not node.suspected:
        state.suspicions.pop(node.name, None)
        state.condemned.pop(node.name, None)
        state.returned.pop(node.name, None)
        state.unproven.discard(node.name)
        state.unconfirmed.discard(node.name)
    elif state.suspicions.get(node.name, Suspicion(seq=0, since=0.0)).seq != node.suspected:
        # W runs from here: this copy has just folded the suspicion, or has just started.
        state.suspicions.pop(node.name, None)
        state.suspicions[node.name] = Suspicion(seq=node.suspected, since=mono)


def judge(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """Decide from who is silent now whom to suspect and which rack is isolated."""
    state.suspects.clear()
    state.isolate.clear()
    state.judge_at = event.mono + fleet.policy.heartbeat_s / 4
    told = _see(state, fleet, event.mono)
    if doubts_itself(state, event.mono):
        return told
    by_rack: dict[int, list[NodeId]] = {}
    for node in state.beats.silent:
        by_rack.setdefault(fleet.places[node].rack, []).append(node)
    for number, silent in by_rack.items():
        _judge_rack(state, fleet, fleet.racks[number], silent, event)
    return told


def doubts_itself(state: State, mono: float) -> bool:
    """Is this copy blind, or sees so newly that others may still be on their way back?"""
    return state.blind or mono < state.sees_from


def _see(state: State, fleet: Fleet, mono: float) -> list[Effect]:
    """Does this copy hear at least half of its nodes? If not, the silence may be its own."""
    recalled = sum(1 for node in state.suspicions if state.owns_node(fleet, node))
    nodes = len(state.beats) + recalled
    hears = len(state.beats.heard) + len(state.returned)
    blind = hears * 2 < nodes
    if blind is state.blind:
        return []
    state.blind = blind
    fields = {"hears": hears, "nodes": nodes}
    if blind:
        return [Note(level="warning", event="monitor.blind", fields=fields)]
    state.sees_from = mono + fleet.policy.suspect_after_s
    return [Note(level="info", event="monitor.sees", fields=fields)]


def _judge_rack(state: State, fleet: Fleet, rack: Rack, silent: list[NodeId], event: Event) -> None:
    """One silent node is in doubt; as many as `rack_event_nodes` are an event of their rack.

    In an isolated rack a node is doubted only when its lease has ended by itself: until then its
    work may live, and it costs nothing to wait. While some are only quiet it is not known yet
    which of both it is.
    """
    policy = fleet.policy
    since = event.now - policy.symptom_window_s
    lately = sum(1 for node in rack.nodes if node.suspected and node.suspected_at > since)
    unheard = lately + sum(1 for node in rack.nodes if state.beats.unheard(node.name))
    if rack.isolated:
        over = event.mono - policy.fence_after_s
        late = [node for node in silent if state.beats.silent[node] <= over]
        state.suspects.update((node, state.beats.silent[node]) for node in late)
    elif unheard < policy.rack_event_nodes:
        state.suspects.update((node, state.beats.silent[node]) for node in silent)
    elif len(silent) + lately >= policy.rack_event_nodes:
        state.isolate[rack.spec.rack] = len(silent) + lately


def declared_after(state: State, fleet: Fleet, mono: float) -> float:
    """W, and the one before as long as leases of the policy before may run."""
    longer, until = state.longer_wait
    wait = declare_after(fleet.policy)
    return max(wait, longer) if mono < until else wait


def policy_changed(state: State, fleet: Fleet, mono: float) -> None:
    """Leases granted under the policy before may be longer than those of now."""
    before, state.wait = state.wait, declare_after(fleet.policy)
    state.covers = dict.fromkeys(state.covers)  # promises of before were made by another lease
    if before > state.wait:
        state.longer_wait = (before, mono + before)


def condemn(state: State, fleet: Fleet, mono: float) -> list[Effect]:
    """Find the suspected whose leases must have ended: W after this copy folded the suspicion.

    A copy that doubts itself takes nobody for dead. A node with witnesses may have been carried on
    by them: then it takes their promises that they did not, or W2. Work that its owner lets run
    without a lease ends only by proof: its node is not condemned, and people are told.
    """
    told: list[Effect] = []
    if doubts_itself(state, mono):
        state.condemned.clear()
        return told
    due = mono - declared_after(state, fleet, mono)
    for name, suspicion in state.suspicions.items():
        if suspicion.since > due:
            break
        if not state.owns_node(fleet, name):
            continue
        if not carried_by_nobody(state, fleet, name, suspicion, mono):
            told += _unconfirmed(state, fleet, name)
            continue
        jobs = runs_on(fleet, name)
        if not jobs:
            state.condemned[name] = None
        elif name not in state.unproven:
            state.unproven.add(name)
            fields = {"node": name, "jobs": jobs}
            told.append(Note(level="warning", event="node.unproven", fields=fields))
    return told


def carried_by_nobody(
    state: State, fleet: Fleet, name: NodeId, suspicion: Suspicion, mono: float
) -> bool:
    """Can no witness have made the lease of this node longer than W reckons with?"""
    terms = fleet.node(name).witnesses
    if terms is None:
        return True
    if mono >= suspicion.since + declare_alone_after(fleet.policy, terms):
        return True
    covers = [state.covers.get(witness) for witness in terms.nodes]
    return confirmed(terms, covers, fleet.policy, mono)


def _unconfirmed(state: State, fleet: Fleet, name: NodeId) -> list[Effect]:
    """Say once why a silent node is waited for."""
    terms = fleet.node(name).witnesses
    if terms is None or name in state.unconfirmed:
        return []
    state.unconfirmed.add(name)
    waits = round(declare_alone_after(fleet.policy, terms), 3)
    fields = {"node": name, "witnesses": list(terms.nodes), "waits_s": waits}
    return [Note(level="warning", event="node.unconfirmed", fields=fields)]


def runs_on(fleet: Fleet, name: NodeId) -> list[JobId]:
    """Jobs whose workers on this node need no lease to go on (`on_lost_lease: run`)."""
    place = fleet.places[name]
    rack = fleet.racks[place.rack]
    here = {tenancy.job for tenancy in rack.tenants_at(place.node)}
    here |= {parse_worker(one.worker)[0] for one in rack.leaving if one.node == place.node}
    jobs = (fleet.jobs.get(job) for job in sorted(here))
    return [job.id for job in jobs if job is not None and job.spec.on_lost_lease is OnLostLease.RUN]


def failed(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeFailed | None:
    """Dead and fenced, unless it was heard again or has joined anew meanwhile."""
    node = fleet.node(name)
    suspicion = state.suspicions.get(name)
    if suspicion is None or suspicion.seq != node.suspected:
        return None
    if name in state.returned or name in state.joins or runs_on(fleet, name):
        return None
    return NodeFailed(
        node=name,
        of=node.last,
        session=node.session,
        fenced=True,
        observed_at=max(0.0, node.suspected_at - fleet.policy.suspect_after_s),
        reason=Reason(code=SILENCE, numbers={"waited_s": round(event.mono - suspicion.since, 3)}),
        serial=serial_of(node),
    )


def suspected(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeSuspected | None:
    """Recall the lease of a silent node."""
    node = fleet.node(name)
    last = state.beats.silent.get(name)
    if last is None or node.session is None or node.suspected:
        return None
    return NodeSuspected(
        node=name,
        of=node.last,
        session=node.session,
        reason=Reason(code=SILENCE, numbers={"silent_s": round(event.mono - last, 3)}),
    )


def cleared(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeCleared | None:
    """Heard again since it was suspected, and lately."""
    node = fleet.node(name)
    late = event.mono - state.returned[name] > fleet.policy.suspect_after_s
    if late or not node.suspected or node.session is None:
        return None
    return NodeCleared(node=name, of=node.last, session=node.session)


def isolated(state: State, fleet: Fleet, name: RackId, event: Event) -> RackIsolated | None:
    """The rack is silent as a whole, or so much of it that it is the rack's fault."""
    rack = fleet.rack(name)
    if rack.isolated:
        return None
    numbers: dict[str, int | float | str] = {
        "silent": state.isolate[name],
        "nodes": len(rack.nodes),
    }
    return RackIsolated(rack=name, reason=Reason(code=SILENCE, numbers=numbers))


def heard_again(state: State, rack: Rack) -> bool:
    """Is every node of an isolated rack that has a session heard, and is there one?"""
    live = [node for node in rack.nodes if node.session is not None]
    return bool(live) and not any(node.suspected or state.beats.unheard(node.name) for node in live)
