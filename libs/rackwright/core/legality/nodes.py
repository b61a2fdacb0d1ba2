"""Legality of entries of the nouns `node`, `rack` and `maintenance`."""

from collections.abc import Callable
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.racks import Node
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCheckAsked,
    NodeChecked,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    Observation,
    RackDefined,
    RackDegraded,
    RackHeld,
    RackIsolated,
    RackReleased,
)
from rackwright.wire.nodes import FITNESS_ORDER


def _seen(fleet: Fleet, entry: Observation) -> Node | str:
    """The node, if the observer knew its last entry: the compare that observations have."""
    if entry.node not in fleet.places:
        return f"no node {entry.node}"
    node = fleet.node(entry.node)
    if entry.of != node.last:
        return f"node {entry.node} has moved on to {node.last}, {entry.of} was seen"
    return node


def _observed(fleet: Fleet, entry: Observation) -> str | None:
    node = _seen(fleet, entry)
    return node if isinstance(node, str) else None


def _joined(fleet: Fleet, entry: NodeJoined) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if node.session == entry.session:
        return f"session {entry.session} of {entry.node} is known"
    if node.fenced == entry.session:
        return f"session {entry.session} of {entry.node} was fenced: it is over for good"
    return None


def _unfit(fleet: Fleet, entry: NodeUnfit) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if FITNESS_ORDER[entry.fitness] >= FITNESS_ORDER[node.fitness]:
        return f"node {entry.node} is fit for {node.fitness} at most already"
    return None


def _suspected(fleet: Fleet, entry: NodeSuspected) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if node.session != entry.session:
        return f"session {entry.session} of {entry.node} is not the current one"
    if node.suspected:
        return f"node {entry.node} is suspected already"
    return None


def _cleared(fleet: Fleet, entry: NodeCleared) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if not node.suspected or node.session != entry.session:
        return f"session {entry.session} of {entry.node} is not suspected"
    return None


def _failed(fleet: Fleet, entry: NodeFailed) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if entry.session is not None and node.session != entry.session:
        return f"session {entry.session} of {entry.node} is not the current one"
    if entry.fenced and not node.suspected:
        return f"node {entry.node} is not suspected: nothing has recalled its lease"
    return None


def _recovered(fleet: Fleet, entry: NodeRecovered) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if node.session is None:
        return f"node {entry.node} has no session"
    return None


def _check_asked(fleet: Fleet, entry: NodeCheckAsked) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if node.session is None or node.hardware is None or not node.hardware.checks:
        return f"node {entry.node} has no check to make"
    if node.check and node.check_why == entry.why:
        return f"node {entry.node} has been asked for a check already ({entry.why})"
    return None


def _checked(fleet: Fleet, entry: NodeChecked) -> str | None:
    node = _seen(fleet, entry)
    if isinstance(node, str):
        return node
    if entry.asked != node.check:
        return f"node {entry.node} was asked at {node.check}, not at {entry.asked}"
    return None


def _known(fleet: Fleet, node: str) -> str | None:
    return None if node in fleet.places else f"no node {node}"


def _cordoned(fleet: Fleet, entry: NodeCordoned) -> str | None:
    problem = _known(fleet, entry.node)
    if problem is not None:
        return problem
    node = fleet.node(entry.node)
    if node.cordoned and node.draining >= entry.drain:
        return f"node {entry.node} is {'drained' if entry.drain else 'cordoned'} already"
    return None


def _uncordoned(fleet: Fleet, entry: NodeUncordoned) -> str | None:
    problem = _known(fleet, entry.node)
    if problem is not None:
        return problem
    return None if fleet.node(entry.node).cordoned else f"node {entry.node} is not cordoned"


def _defined(fleet: Fleet, entry: RackDefined) -> str | None:
    spec = entry.rack
    if len(set(spec.nodes)) != len(spec.nodes):
        return f"rack {spec.rack} names a node twice"
    known = fleet.rack_numbers.get(spec.rack)
    here: tuple[str, ...] = ()
    if known is not None:
        old = fleet.racks[known].spec
        here = old.nodes
        if spec.nodes[: len(here)] != here:
            return f"rack {spec.rack}: nodes are only added at the end"
        if spec.path != old.path:
            return f"rack {spec.rack} is at {'/'.join(old.path)}, it cannot move"
        if spec == old:
            return f"rack {spec.rack} is defined so already"
    for name in spec.nodes[len(here) :]:
        place = fleet.places.get(name)
        if place is not None:
            return f"node {name} is in rack {fleet.rack_name(place.rack)}"
    return None


def _rack(fleet: Fleet, entry: Any) -> str | None:
    return None if entry.rack in fleet.rack_numbers else f"no rack {entry.rack}"


def _degraded(fleet: Fleet, entry: RackDegraded) -> str | None:
    problem = _rack(fleet, entry)
    if problem is not None:
        return problem
    if fleet.rack(entry.rack).fitness is entry.fitness:
        return f"rack {entry.rack} is {entry.fitness} already"
    return None


def _isolated(fleet: Fleet, entry: RackIsolated) -> str | None:
    problem = _rack(fleet, entry)
    if problem is not None:
        return problem
    return f"rack {entry.rack} is isolated" if fleet.rack(entry.rack).isolated else None


def _held(fleet: Fleet, entry: RackHeld) -> str | None:
    problem = _rack(fleet, entry)
    if problem is not None:
        return problem
    return f"a hold until {entry.until} is over" if entry.until <= fleet.time else None


def _released(fleet: Fleet, entry: RackReleased) -> str | None:
    problem = _rack(fleet, entry)
    if problem is not None:
        return problem
    held = fleet.rack(entry.rack).held_until > fleet.time
    return None if held else f"rack {entry.rack} is not held"


def _scheduled(fleet: Fleet, entry: MaintenanceScheduled) -> str | None:
    for rack in entry.racks:
        if rack not in fleet.rack_numbers:
            return f"no rack {rack}"
    for node in entry.nodes:
        if node not in fleet.places:
            return f"no node {node}"
    if not entry.racks and not entry.nodes:
        return "maintenance of nothing"
    if not fleet.time < entry.end or not entry.begin < entry.end:
        return "the window lies in the past or ends before it begins"
    return None


def _ended(fleet: Fleet, entry: MaintenanceEnded) -> str | None:
    known = any(window.seq == entry.of for window in fleet.maintenance)
    return None if known else f"no maintenance {entry.of}"


RULES: dict[str, Callable[[Fleet, Any], str | None]] = {
    "node.joined": _joined,
    "node.unfit": _unfit,
    "node.suspected": _suspected,
    "node.cleared": _cleared,
    "node.failed": _failed,
    "node.recovered": _recovered,
    "node.cleaning": _observed,
    "node.repair_requested": _observed,
    "node.check_asked": _check_asked,
    "node.checked": _checked,
    "node.cordoned": _cordoned,
    "node.uncordoned": _uncordoned,
    "rack.defined": _defined,
    "rack.degraded": _degraded,
    "rack.isolated": _isolated,
    "rack.restored": _rack,
    "rack.held": _held,
    "rack.released": _released,
    "maintenance.scheduled": _scheduled,
    "maintenance.ended": _ended,
}
