"""What a single fault says of its node, and that none is fatal by being unknown."""

import pytest

from rackwright.core.policy.xid_tables import SignalClass
from rackwright.core.policy.xids import NAMES, after_reboots, classify, evidence_key
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.signals import Fault, SignalKind
from tests.unit.core.faults import fault, xid

APPLICATION = SignalClass.APPLICATION
WATCH = SignalClass.WATCH
CONTAINED = SignalClass.CONTAINED
SYMPTOM = SignalClass.SYMPTOM
RESET = SignalClass.RESET
REBOOT = SignalClass.REBOOT
REPLACE = SignalClass.REPLACE
ALERT_ONLY = SignalClass.ALERT_ONLY

LAST_XID = 172  # of the workbook's catalog

EXPECTED = {
    APPLICATION: {8, 11, 13, 25, 31, 32, *range(39, 42), 43, 45, 60, 68, 69, 70, 71, 72, 75, 76, 77}
    | {82, 83, 84, 85, 86, 88, 89, *range(96, 106), *range(126, 136), 137, 139},
    WATCH: {14, 37, 38, 44, 63, 66, 67, 92, 106, 107, 108, 121, 141, 147, 148, 157, 159}
    | {*range(160, 166), 171, 172}
    | {144, 146},  # without a severity or a status
    CONTAINED: {94},
    SYMPTOM: {145},
    RESET: {46, 48, 62, 95, 109, 110, 119, 120, 140, 143, 150, 155, 156, 158},
    REBOOT: {79, 151, 167},
    REPLACE: {64},
}
IMMEDIATE = EXPECTED[RESET] | EXPECTED[REBOOT] | EXPECTED[REPLACE] | {157}


def link_down(reason: int, *, old: bool = False) -> Fault:
    layout = 0x1C6 if old else 0x11
    return fault(
        xid=149,
        mnemonic="NETIR_LINK_EVT" if old else "NETIR_LINK_DOWN",
        severity="Fatal",
        words=(reason << 20 | layout, 0),
        link=14,
    )


def class_of(number: int) -> SignalClass:
    for signal_class, numbers in EXPECTED.items():
        if number in numbers:
            return signal_class
    return ALERT_ONLY


@pytest.mark.parametrize("number", range(LAST_XID + 1))
def test_every_xid_of_the_catalog(number: int) -> None:
    verdict = classify(xid(number))
    assert (verdict.signal_class, verdict.immediate, verdict.code.split(".")[:2]) == (
        class_of(number),
        number in IMMEDIATE,
        ["xid", str(number)],
    )


@pytest.mark.parametrize("number", range(LAST_XID + 1))
def test_only_out_now_classes_take_a_node_out(number: int) -> None:
    verdict = classify(xid(number))
    leaves = number in EXPECTED[RESET] | EXPECTED[REBOOT] | EXPECTED[REPLACE]
    assert (verdict.fitness is not Fitness.FULL) == leaves


@pytest.mark.parametrize("number", [1, 9, 54, 74, 136, 152, 173, 999])
def test_unused_foreign_and_future_xids_only_alert(number: int) -> None:
    verdict = classify(xid(number, severity="Fatal"))
    assert (verdict.signal_class, verdict.fitness, verdict.action, verdict.immediate) == (
        ALERT_ONLY,
        Fitness.FULL,
        RepairAction.NONE,
        False,
    )


def test_an_xid_without_a_number_only_alerts() -> None:
    assert classify(fault()).code == "xid.unknown"
    assert classify(fault()).signal_class is ALERT_ONLY


def test_each_class_says_what_to_do() -> None:
    assert [classify(xid(n)).action for n in (95, 79, 64, 94, 63, 31)] == [
        RepairAction.RESET,
        RepairAction.REBOOT,
        RepairAction.REPLACE,
        RepairAction.RESET,  # when convenient
        RepairAction.RESET,  # when the node is empty: a row remap is pending
        RepairAction.NONE,
    ]


def test_a_retirement_failure_is_judged_at_once_but_the_node_stays() -> None:
    verdict = classify(xid(157))
    assert (verdict.immediate, verdict.fitness, verdict.action) == (
        True,
        Fitness.FULL,
        RepairAction.INSPECT,
    )


def test_the_third_time_a_reboot_does_not_help_the_node_is_replaced() -> None:
    verdict = classify(xid(79))
    assert after_reboots(verdict, 1) == verdict
    assert after_reboots(verdict, 2).action is RepairAction.REPLACE
    assert after_reboots(verdict, 2).signal_class is REPLACE
    assert after_reboots(classify(xid(95)), 5).signal_class is RESET


