"""What one fault says of its node: the judgement of a single signal, before any comparing.

Source: the policy page, rules 1.7 and 1.17, and NVIDIA's Xid workbook (`xid_tables`). A signal that
no table knows asks for nothing but an alert.
"""

import re
from dataclasses import dataclass, replace

from rackwright.core.policy.xid_tables import (
    DECODED,
    HARMLESS_DOWN,
    IMMEDIATE_YET_WATCHED,
    LATER,
    MFDE_NOTHING,
    MFDE_RESET,
    NOT_ON_GB200,
    PEER_SIDE,
    RECOVERY_DRAIN,
    RECOVERY_NAMES,
    RECOVERY_NONE,
    RECOVERY_P2P,
    RECOVERY_REBOOT,
    RECOVERY_RESET,
    REPEATS_MATTER,
    SYMPATHETIC,
    UNITS,
    XIDS,
    SignalClass,
    Unit,
)
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.signals import Fault, SignalKind

REBOOTS_THAT_FAILED = 2  # the same reboot-class signal after so many reboots: replace

NVLINK5 = frozenset({unit.xid for unit in UNITS})
RECOVERY_ACTION = 154


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a fault means.

    `immediate`: judged at once, the node is its own culprit. `symptom`: judged only when a culprit
    of the same rack is known or the window has passed. `fitness` is what the node is good for
    afterwards: it leaves its work only if that is less than full. An `action` beside full fitness
    waits until the node is empty. `names_culprit`: it explains symptoms seen elsewhere in the rack.
    `only_in_use`: on an idle node it is no fault. `repeats_matter`: on one GPU across jobs.
    """

    signal_class: SignalClass
    immediate: bool
    symptom: bool
    fitness: Fitness
    action: RepairAction
    code: str
    names_culprit: bool
    only_in_use: bool = False
    repeats_matter: bool = False


# Fitness afterwards, what to do, whether at once.
_ASKS: dict[SignalClass, tuple[Fitness, RepairAction, bool]] = {
    SignalClass.APPLICATION: (Fitness.FULL, RepairAction.NONE, False),
    SignalClass.WATCH: (Fitness.FULL, RepairAction.NONE, False),
    SignalClass.CONTAINED: (Fitness.FULL, RepairAction.RESET, False),
    SignalClass.SYMPTOM: (Fitness.FULL, RepairAction.NONE, False),
    SignalClass.LIMITED: (Fitness.RACK, RepairAction.INSPECT, True),
    SignalClass.RESET: (Fitness.NONE, RepairAction.RESET, True),
    SignalClass.REBOOT: (Fitness.NONE, RepairAction.REBOOT, True),
    SignalClass.REPLACE: (Fitness.NONE, RepairAction.REPLACE, True),
    SignalClass.INSPECT: (Fitness.NONE, RepairAction.INSPECT, True),
    SignalClass.ALERT_ONLY: (Fitness.FULL, RepairAction.NONE, False),
}


def _verdict(signal_class: SignalClass, code: str) -> Verdict:
    fitness, action, immediate = _ASKS[signal_class]
    return Verdict(
        signal_class=signal_class,
        immediate=immediate,
        symptom=signal_class is SignalClass.SYMPTOM,
        fitness=fitness,
        action=action,
        code=code,
        names_culprit=immediate,
    )


def _of_kind(kind: SignalKind, signal_class: SignalClass) -> Verdict:
    return _verdict(signal_class, kind.value)


_KINDS: dict[SignalKind, Verdict] = {
    SignalKind.GPU_COUNT: _of_kind(SignalKind.GPU_COUNT, SignalClass.REBOOT),
    # Even two GPUs of one node talk through the switches: without a link each is alone.
    SignalKind.NVLINK_DOWN: replace(
        _of_kind(SignalKind.NVLINK_DOWN, SignalClass.RESET), fitness=Fitness.SOLO
    ),
    SignalKind.FABRIC: replace(
        _of_kind(SignalKind.FABRIC, SignalClass.RESET), fitness=Fitness.SOLO
    ),
    SignalKind.ROW_REMAP: _of_kind(SignalKind.ROW_REMAP, SignalClass.REPLACE),
    SignalKind.THROTTLE: replace(
        _of_kind(SignalKind.THROTTLE, SignalClass.WATCH), action=RepairAction.INSPECT
    ),
    SignalKind.IB_DOWN: replace(
        _of_kind(SignalKind.IB_DOWN, SignalClass.LIMITED), names_culprit=False
    ),
    # A hook that fails is the node's fault and not the job's, but it kills nobody else.
    SignalKind.HOOK_FAILED: replace(
        _of_kind(SignalKind.HOOK_FAILED, SignalClass.INSPECT), names_culprit=False
    ),
    SignalKind.KILL_FAILED: replace(
        _of_kind(SignalKind.KILL_FAILED, SignalClass.REBOOT), names_culprit=False
    ),
    # May be the job's own command: a node is not judged by it.
    SignalKind.START_FAILED: replace(
        _of_kind(SignalKind.START_FAILED, SignalClass.WATCH), action=RepairAction.INSPECT
    ),
}

_CLASS_OF: dict[int, SignalClass] = {
    number: signal_class for signal_class, names in XIDS.items() for number in names
}
NAMES: dict[int, str] = {
    **{number: name for names in XIDS.values() for number, name in names.items()},
    **DECODED,
    **NOT_ON_GB200,
}


def classify(fault: Fault) -> Verdict:
    """Judge one fault by itself. Never raises: what is not known is `alert_only`."""
    match fault.kind:
        case SignalKind.XID:
            return _xid(fault)
        case SignalKind.FABRIC if "IMEX" in f"{fault.mnemonic} {fault.line}".upper():
            # One dead daemon makes the domain unhealthy on all nodes; nobody uses it when idle.
            return replace(_verdict(SignalClass.SYMPTOM, "fabric.imex"), only_in_use=True)
        case kind:
            return _KINDS[kind]


def after_reboots(verdict: Verdict, reboots: int) -> Verdict:
    """The verdict if the same signal came back after `reboots` reboots (workbook: then replace)."""
    if verdict.signal_class is SignalClass.REBOOT and reboots >= REBOOTS_THAT_FAILED:
        return replace(verdict, signal_class=SignalClass.REPLACE, action=RepairAction.REPLACE)
    return verdict


def evidence_key(fault: Fault) -> str:
    """Equal for faults that say the same of the same part: node, signal, GPU and link."""
    gpu = fault.pci if fault.gpu is None else str(fault.gpu)
    link = "" if fault.link is None else str(fault.link)
    return f"{fault.node}/{classify(fault).code}/{gpu}/{link}"


def _xid(fault: Fault) -> Verdict:
    match fault.xid:
        case None:
            return _verdict(SignalClass.ALERT_ONLY, "xid.unknown")
        case number if number == RECOVERY_ACTION:
            return _recovery_action(fault)
        case number if number in NVLINK5:
            return _nvlink(number, fault)
        case number:
            return _plain(number)


def _plain(number: int) -> Verdict:
    signal_class = _CLASS_OF.get(number, SignalClass.ALERT_ONLY)
    verdict = _verdict(signal_class, f"xid.{number}")
    at_once = number in IMMEDIATE_YET_WATCHED
    return replace(
        verdict,
        immediate=verdict.immediate or at_once,
        names_culprit=verdict.names_culprit or at_once,
        symptom=number in SYMPATHETIC,
        action=LATER.get(number, verdict.action),
        repeats_matter=number in REPEATS_MATTER,
    )


_CHANGED_TO = re.compile(r"\bto\s+0x([0-9a-f]{1,8})\b", re.IGNORECASE)


def _announced(fault: Fault) -> int | None:
    """The recovery action of an Xid 154: by number, by name, or as the last word of the line."""
    text = f"{fault.mnemonic} {fault.line}"
    if found := _CHANGED_TO.search(text):
        return int(found[1], 16)
    told = text.lower().rpartition(" to ")[2]
    for name, action in RECOVERY_NAMES.items():
        if name in told:
            return action
    return fault.words[-1] if fault.words else None


def _recovery_action(fault: Fault) -> Verdict:
    match _announced(fault):
        case action if action == RECOVERY_NONE:
            return _verdict(SignalClass.WATCH, "xid.154.none")
        case action if action == RECOVERY_RESET:
            return _verdict(SignalClass.RESET, "xid.154.gpu-reset")
        case action if action == RECOVERY_REBOOT:
            return _verdict(SignalClass.REBOOT, "xid.154.node-reboot")
        case action if action == RECOVERY_P2P:
            # Only what talks to other GPUs must go before the reset.
            verdict = _verdict(SignalClass.RESET, "xid.154.drain-p2p")
            return replace(verdict, fitness=Fitness.SOLO)
        case action if action == RECOVERY_DRAIN:
            return _verdict(SignalClass.RESET, "xid.154.drain-and-reset")
        case _:
            return _verdict(SignalClass.ALERT_ONLY, "xid.154.unknown")


def _is_old(unit: Unit, word: int) -> bool:
    """Whether the first word has the layout before driver R575: the block in bits 4 to 0."""
    return word & 0x1F == unit.xid - 143 and word >> 5 & 0x1F == unit.old


def _unit(number: int, fault: Fault) -> Unit | None:
    """The sub-code, by its name in the line or else by its number in the first word."""
    names = {name.strip() for name in fault.mnemonic.upper().split("/")}
    mine = [unit for unit in UNITS if unit.xid == number]
    for unit in mine:
        if names.intersection(unit.names):
            return unit
    if not fault.words:
        return None
    word = fault.words[0]
    return next((u for u in mine if _is_old(u, word) or word & 0x7F in u.new), None)


def _nvlink(number: int, fault: Fault) -> Verdict:
    unit = _unit(number, fault)
    status = fault.words[1] if len(fault.words) > 1 else 0
    match number, unit:
        case 149, Unit(names=("NETIR_LINK_DOWN", *_)):
            return _link_down(fault)
        case 149, Unit(names=("NETIR_MFDE", *_)):
            return _verdict(_mfde(status), "xid.149.netir-mfde")
        case 149, Unit(names=("NETIR_BER", *_)):
            return _verdict(SignalClass.WATCH, "xid.149.netir-ber")
        case 149, Unit(names=("NETIR_INT", *_)):
            # Expected beside other faults; alone it is reported and reset when the node is empty.
            verdict = _verdict(SignalClass.SYMPTOM, "xid.149.netir-int")
            return replace(verdict, action=RepairAction.RESET)
        case _:
            code = f"xid.{number}.{unit.slug}" if unit else f"xid.{number}"
            return _verdict(_by_status(number, unit, status, fault), code)


def _link_down(fault: Fault) -> Verdict:
    reason = fault.words[0] >> 20 & 0x3F if fault.words else None
    if reason in PEER_SIDE:
        verdict = _verdict(SignalClass.SYMPTOM, "xid.149.netir-link-down-peer")
        return replace(verdict, action=RepairAction.RESET)
    if reason in HARMLESS_DOWN:
        return _verdict(SignalClass.SYMPTOM, "xid.149.netir-link-down-ordered")
    return _verdict(SignalClass.RESET, "xid.149.netir-link-down")


def _mfde(event: int) -> SignalClass:
    if event in MFDE_RESET:
        return SignalClass.RESET
    return SignalClass.WATCH if event in MFDE_NOTHING else SignalClass.ALERT_ONLY


def _escalated(unit: Unit, status: int, fault: Fault) -> bool:
    """Whether the driver marked the word (bit 10 before R575, bit 7 since) of an escalating bit."""
    if not status & unit.escalating:
        return False
    word = fault.words[0]
    return bool(word >> 10 & 1) if _is_old(unit, word) else bool(word >> 7 & 1)


def _by_status(number: int, unit: Unit | None, status: int, fault: Fault) -> SignalClass:
    """The strongest claim among the bits of the error status; without any, the severity decides."""
    if unit is None or status == 0:
        return _by_severity(number, fault)
    known = unit.nothing | unit.application | unit.symptom | unit.reset | unit.escalating
    if status & unit.reset or _escalated(unit, status, fault):
        return SignalClass.RESET
    if status & unit.symptom:
        return SignalClass.SYMPTOM
    if status & unit.application:
        return SignalClass.APPLICATION
    return (
        _by_severity(number, fault, SignalClass.ALERT_ONLY)
        if status & ~known
        else SignalClass.WATCH
    )


def _by_severity(
    number: int, fault: Fault, otherwise: SignalClass = SignalClass.WATCH
) -> SignalClass:
    """Without a status that is known: fatal 144, 146 and 150 count, a 145 is a symptom."""
    severity = fault.severity.strip().lower()
    match number:
        case 144 | 146 if severity == "fatal":
            return SignalClass.RESET
        case 150 if severity != "nonfatal":
            return SignalClass.RESET
        case 145 if otherwise is SignalClass.WATCH:
            return SignalClass.SYMPTOM
        case 149:
            return SignalClass.ALERT_ONLY
        case _:
            return otherwise
