"""Who is to blame: one fault against what the fleet says of its node, many against their rack.

Pure functions over the fleet. A fault that changes nothing about its node does nothing, so a
replayed or repeated one is harmless; a symptom never takes a node out of service.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from rackwright.core.fleet import Fleet
from rackwright.core.policy.probation import SILENCE, gravest
from rackwright.core.policy.xids import NVLINK5, Verdict, after_reboots, classify
from rackwright.core.racks import Node, NodeFault, Rack
from rackwright.wire.entries.node import NodeUnfit
from rackwright.wire.ids import MessageId
from rackwright.wire.nodes import FITNESS_ORDER, Fitness, RackFitness, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import Fault, SignalKind

# Faults of one node alone: they make no rack suspect. Silence is judged by the rack's silence.
ALONE = frozenset(
    {
        SILENCE,
        SignalKind.HOOK_FAILED.value,
        SignalKind.KILL_FAILED.value,
        SignalKind.IB_DOWN.value,
    }
)
FABRIC = frozenset({SignalKind.NVLINK_DOWN, SignalKind.FABRIC})
RACK_ORDER = {fitness: place for place, fitness in enumerate(RackFitness)}


class Answer(StrEnum):
    """What a fault comes to, given its node as the fleet has it.

    out: good for less now. later: something is to be done when its work has left. symptom: wait for
    a culprit in the rack. rack: part of an event of the whole rack, which has been declared. wait:
    the node has not joined yet. known: it is out for as much already, or the fault is older than
    its return. nothing: no fault of the node; told to people if it is not understood.
    """

    OUT = "out"
    LATER = "later"
    SYMPTOM = "symptom"
    RACK = "rack"
    WAIT = "wait"
    KNOWN = "known"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A fault with its message's id, the server's time of it, and the verdict on it alone."""

    fault: Fault
    id: MessageId
    at: float
    verdict: Verdict


def evidence(fault: Fault, message: MessageId, at: float) -> Evidence:
    """A fault, judged by itself."""
    return Evidence(fault=fault, id=message, at=at, verdict=classify(fault))


def alone(found: Evidence) -> Evidence:
    """A symptom for which nobody else is to blame: it asks for a later repair at most."""
    return replace(found, verdict=replace(found.verdict, symptom=False, fitness=Fitness.FULL))


def graver(one: Evidence | None, other: Evidence) -> Evidence:
    """Of two pieces of evidence against a node the one that takes more from it; else the first."""
    if one is None:
        return other
    left = FITNESS_ORDER[one.verdict.fitness]
    right = FITNESS_ORDER[other.verdict.fitness]
    if right != left:
        return other if right < left else one
    action = gravest(one.verdict.action, other.verdict.action)
    return one if action is one.verdict.action else other


def _reboots(node: Node, code: str) -> int:
    """How many boots have not healed this signal."""
    return len({fault.boot for fault in node.faults if fault.code == code} - {node.boot})


def verdict_on(node: Node, found: Evidence) -> Verdict:
    """The verdict in the light of the node's history."""
    return after_reboots(found.verdict, _reboots(node, found.verdict.code))


def answer(rack: Rack, place: int, found: Evidence) -> Answer:
    """What this fault comes to on the node at that place of the rack."""
    node = rack.nodes[place]
    verdict = verdict_on(node, found)
    if found.at <= node.recovered_at:
        return Answer.KNOWN
    if verdict.symptom:
        idle = rack.free >> place & 1
        return Answer.NOTHING if verdict.only_in_use and idle else Answer.SYMPTOM
    if verdict.fitness is Fitness.FULL:
        return _later(node, verdict)
    if node.session is None and not node.failed:
        return Answer.WAIT
    if _of_the_rack(rack, found.fault):
        return Answer.RACK
    if FITNESS_ORDER[verdict.fitness] < FITNESS_ORDER[node.fitness]:
        return Answer.OUT
    return Answer.KNOWN if gravest(node.repair, verdict.action) is node.repair else Answer.LATER


def _later(node: Node, verdict: Verdict) -> Answer:
    """A reset or reboot that can wait is asked for; an inspection that can wait is only told."""
    if verdict.action not in {RepairAction.RESET, RepairAction.REBOOT, RepairAction.REPLACE}:
        return Answer.NOTHING
    asked = node.repair is not None and gravest(node.repair, verdict.action) is node.repair
    return Answer.KNOWN if asked else Answer.LATER


