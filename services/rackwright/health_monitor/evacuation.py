"""Nodes that work is to leave in good time: planned maintenance, and racks that must be evacuated.

They are drained as an operator would: no new work, and what can be restarted leaves by the recovery
ladder with notice. When the window or the trouble is over they take work again, unless an operator
had taken them out.
"""

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import Job
from rackwright.core.machine import Event, Offer
from rackwright.core.policy.windows import leaves
from rackwright.core.racks import Node
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.nodes import RackFitness

BY = Owner("health-monitor")
MAINTENANCE = "maintenance"
LOOK_S = 1.0
REST = 2.0  # what has not saved by then (in `maintenance_force_s`) leaves all the same


def to_leave(fleet: Fleet, now: float) -> dict[NodeId, str]:
    """Nodes that work is to leave now, and because of what."""
    found: dict[NodeId, str] = {}
    for number, rack in fleet.racks.items():
        if rack.fitness is RackFitness.EVACUATE:
            found |= dict.fromkeys(fleet.racks[number].spec.nodes, "rack-event")
    for window in fleet.maintenance:
        if window.begin - window.notice_s <= now < window.end:
            for name in window.racks:
                found |= dict.fromkeys(fleet.rack(name).spec.nodes, MAINTENANCE)
            found |= dict.fromkeys(window.nodes, MAINTENANCE)
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
                drain = because != MAINTENANCE or _may_leave(state, fleet, node, event.now)
                if drain or not node.cordoned:
                    drains.append(_ordered(node, because, drain))
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


def _ordered(node: Node, because: str, drain: bool) -> NodeCordoned:
    """One that an operator had cordoned stays theirs to let in again."""
    mine = because if node.cordoned_for or not node.cordoned else ""
    return NodeCordoned(node=node.name, drain=drain, by=BY, why=because, because=mine)


def _may_leave(state: State, fleet: Fleet, node: Node, now: float) -> bool:
    """Has all work there saved since the notice, or is there no more time to wait for that?"""
    window = min(
        (one for one in fleet.maintenance if _covers(fleet, one, node, now)),
        key=lambda one: one.begin,
    )
    if now >= window.begin - REST * fleet.policy.maintenance_force_s:
        return True
    place = fleet.places[node.name]
    jobs = {tenancy.job for tenancy in fleet.racks[place.rack].tenants_at(place.node)}
    since = window.begin - window.notice_s
    return all(_saved(state, fleet, fleet.jobs[name], since) for name in jobs)


def _covers(fleet: Fleet, window: Maintenance, node: Node, now: float) -> bool:
    if not window.begin - window.notice_s <= now < window.end:
        return False
    rack = fleet.rack_name(fleet.places[node.name].rack)
    return rack in window.racks or node.name in window.nodes


def _saved(state: State, fleet: Fleet, job: Job, since: float) -> bool:
    """Would it lose nothing by leaving: all its ranks that tell of checkpoints have since, or it
    saves on notice, or it is not made to leave at all?"""
    if not leaves(job) or job.spec.checkpoint.on_notice_s is not None:
        return True
    told: list[float] = []
    for part in job.slices:
        for rank, place in enumerate(part.nodes, part.first_rank):
            seen = state.statuses.get(fleet.node_at(part.rack, place).name)
            worker = part.worker(job.id, rank)
            told += [
                one.checkpoint_at
                for one in (seen.status.workers if seen is not None else ())
                if one.worker == worker and one.checkpoint_at is not None
            ]
    return bool(told) and min(told) >= since
