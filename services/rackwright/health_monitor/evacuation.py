"""Nodes that work is to leave in good time: planned maintenance, and racks that must be evacuated.

They are drained as an operator would: no new work, and what can be restarted leaves by the recovery
ladder with notice. When the window or the trouble is over they take work again, unless an operator
had taken them out. A node that an owner had a rank swapped away from takes work again when it has
passed a check.
"""

from math import inf

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import Job
from rackwright.core.machine import Event, Offer
from rackwright.core.policy.checks import SWAP, swap_check_due, swap_cleared
from rackwright.core.policy.windows import leaves
from rackwright.core.racks import Node
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import NodeCordoned, NodeUncordoned
from rackwright.wire.ids import NodeId, Owner
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.nodes import RackFitness

BY = Owner("health-monitor")
MAINTENANCE = "maintenance"
LOOK_S = 1.0  # while work has still to save, and nobody tells when it has
REST = 2.0  # what has not saved by then (in `maintenance_force_s`) leaves all the same
LONGEST_S = 60.0  # between two looks while windows are planned: clocks may be set


def to_leave(state: State, fleet: Fleet, now: float) -> dict[NodeId, str]:
    """Nodes of this copy's share that work is to leave now, and because of what."""
    found: dict[NodeId, str] = {}
    for name in state.troubled:
        rack = fleet.rack(name)
        if rack.fitness is RackFitness.EVACUATE:
            found |= dict.fromkeys(rack.spec.nodes, "rack-event")
    for window in fleet.maintenance:
        if window.begin - window.notice_s <= now < window.end:
            for name in window.racks:
                if state.owns(name):
                    found |= dict.fromkeys(fleet.rack(name).spec.nodes, MAINTENANCE)
            mine = (node for node in window.nodes if state.owns_node(fleet, node))
            found |= dict.fromkeys(mine, MAINTENANCE)
    return found


def follow(state: State, node: Node) -> None:
    """A node of this copy's share is cordoned, or no longer: look at it at the next turn."""
    if node.cordoned_for:
        state.marked[node.name] = None
    else:
        state.marked.pop(node.name, None)
    state.evacuate_at = 0.0


def evacuate(state: State, fleet: Fleet, event: Event) -> Offer | None:
    """The next commit of drains, or of their ends.

    Looked for when something has changed and when a window comes or goes. Nothing but the nodes
    that are to be left, or were, is looked at.
    """
    if event.mono < state.evacuate_at:
        return None
    leave = to_leave(state, fleet, event.now)
    drains: list[NodeCordoned] = []
    ends: list[NodeUncordoned] = []
    saving = False
    for name in _in_order(fleet, {*leave, *state.marked}):
        node, because = fleet.node(name), leave.get(name)
        if because is None and node.cordoned_for == SWAP and not swap_cleared(node):
            if swap_check_due(node):
                state.checks.setdefault(name, SWAP)
        elif because is None:
            ends.append(NodeUncordoned(node=name, by=BY))
        elif not node.draining:
            drain = because != MAINTENANCE or _may_leave(state, fleet, node, event.now)
            saving |= not drain
            if drain or not node.cordoned:
                drains.append(_ordered(node, because, drain))
    if drains:
        return Offer(entries=tuple(drains[:MAX_ENTRIES]))
    if ends:
        return Offer(entries=tuple(ends[:MAX_ENTRIES]))
    state.evacuate_at = event.mono + (LOOK_S if saving else _rest(fleet, event.now))
    return None


def _in_order(fleet: Fleet, names: set[NodeId]) -> list[NodeId]:
    """By rack, and by place in it."""
    places = fleet.places
    return sorted(names, key=lambda name: (places[name].rack, places[name].node))


def _rest(fleet: Fleet, now: float) -> float:
    """Seconds until a window may ask for something, if nothing else happens."""
    force = REST * fleet.policy.maintenance_force_s
    times = (
        at - now
        for one in fleet.maintenance
        for at in (one.begin - one.notice_s, one.begin - force, one.end)
        if at > now
    )
    return min(min(times, default=inf), LONGEST_S if fleet.maintenance else inf)


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
