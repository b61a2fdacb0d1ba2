"""The way into service and out of it: sessions, recoveries, repairs, workers that have ended."""

from dataclasses import replace
from math import inf

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Effect, Event, Note, StatusSeen
from rackwright.core.policy import health
from rackwright.core.policy.checks import (
    REPAIRED,
    RETURNED,
    failed_check,
    lacks_check,
    vouched,
)
from rackwright.core.policy.health import because, rack_may_return, serial_of, verdict_on
from rackwright.core.policy.probation import (
    SILENCE,
    carried,
    counted,
    gravest,
    history,
    in_repair,
    lemon,
    lemon_reason,
    probation_until,
    returns,
)
from rackwright.core.policy.witnesses import SECOND_TIER, choose
from rackwright.core.racks import Node
from rackwright.health_monitor.silence import heard_again
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import (
    NodeCleaning,
    NodeJoined,
    NodeRecovered,
    NodeUnfit,
    RackRestored,
    RepairRequested,
)
from rackwright.wire.ids import NodeId, RackId, WorkerId, parse_worker
from rackwright.wire.nodes import Fitness, RackFitness, RepairAction
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import ENDED, WorkerState

ALIVE = frozenset({WorkerState.PREPARED, WorkerState.RUNNING})
LATE_S = 60.0  # no reader of statuses is further behind the ledger; a clock may have jumped
MOST_ENDED = 256
STRANGE_KEPT = 32_768  # statuses of nodes that may yet be defined: a cell has 25,000


def hear_status(state: State, fleet: Fleet, event: StatusSeen) -> None:
    """The last value of a node: perhaps a new session, perhaps workers that have ended."""
    status = event.status
    if not _known(fleet, event):
        state.strange[status.node] = event
        if len(state.strange) > STRANGE_KEPT:
            state.strange.popitem(last=False)
        if state.ready:
            state.stranger(status.node, status.rack)
        return
    before = state.statuses.get(status.node)
    if before is not None:
        if before.status.session == status.session and status.n < before.status.n:
            return
        for worker in before.status.workers:
            state.reported.pop(worker.worker, None)
    state.statuses[status.node] = event
    state.reports = True
    for worker in status.workers:
        if worker.state in ENDED:
            state.reported[worker.worker] = status.node
    find_join(state, fleet, event)


def meet(state: State, fleet: Fleet, nodes: tuple[NodeId, ...]) -> None:
    """These nodes may be known now: what was heard of them before counts."""
    for name in nodes:
        event = state.strange.get(name)
        if event is not None and _known(fleet, event):
            del state.strange[name]
            hear_status(state, fleet, event)


def is_known(fleet: Fleet, node: NodeId, rack: RackId) -> bool:
    """Has an entry defined this node, in this rack?"""
    place = fleet.places.get(node)
    return place is not None and fleet.rack_name(place.rack) == rack


def find_strangers(state: State, fleet: Fleet) -> list[Effect]:
    """Who was heard since the last look and is not defined now either, as one note."""
    heard, state.strangers = state.strangers, {}
    names = sorted(name for name, rack in heard.items() if not is_known(fleet, name, rack))
    if not names:
        return []
    fields: dict[str, object] = {"nodes": len(names), "first": names[:5]}
    return [Note(level="warning", event="node.unknown", fields=fields)]


def _known(fleet: Fleet, event: StatusSeen) -> bool:
    return is_known(fleet, event.status.node, event.status.rack)


def find_join(state: State, fleet: Fleet, event: StatusSeen) -> None:
    """Is this a session to be admitted?"""
    status = event.status
    node = fleet.node(status.node)
    if not _is_news(state, node, event):
        state.joins.pop(status.node, None)
    elif state.owns(status.rack):
        state.joins[status.node] = event


