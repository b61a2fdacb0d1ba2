"""Nodes that work is to leave in good time: planned maintenance, and racks that must be evacuated.

They are drained as an operator would: no new work, and what can be restarted leaves by the recovery
ladder with notice. When the window or the trouble is over they take work again, unless an operator
had taken them out.
"""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Event, Offer
from rackwright.core.racks import Node
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.nodes import RackFitness

BY = Owner("health-monitor")
LOOK_S = 1.0


def to_leave(fleet: Fleet, now: float) -> dict[NodeId, str]:
    """Nodes that work is to leave now, and because of what."""
    found: dict[NodeId, str] = {}
    for number, rack in fleet.racks.items():
        if rack.fitness is RackFitness.EVACUATE:
            found |= dict.fromkeys(fleet.racks[number].spec.nodes, "rack-event")
    for window in fleet.maintenance:
        if window.begin - window.notice_s <= now < window.end:
            for name in window.racks:
                found |= dict.fromkeys(fleet.rack(name).spec.nodes, "maintenance")
            found |= dict.fromkeys(window.nodes, "maintenance")
    return found


def evacuate(state: State, fleet: Fleet, event: Event) -> Offer | None:
    """The next commit of drains, or of their ends; looked for once a second while there is need."""
    if event.mono < state.evacuate_at or not _need(state, fleet):
        return None
    leave = to_leave(fleet, event.now)
    state.evacuating = bool(leave)
    drains: list[NodeCordoned] = []
    ends: list[NodeUncordoned] = []
    for rack in fleet.racks.values():
        if not state.owns(rack.spec.rack):
            continue
        for node in rack.nodes:
            because = leave.get(node.name)
            state.evacuating |= node.cordoned_for != ""
            if because is not None and not node.draining:
                drains.append(_drained(node, because))
            elif because is None and node.cordoned_for:
                ends.append(NodeUncordoned(node=node.name, by=BY))
    if drains:
        return Offer(entries=tuple(drains[:MAX_ENTRIES]))
    if ends:
        return Offer(entries=tuple(ends[:MAX_ENTRIES]))
    state.evacuate_at = event.mono + LOOK_S
    return None


def _need(state: State, fleet: Fleet) -> bool:
    return bool(fleet.maintenance or state.troubled or state.evacuating)


def _drained(node: Node, because: str) -> NodeCordoned:
    """One that an operator had cordoned stays theirs to let in again."""
    mine = "" if node.cordoned else because
    return NodeCordoned(node=node.name, drain=True, by=BY, why=because, because=mine)
