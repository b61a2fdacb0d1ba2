"""Xids 144 to 150 by their sub-code and the bits of their error status."""

import pytest

from rackwright.core.policy.xid_tables import UNITS, SignalClass, Unit
from rackwright.core.policy.xids import classify
from tests.unit.core.faults import fault, xid

APPLICATION = SignalClass.APPLICATION
WATCH = SignalClass.WATCH
SYMPTOM = SignalClass.SYMPTOM
RESET = SignalClass.RESET
ALERT_ONLY = SignalClass.ALERT_ONLY

SEVERAL = {
    (144, "SAW_MVB", 0x1): WATCH,
    (144, "SAW_MVB", 0x2): RESET,
    (144, "SAW_MVB", 0x10): RESET,
    (144, "SAW_MVB", 0x20): WATCH,
    (145, "RLW_REMAP", 0x1): APPLICATION,
    (145, "RLW_REMAP", 0x4): SYMPTOM,
    (145, "RLW_REMAP", 0x40): RESET,
    (145, "RLW_REMAP", 0x100): WATCH,
    (145, "RLW_RXPIPE", 0x8): WATCH,
    (145, "RLW_TAGSTATE", 0x10000): WATCH,
    (145, "RLW_TAGSTATE", 0x20000): RESET,
    (145, "RLW_TAGSTATE", 0x100000): RESET,
    (145, "RLW_CTRL", 0x80000000): WATCH,
    (146, "TLW_CTRL", 0x2): WATCH,
    (146, "TLW_RX/TLW_RX_PIPE0", 0x4): RESET,
    (146, "TLW_TX_PIPE1", 0x4): RESET,
    (147, "TREX", 0x1): WATCH,
    (148, "NVLPW_CTRL", 0x80000000): WATCH,
    (149, "NETIR_MFDE_EVENT", 0x1): RESET,
    (149, "NETIR_MFDE_EVENT", 0x3): WATCH,
    (149, "NETIR_MFDE_EVENT", 0x2): ALERT_ONLY,
    (149, "NETIR", 0x0): SYMPTOM,
    (150, "MSE_WATCHDOG", 0x0): RESET,
    (150, "MSE Degraded", 0xFFFFFFFF): RESET,
}


@pytest.mark.parametrize(("number", "unit", "status"), SEVERAL)
def test_the_error_status_decides(number: int, unit: str, status: int) -> None:
    verdict = classify(xid(number, mnemonic=unit, status=status))
    assert verdict.signal_class is SEVERAL[number, unit, status]


def test_the_strongest_bit_wins() -> None:
    both = xid(145, mnemonic="RLW_REMAP", status=0x4 | 0x40 | 0x100)
    assert classify(both).signal_class is RESET


@pytest.mark.parametrize("unit", [u for u in UNITS if u.xid in (144, 145, 146, 147, 148)])
def test_bits_nobody_listed_only_alert(unit: Unit) -> None:
    number, name = unit.xid, unit.names[0]
    assert classify(xid(number, mnemonic=name, status=0x0400_0000)).signal_class is ALERT_ONLY


@pytest.mark.parametrize("number", [144, 146, 150])
def test_fatal_without_a_status_counts(number: int) -> None:
    assert classify(xid(number, severity="Fatal")).immediate
    assert not classify(xid(number, severity="Nonfatal")).immediate


@pytest.mark.parametrize(
    ("word", "signal_class"),
    [
        (0x00C2, WATCH),  # before R575
        (0x04C2, RESET),  # the same, marked in bit 10
        (0x0006, WATCH),  # since R575
        (0x0086, RESET),  # the same, marked in bit 7
    ],
)
def test_a_marked_receive_error_escalates(word: int, signal_class: SignalClass) -> None:
    for name in ("RLW_RXPIPE", ""):
        marked = fault(xid=145, mnemonic=name, words=(word, 0x1))
        assert classify(marked).signal_class is signal_class


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.names[0])
def test_the_first_word_names_the_unit_when_the_line_does_not(unit: Unit) -> None:
    number, old, new = unit.xid, unit.old, unit.new
    named = classify(fault(xid=number, mnemonic=unit.names[0], words=(0, 1)))
    for word in (old << 5 | number - 143, *new):
        assert classify(fault(xid=number, words=(word, 1))).code == named.code