def _is_news(state: State, node: Node, event: StatusSeen) -> bool:
    """Is it of a session that comes after the live one?

    Two agents may start one after the other and only the second be admitted. What the first said,
    read late, would end by the ledger what the second runs by now: so a status that was stored
    before the live session was admitted is no news for a while. An agent that gets no lease says
    its own again.
    """
    session = event.status.session
    if session == node.session or state.is_past(node, session):
        return False
    at, mono = state.joined_at.get(node.name, (-inf, -inf))
    return node.session is None or event.at >= at or event.mono > mono + LATE_S


def joined(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeJoined | None:
    """Admit a new session, with the workers that its agent has found alive."""
    status, node = state.joins[name].status, fleet.node(name)
    if not _is_news(state, node, state.joins[name]):
        return None
    # In a cell that does not know the second tier yet nobody is told where its nodes are asked.
    known = fleet.fold_version >= SECOND_TIER
    hardware = status.hardware if known else replace(status.hardware, port=0)
    return NodeJoined(
        node=name,
        of=node.last,
        session=status.session,
        boot=status.boot,
        hardware=hardware,
        running=tuple(one.worker for one in status.workers if one.state in ALIVE),
        exited=tuple(
            one.worker
            for one in status.workers
            if one.state is WorkerState.EXITED and one.code is not None
        ),
        witnesses=choose(fleet, name) if hardware.port else None,
        cause=state.joins[name].id,
    )


def follow(state: State, node: Node) -> None:
    """Note whose answer the node waits for, as the fleet has it now."""
    if node.repair is None:
        state.repairs.pop(node.name, None)
    elif node.repair is not RepairAction.NONE:
        state.repairs.setdefault(node.name, node.repair_at)


def may_return(state: State, node: Node) -> None:
    """It is here: if it was out, look whether it may come in."""
    if node.session is not None and in_repair(node):
        state.returning[node.name] = None


def unrequested(node: Node) -> bool:
    """Is it out, and has nobody been asked to repair it? True once too often does no harm."""
    if node.failed and node.repair is None:
        return True
    needs = node.repair is not None and node.repair is not RepairAction.NONE
    return needs and node.repair_at <= (node.faults[-1].at if node.faults else 0.0)


def returning(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeRecovered | None:
    """Let a node in again whose faults its own return has answered."""
    node, policy = fleet.node(name), fleet.policy
    rack = fleet.racks[fleet.places[name].rack]
    if vouched(node) and in_repair(node):
        return recovered(fleet, node, event, REPAIRED)
    past = history(fleet, node)
    if not returns(node, rack.spec.gpus_per_node, policy, event.now, past):
        if node.session is not None and in_repair(node) and lemon(node, policy, event.now, past):
            state.requests.setdefault(name, None)
        return None
    if lacks_check(node):
        if not node.check:
            state.checks.setdefault(name, RETURNED)
        return None
    return recovered(fleet, node, event, "returned")


def recovered(fleet: Fleet, node: Node, event: Event, code: str) -> NodeRecovered:
    """In service again; on probation if it was out at all."""
    past, now = history(fleet, node), event.now
    faults = counted(node, past, now)
    was_out = node.failed or node.fitness is not Fitness.FULL
    until = probation_until(node, fleet.policy, now, past) if was_out else node.probation_until
    return NodeRecovered(
        node=node.name,
        of=node.last,
        fitness=Fitness.FULL,
        probation_until=until,
        reason=Reason(code=code, numbers={"faults": faults}),
        serial=serial_of(node),
    )


def moved(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeUnfit | None:
    """Hardware that came from another slot with a fault that nobody has answered stays out."""
    node = fleet.node(name)
    fault = carried(node, history(fleet, node))
    return None if fault is None else health.moved(node, fault)


def requested(state: State, fleet: Fleet, name: NodeId, event: Event) -> RepairRequested | None:
    """Ask somebody to act: for new evidence, for a lemon, or for what took the node out."""
    node, found = fleet.node(name), state.requests[name]
    asked = node.repair is not None and not unrequested(node)
    if found is not None:
        verdict = verdict_on(node, found)
        action, reason = gravest(node.repair, verdict.action), because(found, verdict)
        if asked and action is node.repair:
            return None
        return RepairRequested(
            node=name, of=node.last, action=action, reason=reason, cause=found.id
        )
    if not in_repair(node):
        return None
    action = RepairAction.REBOOT if node.repair is None else node.repair
    reason = Reason(code=node.why or SILENCE)
    if failed_check(node):
        action = gravest(action, RepairAction.INSPECT)
    past = history(fleet, node)
    if lemon(node, fleet.policy, event.now, past):
        action = gravest(action, RepairAction.INSPECT)
        reason = lemon_reason(node, fleet.policy, event.now, past)
    if action is RepairAction.NONE or (asked and action is node.repair):
        return None
    return RepairRequested(node=name, of=node.last, action=action, reason=reason)


def remind(state: State, fleet: Fleet, now: float) -> list[Effect]:
    """Repairs nobody has answered for `repair_overdue_s`; told again after as long."""
    told: list[Effect] = []
    for name, since in state.repairs.items():
        if now < since + fleet.policy.repair_overdue_s:
            continue
        node = fleet.node(name)
        state.repairs[name] = now
        fields = {
            "node": name,
            "action": node.repair.value if node.repair is not None else "",
            "age_s": round(now - node.repair_at),
        }
        told.append(Note(level="warning", event="repair.overdue", fields=fields))
    return told


def find_departed(state: State, fleet: Fleet) -> None:
    """Which workers that are to end does their node report as ended? Looks at the fewer."""
    if fleet.leaving is state.leaving and not state.reports:
        return
    state.leaving, state.reports = fleet.leaving, False
    fewer = min(state.leaving, state.reported, key=len)
    found: dict[NodeId, list[WorkerId]] = {}
    for worker in fewer:
        place, name = state.leaving.get(worker), state.reported.get(worker)
        if place is None or name is None or fleet.places[name] != place:
            continue
        if state.owns_node(fleet, name):
            found.setdefault(name, []).append(worker)
    state.departed = {name: tuple(sorted(found[name])) for name in sorted(found)}


def cleaned(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeCleaning | None:
    """Workers that left the node are gone. `done` when it waits for no other."""
    place, node = fleet.places[name], fleet.node(name)
    ended = [one for one in state.departed[name] if fleet.leaving.get(one) == place][:MOST_ENDED]
    if not ended:
        return None
    waits = sum(1 for one in fleet.racks[place.rack].leaving if one.node == place.node)
    jobs = {parse_worker(worker)[0] for worker in ended}
    return NodeCleaning(
        node=name,
        of=node.last,
        job=jobs.pop() if len(jobs) == 1 else None,
        done=waits == len(ended),
        ended=tuple(ended),
        cause=state.statuses[name].id,
    )


def find_restored(state: State, fleet: Fleet, event: Event) -> None:
    """Which of the racks that are not good may be trusted again?

    A copy that has just begun to listen takes nobody for heard before somebody would be silent.
    """
    listens = event.mono >= state.looked_at + fleet.policy.suspect_after_s
    for name in state.troubled:
        rack = fleet.rack(name)
        heard = not rack.isolated or (listens and heard_again(state, rack))
        if heard and (rack.isolated or rack_may_return(rack, fleet.policy, event.now)):
            # Isolation holds recovery up, so it ends with the silence, whatever else the rack or
            # its nodes need; but what it was besides silent it still is.
            state.restores[name] = "heard" if rack.isolated else "quiet"
            state.racks[name] = None


def restored(state: State, fleet: Fleet, name: RackId, event: Event) -> RackRestored | None:
    """Heard again; good again only if nothing but silence was wrong with it, or that is over."""
    rack = fleet.rack(name)
    over = rack.fitness is RackFitness.GOOD or rack_may_return(rack, fleet.policy, event.now)
    if not rack.isolated and (rack.fitness is RackFitness.GOOD or not over):
        return None
    return RackRestored(
        rack=name,
        fitness=RackFitness.GOOD if over else rack.fitness,
        reason=Reason(code=state.restores[name]),
    )
