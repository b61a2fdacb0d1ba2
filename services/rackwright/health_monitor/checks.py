"""Checks: whom to ask for one, what they answer, and who does not answer."""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Event
from rackwright.core.policy.breaker import breaker_open
from rackwright.core.policy.checks import (
    IDLE,
    PATIENCE,
    SUSPECT,
    can_check,
    is_idle,
    spare_due,
)
from rackwright.core.racks import Node
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import NodeCheckAsked, NodeChecked
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import CheckResult

SAID = 200  # characters of a check's last words in the ledger


def follow(state: State, node: Node, mono: float) -> None:
    """Note whose answer is waited for, as the fleet has it now; a cordon may end with it."""
    if node.cordoned_for:
        state.evacuate_at = 0.0
    if node.check:
        state.asked.setdefault(node.name, mono)
    else:
        state.asked.pop(node.name, None)
        state.answers.pop(node.name, None)


def suspect(state: State, fleet: Fleet, job: JobId) -> None:
    """A job was stopped because nodes wedge under it: those it had are checked before others."""
    for worker in fleet.leaving_of.get(job, ()):
        place = fleet.leaving[worker]
        node = fleet.node_at(place.rack, place.node)
        if can_check(node) and state.owns_node(fleet, node.name):
            state.checks[node.name] = SUSPECT


def find_due(state: State, fleet: Fleet, now: float) -> None:
    """Idle spares of this copy's racks that have not been checked for long."""
    for rack in fleet.racks.values():
        if not rack.shape.target or not state.owns(rack.spec.rack):
            continue
        for place, node in enumerate(rack.nodes):
            if spare_due(rack, place, fleet.policy, now):
                state.checks.setdefault(node.name, IDLE)


def find_answers(state: State, fleet: Fleet, event: Event) -> None:
    """Who has answered, or has had an idle node for too long and has not.

    With the breaker open a check that fails in service is not believed yet: it is looked at again.
    """
    if not state.asked:
        return
    doubt = breaker_open(fleet, event.now)
    for name, since in state.asked.items():
        place = fleet.places[name]
        rack = fleet.racks[place.rack]
        node = rack.nodes[place.node]
        found = _result(state, node)
        if found is None:
            quiet = node.session is not None and not node.suspected
            if not quiet or not is_idle(rack, place.node):
                state.asked[name] = event.mono
                continue
            if event.mono < since + PATIENCE * fleet.policy.check_limit_s:
                continue
        passed = found is not None and found.passed
        if passed or not doubt or node.fitness is Fitness.NONE:
            state.answers[name] = None


def _result(state: State, node: Node) -> CheckResult | None:
    seen = state.statuses.get(node.name)
    if seen is None or seen.status.session != node.session or seen.status.check is None:
        return None
    return seen.status.check if seen.status.check.asked == node.check else None


def asked(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeCheckAsked | None:
    """Ask for it, unless that has been done."""
    node, why = fleet.node(name), state.checks[name]
    if not can_check(node) or (node.check and node.check_why == why):
        return None
    return NodeCheckAsked(node=name, of=node.last, why=why, hold=why == SUSPECT)


def answered(state: State, fleet: Fleet, name: NodeId, event: Event) -> NodeChecked | None:
    """What the node said, or that it said nothing."""
    node = fleet.node(name)
    if not node.check:
        return None
    found = _result(state, node)
    if found is None:
        waited = round(event.mono - state.asked.get(name, event.mono), 1)
        reason = Reason(code="check.unanswered", numbers={"waited_s": waited})
    elif found.passed:
        reason = Reason(code="check.passed", numbers={"seconds": round(found.seconds, 3)})
    else:
        code: int | str = "no exit code" if found.code is None else found.code
        said = " ".join(found.said.split())[-SAID:]
        reason = Reason(code="check.failed", numbers={"code": code, "said": said})
    return NodeChecked(
        node=name,
        of=node.last,
        asked=node.check,
        passed=found is not None and found.passed,
        reason=reason,
        serial=node.hardware.serial if node.hardware is not None else "",
        cause=state.statuses[name].id if found is not None else None,
    )
