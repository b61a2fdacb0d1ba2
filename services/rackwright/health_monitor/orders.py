"""Wishes of operators about nodes: each is answered once, granted or refused with the reason."""

from rackwright.core.fleet import Fleet
from rackwright.core.legality import illegal
from rackwright.core.machine import Event, Offer, Wished
from rackwright.core.policy.checks import REPAIRED, lacks_check
from rackwright.core.policy.probation import in_repair
from rackwright.core.policy.rights import forbidden
from rackwright.core.racks import Node
from rackwright.health_monitor.returns import recovered
from rackwright.health_monitor.state import State
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.node import (
    NodeCheckAsked,
    NodeCordoned,
    NodeUncordoned,
    RepairRequested,
)
from rackwright.wire.ids import NodeId
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.nodes import RepairAction
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import NODE_WISHES, Cordon, Drain, Repaired, Repairing, Uncordon

SERVICE = "health-monitor"
NodeWish = Cordon | Drain | Uncordon | Repaired | Repairing


def hear(state: State, fleet: Fleet, event: Wished) -> None:
    """A wish; those about other things are other services'."""
    state.heard_to = max(state.heard_to, event.seq)
    if isinstance(event.wish, NODE_WISHES) and not fleet.answered(SERVICE, event.seq):
        state.wishes[event.seq] = event


def answered_to(state: State, fleet: Fleet, besides: tuple[Entry, ...] = ()) -> int | None:
    """Up to which sequence every wish is answered once `besides` are in; None: as far as known."""
    now = {entry.wish for entry in besides}
    waiting = [seq for seq in state.wishes if seq not in now]
    floor = min(waiting) - 1 if waiting else state.heard_to
    answers = fleet.answers.get(SERVICE)
    return floor if floor > (answers.floor if answers is not None else 0) else None


def answers(state: State, fleet: Fleet, event: Event) -> Offer | None:
    """Answer the oldest wishes, as many as have answers of one type about different nodes."""
    entries: list[Entry] = []
    nodes: set[NodeId] = set()
    for seq in sorted(state.wishes):
        wished = state.wishes[seq]
        if fleet.answered(SERVICE, seq):
            del state.wishes[seq]
            continue
        if not _mine(state, fleet, wished):
            continue
        entry = answer(fleet, wished, event)
        node = wished.wish.node if isinstance(wished.wish, NodeWish) else None
        if node is None or node in nodes or (entries and type(entry) is not type(entries[0])):
            break
        nodes.add(node)
        entries.append(entry)
        if len(entries) == MAX_ENTRIES:
            break
    if not entries:
        return None
    made = tuple(entries)
    return Offer(entries=made, wishes_to=answered_to(state, fleet, made))


def _mine(state: State, fleet: Fleet, wished: Wished) -> bool:
    """The copy of the node's rack answers; the first one for nodes that nobody knows."""
    wish = wished.wish
    if not isinstance(wish, NodeWish):
        return False
    if wish.node not in fleet.places:
        return state.ordinal == 0
    return state.owns_node(fleet, wish.node)


def answer(fleet: Fleet, wished: Wished, event: Event) -> Entry:
    """The entry that answers this wish on this fleet."""
    wish, owner = wished.wish, wished.owner
    assert isinstance(wish, NodeWish)
    problem = forbidden(fleet, owner, wish)
    if problem is not None:
        return refused(wished, problem)
    if wish.node not in fleet.places:
        return refused(wished, Reason(code="unknown-node", numbers={"node": wish.node}))
    made: Entry
    match wish:
        case Cordon() | Drain():
            made = NodeCordoned(
                node=wish.node,
                drain=isinstance(wish, Drain),
                by=owner,
                why=wish.why,
                wish=wished.seq,
                cause=wished.id,
            )
        case Uncordon():
            made = NodeUncordoned(node=wish.node, by=owner, wish=wished.seq, cause=wished.id)
        case Repaired():
            return _repaired(fleet, wished, wish, event)
        case Repairing():
            return _repairing(fleet, wished, wish, event)
    why = illegal(fleet, made)
    if why is not None:
        return refused(wished, Reason(code="already", numbers={"why": why}))
    return made


def _repaired(fleet: Fleet, wished: Wished, wish: Repaired, event: Event) -> Entry:
    node = fleet.node(wish.node)
    problem = _not_repaired(fleet, node, wish)
    if problem is not None:
        return refused(wished, problem)
    if lacks_check(node):
        return _check_first(fleet, node, wished)
    made = recovered(fleet, node, event, f"repaired.{wish.action}")
    numbers = {**made.reason.numbers, "by": wished.owner, "why": wish.why}
    return type(made)(
        node=made.node,
        of=made.of,
        fitness=made.fitness,
        probation_until=made.probation_until,
        reason=Reason(code=made.reason.code, numbers=numbers),
        serial=made.serial,
        wish=wished.seq,
        cause=wished.id,
    )


def _check_first(fleet: Fleet, node: Node, wished: Wished) -> Entry:
    """It has a check to make: it is back when that has passed."""
    made = NodeCheckAsked(
        node=node.name, of=node.last, why=REPAIRED, wish=wished.seq, cause=wished.id
    )
    why = illegal(fleet, made)
    return made if why is None else refused(wished, Reason(code="already", numbers={"why": why}))


def _repairing(fleet: Fleet, wished: Wished, wish: Repairing, event: Event) -> Entry:
    """The repair that was asked for has a date now."""
    node = fleet.node(wish.node)
    if not in_repair(node):
        return refused(wished, Reason(code="not-in-repair"))
    return RepairRequested(
        node=node.name,
        of=node.last,
        action=node.repair or RepairAction.INSPECT,
        eta=event.now + wish.in_s,
        reason=Reason(code="repairing", numbers={"by": wished.owner, "in_s": wish.in_s}),
        wish=wished.seq,
        cause=wished.id,
    )


def _not_repaired(fleet: Fleet, node: Node, wish: Repaired) -> Reason | None:
    """Why the word of the repairer cannot be taken, if it cannot."""
    if not in_repair(node):
        return Reason(code="not-in-repair")
    if node.session is None or node.hardware is None:
        return Reason(code="not-joined")
    if wish.serial is not None and wish.serial != node.hardware.serial:
        numbers: dict[str, int | float | str] = {
            "said": wish.serial,
            "found": node.hardware.serial,
        }
        return Reason(code="other-serial", numbers=numbers)
    wanted = fleet.racks[fleet.places[node.name].rack].spec.gpus_per_node
    if node.hardware.gpus < wanted:
        return Reason(code="gpu-count", numbers={"found": node.hardware.gpus, "wanted": wanted})
    return None


def refused(wished: Wished, reason: Reason) -> WishRefused:
    """Understood, and not granted."""
    wish = wished.wish
    assert isinstance(wish, NodeWish)
    return WishRefused(
        kind=wish.TYPE,
        owner=wished.owner,
        subject=wish.node,
        reason=reason,
        wish=wished.seq,
        cause=wished.id,
    )
