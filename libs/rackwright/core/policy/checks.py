"""Which nodes are to be checked, and what for: policy page, 1.18 and 1.21.

Only nodes whose site has given them a check are asked for one. A check needs a node on which
nothing runs; the agent makes it wait, and begins anew, while something does.
"""

from rackwright.core.racks import Node, Rack
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy

IDLE = "idle"
RETURNED = "returned"
REPAIRED = "repaired"
SUSPECT = "suspect"
SWAP = "swap"  # also what such a node is cordoned for
PATIENCE = 2.0  # check limits: the agent ends a check at the first


def can_check(node: Node) -> bool:
    """Is there an agent that can be asked?"""
    return node.session is not None and node.hardware is not None and node.hardware.checks


def spare_due(rack: Rack, place: int, policy: Policy, now: float) -> bool:
    """Is this an idle spare that has not been checked for `check_every_s`?"""
    node = rack.nodes[place]
    if not rack.shape.target or not rack.usable >> place & 1 or node.check:
        return False
    since = max(node.checked_at, node.recovered_at)
    return can_check(node) and now >= since + policy.check_every_s


def is_idle(rack: Rack, place: int) -> bool:
    """Does nothing run there, and nothing end there?"""
    return bool(rack.free >> place & 1) and all(one.node != place for one in rack.leaving)


def lacks_check(node: Node) -> bool:
    """Has a node that could return still to pass a check since its last fault?"""
    if not can_check(node):
        return False
    return not (node.check_passed and node.checked_at > _last_fault(node))


def failed_check(node: Node) -> bool:
    """Was the last that is known of it a check that it did not pass?"""
    return not node.check_passed and node.checked_at > max(node.recovered_at, _last_fault(node))


def _last_fault(node: Node) -> float:
    return max((fault.at for fault in node.faults), default=0.0)


def vouched(node: Node) -> bool:
    """Has somebody said that it is repaired, and has it passed the check that followed?"""
    return node.check_why == REPAIRED and not node.check and not lacks_check(node)


def swap_check_due(node: Node) -> bool:
    """Did a rank leave this node on somebody's word, and could a check say whether it is good?"""
    able = can_check(node) and not node.suspected and node.fitness is not Fitness.NONE
    return node.cordoned_for == SWAP and able and not node.check and not swap_cleared(node)


def swap_cleared(node: Node) -> bool:
    """Has it passed the check that followed?"""
    return node.check_why == SWAP and not node.check and node.check_passed
