"""How the fleet changes by entries about checks of nodes."""

from rackwright.core.fleet import Fleet
from rackwright.core.fold.nodes import node_unfit, put_node
from rackwright.wire.entries.node import NodeCheckAsked, NodeChecked, NodeUnfit
from rackwright.wire.nodes import Fitness, RepairAction


def node_check_asked(fleet: Fleet, entry: NodeCheckAsked) -> None:
    """It waits for the node's answer."""
    place = fleet.places[entry.node]
    put_node(fleet, place, check=fleet.seq, check_why=entry.why, check_holds=entry.hold)


def node_checked(fleet: Fleet, entry: NodeChecked) -> None:
    """Answered; one that has not passed is as unfit as any, if it was not so already."""
    place = fleet.places[entry.node]
    node = fleet.racks[place.rack].nodes[place.node]
    put_node(
        fleet,
        place,
        check=0,
        check_holds=False,
        checked_at=fleet.time,
        check_passed=entry.passed,
    )
    if entry.passed:
        return
    if node.fitness is Fitness.NONE:
        put_node(fleet, place, why=entry.reason.code)
        return
    unfit = NodeUnfit(
        node=entry.node,
        of=entry.of,
        fitness=Fitness.NONE,
        action=RepairAction.INSPECT,
        observed_at=fleet.time,
        reason=entry.reason,
        serial=entry.serial,
    )
    node_unfit(fleet, unfit)