# Lesson 20: one link down on one GPU made 63 others of the rack log Xid 145.


@pytest.mark.parametrize("status", [0x4, 0x8, 0xC, 0x6])
@pytest.mark.parametrize("severity", ["Nonfatal", "Fatal", ""])
def test_lost_reads_and_writes_are_symptoms(status: int, severity: str) -> None:
    verdict = classify(xid(145, mnemonic="RLW_SRC_TRACK", severity=severity, status=status))
    assert (verdict.signal_class, verdict.symptom, verdict.immediate, verdict.names_culprit) == (
        SYMPTOM,
        True,
        False,
        False,
    )
    assert verdict.fitness is Fitness.FULL


@pytest.mark.parametrize("status", [0x1, 0x10, 0x20, 0x5])
def test_a_145_of_the_gpu_itself_is_its_own_culprit(status: int) -> None:
    verdict = classify(xid(145, mnemonic="RLW_SRC_TRACK", severity="Fatal", status=status))
    assert (verdict.signal_class, verdict.immediate, verdict.names_culprit) == (RESET, True, True)


def test_a_link_down_names_the_culprit() -> None:
    verdict = classify(link_down(0x04))
    assert (verdict.signal_class, verdict.immediate, verdict.names_culprit, verdict.code) == (
        RESET,
        True,
        True,
        "xid.149.netir-link-down",
    )


@pytest.mark.parametrize("reason", [0x00, 0x01, 0x02, 0x04, 0x0A, 0x0F, 0x10, 0x16, 0x2A, 0x3F])
@pytest.mark.parametrize("old", [True, False])
def test_a_link_down_without_a_peer_side_reason_is_immediate(reason: int, *, old: bool) -> None:
    assert classify(link_down(reason, old=old)).immediate


@pytest.mark.parametrize("reason", [0x15, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25])
@pytest.mark.parametrize("old", [True, False])
def test_a_link_down_by_the_peer_is_a_symptom(reason: int, *, old: bool) -> None:
    verdict = classify(link_down(reason, old=old))
    assert (verdict.symptom, verdict.immediate, verdict.names_culprit) == (True, False, False)
    assert verdict.fitness is Fitness.FULL


@pytest.mark.parametrize("reason", [0x26, 0x28])
def test_a_link_down_that_the_workbook_ignores_takes_nobody_out(reason: int) -> None:
    assert classify(link_down(reason)).fitness is Fitness.FULL


def test_a_link_down_without_words_still_names_the_culprit() -> None:
    assert classify(xid(149, mnemonic="NETIR_LINK_DOWN", severity="Fatal")).immediate


def test_a_149_of_no_known_kind_only_alerts() -> None:
    assert classify(xid(149, severity="Fatal")).signal_class is ALERT_ONLY
    assert classify(xid(149, mnemonic="NETIR_NEW", severity="Fatal")).signal_class is ALERT_ONLY


# Lesson 21: one crashed job flagged 77 healthy nodes through Xid 45.


@pytest.mark.parametrize("count", [1, 77, 100_000])
def test_xid_45_never_escalates(count: int) -> None:
    verdict = classify(fault(xid=45, count=count, line="45, caused by previous Xid 149"))
    assert (verdict.signal_class, verdict.symptom, verdict.fitness, verdict.action) == (
        APPLICATION,
        True,
        Fitness.FULL,
        RepairAction.NONE,
    )
    assert not verdict.repeats_matter


def test_repeats_of_13_and_31_are_worth_watching() -> None:
    matter = [n for n in range(LAST_XID + 1) if classify(xid(n)).repeats_matter]
    assert matter == [13, 31]


def test_a_contained_error_may_be_somebody_elses() -> None:
    symptoms = [n for n in range(LAST_XID + 1) if classify(xid(n)).symptom]
    assert symptoms == [45, 94, 145]
    assert not classify(xid(94)).names_culprit


# Lesson 24: 800,000 lines, 29 of them distinct.


def test_lines_that_say_the_same_have_one_key() -> None:
    noisy = [
        fault(xid=149, mnemonic="NETIR_LINK_EVT", words=(0x1C6 | n % 3 << 12, 0), gpu=n % 4, link=7)
        for n in range(1000)
    ]
    assert len({evidence_key(one) for one in noisy}) == 4