def _of_the_rack(rack: Rack, fault: Fault) -> bool:
    """Once the rack as a whole is out, its nodes' lost links say nothing of the nodes."""
    if RACK_ORDER[rack.fitness] < RACK_ORDER[RackFitness.EVACUATE]:
        return False
    return fault.kind in FABRIC or fault.xid in NVLINK5


def unfit(node: Node, found: Evidence) -> NodeUnfit:
    """The entry that takes the culprit out (or leaves it good for less)."""
    verdict, fault = verdict_on(node, found), found.fault
    return NodeUnfit(
        node=fault.node,
        of=node.last,
        fitness=min(verdict.fitness, node.fitness, key=FITNESS_ORDER.__getitem__),
        action=gravest(node.repair, verdict.action),
        gpu=fault.gpu,
        observed_at=fault.observed_at,
        reason=because(found, verdict),
        serial=serial_of(node),
        cause=found.id,
    )


def serial_of(node: Node) -> str:
    """The hardware that is in this slot, as far as its agent has told."""
    return node.hardware.serial if node.hardware is not None else ""


def moved(node: Node, fault: NodeFault) -> NodeUnfit:
    """The entry that takes out hardware which has a fault in another slot that nobody answered."""
    return NodeUnfit(
        node=node.name,
        of=node.last,
        fitness=Fitness.NONE,
        action=RepairAction.INSPECT,
        reason=Reason(code="moved", numbers={"serial": serial_of(node), "fault": fault.code}),
        serial=serial_of(node),
        counts=False,
    )


def because(found: Evidence, verdict: Verdict) -> Reason:
    """The code of the verdict, and the numbers of the fault behind it."""
    fault = found.fault
    numbers: dict[str, int | float | str] = {"count": fault.count}
    for name in ("xid", "gpu", "link", "value"):
        number = getattr(fault, name)
        if number is not None:
            numbers[name] = number
    return Reason(code=verdict.code, numbers=numbers)


def culprits(rack: Rack, policy: Policy, now: float) -> tuple[Node, ...]:
    """Nodes of the rack that were named culprits within the symptom window before `now`."""
    since = now - policy.symptom_window_s
    return tuple(
        node
        for node in rack.nodes
        if any(fault.at > since and fault.code not in ALONE for fault in node.faults[-3:])
    )


def explained(rack: Rack, policy: Policy, now: float) -> bool:
    """Is there somebody in the rack whose loss makes symptoms elsewhere in it? The dead count."""
    since = now - policy.symptom_window_s
    return bool(culprits(rack, policy, now)) or any(
        (node.suspected and node.suspected_at > since)
        or any(fault.at > since and fault.code == SILENCE for fault in node.faults[-3:])
        for node in rack.nodes
    )


def rack_verdict(rack: Rack, policy: Policy, now: float) -> RackFitness:
    """What the culprits of the last seconds say of the rack: policy page, 1.7.

    Two within the window make it suspect: no new slices. `rack_event_nodes` are an event of the
    rack: what runs in it leaves. Never better than what the fleet says already.
    """
    count = len(culprits(rack, policy, now))
    said = RackFitness.GOOD
    if count >= policy.rack_event_nodes:
        said = RackFitness.EVACUATE
    elif count >= 2:
        said = RackFitness.DEGRADED
    return max(said, rack.fitness, key=RACK_ORDER.__getitem__)


def rack_may_return(rack: Rack, policy: Policy, now: float) -> bool:
    """May a rack that its culprits made suspect be trusted again?

    After `probation_s` without another; after an event of the rack only when nothing in it waits
    for repair any more. A rack that somebody declared down stays so.
    """
    if rack.fitness not in {RackFitness.DEGRADED, RackFitness.EVACUATE}:
        return False
    if rack.demerits and now < rack.demerits[-1] + policy.probation_s:
        return False
    if rack.fitness is RackFitness.EVACUATE:
        return all(node.repair is None and not node.failed for node in rack.nodes)
    return True


def missing_gpus(fleet: Fleet, node: Node, message: MessageId, at: float) -> Evidence | None:
    """Evidence against a node that joined with fewer GPUs than its rack is made of."""
    rack = fleet.racks[fleet.places[node.name].rack]
    if node.hardware is None or node.session is None:
        return None
    if node.hardware.gpus >= rack.spec.gpus_per_node:
        return None
    fault = Fault(
        node=node.name,
        rack=rack.spec.rack,
        session=node.session,
        kind=SignalKind.GPU_COUNT,
        value=float(node.hardware.gpus),
    )
    return evidence(fault, message, at)
