"""The way back into service: what a fault asks for, when it is answered, and how long a node that
had faults is trusted with little only."""

from rackwright.core.fleet import Fleet
from rackwright.core.racks import History, Node, NodeFault
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason

MEMORY_S = 30 * 86_400.0  # faults older than that are forgotten
SILENCE = "silence"
NO_HISTORY = History()
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


def history(fleet: Fleet, node: Node) -> History:
    """What the hardware that is in this slot now did, here and elsewhere."""
    serial = node.hardware.serial if node.hardware is not None else ""
    return fleet.histories.get(serial, History())


def counted(node: Node, hardware: History, now: float) -> int:
    """Faults in 30 days of the slot or of the hardware in it, whichever has more."""
    mine = sum(1 for fault in hardware.faults if fault.at > now - MEMORY_S)
    return max(len(recent_faults(node, now)), mine)


def lemon(node: Node, policy: Policy, now: float, hardware: History = NO_HISTORY) -> bool:
    """So many faults of slot or hardware in 30 days that only a person lets it in again?"""
    return counted(node, hardware, now) >= policy.lemon_faults


def lemon_reason(node: Node, policy: Policy, now: float, hardware: History) -> Reason:
    """Whose the faults are: the slot's, in which one board after another fails, or the board's."""
    here = recent_faults(node, now)
    boards = {fault.serial for fault in here if fault.serial}
    faults = counted(node, hardware, now)
    if len(here) >= policy.lemon_faults and len(boards) > 1:
        return Reason(code="lemon.slot", numbers={"faults": len(here), "boards": len(boards)})
    if len(here) < faults and node.hardware is not None:
        numbers: dict[str, int | float | str] = {"faults": faults, "serial": node.hardware.serial}
        return Reason(code="lemon.hardware", numbers=numbers)
    return Reason(code="lemon", numbers={"faults": faults})


def carried(node: Node, hardware: History) -> NodeFault | None:
    """The last fault that this hardware had in another slot, if nobody has let it in since."""
    here = {(fault.at, fault.serial) for fault in node.faults}
    left = [
        fault
        for fault in hardware.faults
        if fault.at > hardware.cleared_at and (fault.at, fault.serial) not in here
    ]
    return left[-1] if left and node.fitness is not Fitness.NONE else None


def probation_until(
    node: Node, policy: Policy, now: float, hardware: History = NO_HISTORY
) -> float:
    """Ledger time until which a node that returns now is on probation.

    `probation_s`, doubled by each fault in 30 days of slot or hardware, at most `probation_max_s`;
    the fault that it returns from is the first and doubles it too (policy page, 1.18: 1 h x 2^n).
    """
    faults = counted(node, hardware, now)
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


def returns(
    node: Node, gpus: int, policy: Policy, now: float, hardware: History = NO_HISTORY
) -> bool:
    """May this node come back into service without anybody's word?

    `gpus` is how many it should have. Only a node that was taken out returns; a first join is no
    return, nor is one of a node that has faults enough to be a lemon.
    """
    out = node.failed or (node.fitness is not Fitness.FULL and node.repair is not None)
    if not out or node.session is None or node.suspected:
        return False
    if node.hardware is None or node.hardware.gpus < gpus:
        return False
    return answered_by_join(node) and not lemon(node, policy, now, hardware)


def in_repair(node: Node) -> bool:
    """Is there anything that a repair would answer?"""
    return node.failed or node.fitness is not Fitness.FULL or node.repair is not None