def test_other_gpus_links_and_signals_have_other_keys() -> None:
    faults = [
        fault(xid=79, gpu=0),
        fault(xid=79, gpu=1),
        fault(xid=95, gpu=0),
        fault(xid=149, mnemonic="NETIR_BER_EVENT", gpu=0, link=1),
        fault(xid=149, mnemonic="NETIR_BER_EVENT", gpu=0, link=2),
        fault(xid=149, mnemonic="NETIR_LINK_DOWN", gpu=0, link=2),
    ]
    assert len({evidence_key(one) for one in faults}) == len(faults)


# Lesson 26: "IMEX unhealthy" on an idle node is not a fault.


def test_imex_unhealthy_counts_only_in_use_and_blames_nobody() -> None:
    verdict = classify(fault(SignalKind.FABRIC, line="IMEX domain unhealthy"))
    assert (verdict.only_in_use, verdict.symptom, verdict.fitness) == (True, True, Fitness.FULL)


def test_a_fabric_that_is_not_up_leaves_single_gpus() -> None:
    verdict = classify(fault(SignalKind.FABRIC, line="fabric state in progress"))
    assert (verdict.only_in_use, verdict.immediate, verdict.fitness) == (False, True, Fitness.SOLO)


# Lesson 27: recovery events on the very link, five days before it failed.


def test_bit_errors_are_counted_by_link_and_take_nobody_out() -> None:
    events = [
        fault(xid=149, mnemonic="NETIR_BER_EVENT", words=(0x0008_2226, status), gpu=2, link=14)
        for status in range(4)
    ]
    assert {classify(one).signal_class for one in events} == {WATCH}
    assert {evidence_key(one) for one in events} == {"n1/xid.149.netir-ber/2/14"}


# Xid 154 is authoritative.


@pytest.mark.parametrize(
    ("to", "signal_class", "fitness", "immediate"),
    [
        ("0x0 (None)", WATCH, Fitness.FULL, False),
        ("0x1 (GPU Reset Required)", RESET, Fitness.NONE, True),
        ("0x2 (Node Reboot Required)", REBOOT, Fitness.NONE, True),
        ("0x3 (Drain P2P)", RESET, Fitness.SOLO, True),
        ("0x4 (Drain and Reset)", RESET, Fitness.NONE, True),
        ("0x9 (Something New)", ALERT_ONLY, Fitness.FULL, False),
    ],
)
def test_the_announced_action_is_followed(
    to: str, signal_class: SignalClass, fitness: Fitness, *, immediate: bool
) -> None:
    verdict = classify(
        fault(xid=154, line=f"154, GPU recovery action changed from 0x1 (GPU Reset) to {to}")
    )
    assert (verdict.signal_class, verdict.fitness, verdict.immediate) == (
        signal_class,
        fitness,
        immediate,
    )


def test_the_announced_action_may_come_by_name_or_as_a_word() -> None:
    named = fault(xid=154, mnemonic="recovery action changed from None to Node Reboot Required")
    assert classify(named).signal_class is REBOOT
    assert classify(fault(xid=154, words=(0, 2))).signal_class is REBOOT
    assert classify(fault(xid=154)).signal_class is ALERT_ONLY


# What is no Xid.


@pytest.mark.parametrize(
    ("kind", "fitness", "immediate", "names_culprit"),
    [
        (SignalKind.GPU_COUNT, Fitness.NONE, True, True),
        (SignalKind.NVLINK_DOWN, Fitness.SOLO, True, True),
        (SignalKind.FABRIC, Fitness.SOLO, True, True),
        (SignalKind.ROW_REMAP, Fitness.NONE, True, True),
        (SignalKind.THROTTLE, Fitness.FULL, False, False),
        (SignalKind.IB_DOWN, Fitness.RACK, True, False),
        (SignalKind.HOOK_FAILED, Fitness.NONE, True, False),
        (SignalKind.KILL_FAILED, Fitness.NONE, True, False),
        (SignalKind.START_FAILED, Fitness.FULL, False, False),
    ],
)
def test_other_signals(
    kind: SignalKind, fitness: Fitness, *, immediate: bool, names_culprit: bool
) -> None:
    verdict = classify(fault(kind))
    assert (verdict.code, verdict.fitness, verdict.immediate, verdict.names_culprit) == (
        kind.value,
        fitness,
        immediate,
        names_culprit,
    )


def test_every_kind_of_signal_is_judged() -> None:
    assert {classify(fault(kind)).code for kind in SignalKind} == {
        "xid.unknown",
        *(kind.value for kind in SignalKind if kind is not SignalKind.XID),
    }


def test_every_classified_xid_has_its_name() -> None:
    named = {n for n in range(LAST_XID + 1) if class_of(n) is not ALERT_ONLY}
    assert named - set(NAMES) == set()
