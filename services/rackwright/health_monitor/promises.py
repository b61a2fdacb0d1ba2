"""What the witnesses of the suspected promise in their heartbeats, from the suspicion on."""

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Attend, Effect, Heard
from rackwright.core.policy.witnesses import covered
from rackwright.health_monitor.state import State
from rackwright.wire.ids import NodeId

MOST_ATTENDED = 512  # those that are suspected later have their turn when earlier ones are settled


def heard(state: State, fleet: Fleet, event: Heard) -> None:
    """A heartbeat of a witness: it is bound until the end of its promise, at the least."""
    sent_after = state.marks.after(event.head)
    if sent_after is not None:
        state.covers[event.node] = covered(
            state.covers[event.node], event.mono, sent_after, event.steady_s, fleet.policy
        )


def attend(state: State, fleet: Fleet) -> list[Effect]:
    """Listen to the witnesses of those who are suspected now, and to no others."""
    if not state.suspicions and not state.covers:
        return []
    wanted: dict[NodeId, None] = {}
    for name in state.suspicions:
        terms = fleet.node(name).witnesses
        if terms is not None and state.owns_node(fleet, name):
            wanted.update(dict.fromkeys(one for one in terms.nodes if one in fleet.places))
    state.covers = {name: state.covers.get(name) for name in wanted}
    others = [name for name in wanted if not state.owns_node(fleet, name)][:MOST_ATTENDED]
    if state.attended == frozenset(others):
        return []
    state.attended = frozenset(others)
    named = tuple((fleet.rack_name(fleet.places[name].rack), name) for name in sorted(others))
    return [Attend(nodes=named)]
