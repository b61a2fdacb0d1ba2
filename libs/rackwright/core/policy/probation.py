"""The way back into service: what a fault asks for, when it is answered, and how long a node that
had faults is trusted with little only."""

from rackwright.core.racks import Node, NodeFault
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.policy import Policy

MEMORY_S = 30 * 86_400.0  # faults older than that are forgotten
SILENCE = "silence"
ACTION_ORDER = {action: place for place, action in enumerate(RepairAction)} | {
    RepairAction.INSPECT: 3,
    RepairAction.REPLACE: 4,
}
# What a boot does by itself: it resets GPUs too.
BY_BOOT = frozenset({None, RepairAction.NONE, RepairAction.RESET, RepairAction.REBOOT})


def gravest(one: RepairAction | None, other: RepairAction) -> RepairAction:
    """The action that includes both."""
    if one is None:
        return other
    return max(one, other, key=ACTION_ORDER.__getitem__)


def recent_faults(node: Node, now: float) -> tuple[NodeFault, ...]:
    """Faults of the last 30 days of ledger time."""
    return tuple(fault for fault in node.faults if fault.at > now - MEMORY_S)


def lemon(node: Node, policy: Policy, now: float) -> bool:
    """So many faults in 30 days that only a person lets it in again?"""
    return len(recent_faults(node, now)) >= policy.lemon_faults


def probation_until(node: Node, policy: Policy, now: float) -> float:
    """Ledger time until which a node that returns now is on probation.

    `probation_s`, doubled by each fault in 30 days, at most `probation_max_s`; the fault that it
    returns from is the first and doubles it too (policy page, 1.18: 1 h x 2^n).
    """
    faults = len(recent_faults(node, now))
    return now + min(policy.probation_s * 2.0**faults, policy.probation_max_s)


def outstanding(node: Node) -> tuple[NodeFault, ...]:
    """Faults since the node was last let in."""
    return tuple(fault for fault in node.faults if fault.at > node.recovered_at)


def answered_by_join(node: Node) -> bool:
    """Is nothing left of its faults, now that it has joined again?

    Silence ends with any join; another fault needs a boot since then, if a boot can heal it at all.
    """
    if node.repair not in BY_BOOT:
        return False
    return all(fault.code == SILENCE or fault.boot != node.boot for fault in outstanding(node))


def returns(node: Node, gpus: int, policy: Policy, now: float) -> bool:
    """May this node come back into service without anybody's word?

    `gpus` is how many it should have. Only a node that was taken out returns; a first join is no
    return, nor is one of a node that has faults enough to be a lemon.
    """
    out = node.failed or (node.fitness is not Fitness.FULL and node.repair is not None)
    if not out or node.session is None or node.suspected:
        return False
    if node.hardware is None or node.hardware.gpus < gpus:
        return False
    return answered_by_join(node) and not lemon(node, policy, now)


def in_repair(node: Node) -> bool:
    """Is there anything that a repair would answer?"""
    return node.failed or node.fitness is not Fitness.FULL or node.repair is not None
