"""How much one noisy node may say."""

from rackwright.agent.limits import MOST, WINDOW_S, XidLimit, XidSignal

OFF_THE_BUS = b"NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus."


def told(signals: list[XidSignal]) -> list[tuple[str, int, int]]:
    """Where, what, how many."""
    return [(signal.line.pci, signal.line.xid, signal.count) for signal in signals]


def offer(limit: XidLimit, line: bytes, *, times: int = 1) -> list[XidSignal]:
    """Offer the same line some times; returns what was told at once."""
    offers = [limit.offer(line, f"log:{n}", 0.0) for n in range(times)]
    return [signal for signal in offers if signal is not None]


def test_first_at_once_repeats_counted_at_the_end() -> None:
    limit = XidLimit()
    assert told(offer(limit, OFF_THE_BUS, times=1_000)) == [("0000:65:00", 79, 1)]
    assert limit.ends_at == WINDOW_S
    assert told(limit.flush()) == [("0000:65:00", 79, 999)]
    assert (limit.ends_at, limit.flush()) == (0.0, [])
    assert told(offer(limit, OFF_THE_BUS)) == [("0000:65:00", 79, 1)]


def test_what_is_no_xid_opens_no_window() -> None:
    limit = XidLimit()
    assert offer(limit, b"NVRM: Xid (something else") == []
    assert limit.ends_at == 0.0


def test_links_and_status_words_tell_nvlink_errors_apart() -> None:
    limit = XidLimit()
    line = b"NVRM: Xid (PCI:0000:65:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link %d (0x1 0x%d)"
    lines = [line % (link, status) for link in (3, 4) for status in (1, 2)] * 2
    signals = [signal for each in lines for signal in offer(limit, each)]
    assert [(signal.line.link, signal.line.words) for signal in signals] == [
        (3, (1, 1)),
        (3, (1, 2)),
        (4, (1, 1)),
        (4, (1, 2)),
    ]
    assert [signal.count for signal in limit.flush()] == [1, 1, 1, 1]


def test_a_changed_recovery_action_is_told() -> None:
    limit = XidLimit()
    line = b"NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to %s"
    actions = [b"0x1 (GPU Reset Required)", b"0x2 (Node Reboot Required)"]
    signals = [signal for action in actions for signal in offer(limit, line % action)]
    assert [signal.line.action for signal in signals] == [
        "GPU Reset Required",
        "Node Reboot Required",
    ]


def test_noise_of_one_kind_does_not_hide_a_fatal_fault() -> None:
    limit = XidLimit()
    noise = b"NVRM: Xid (PCI:0000:65:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 1 (0x%x 0x4)"
    noisy = [signal for n in range(10_000) for signal in offer(limit, noise % n)]
    assert len(noisy) < MOST
    assert limit.lost == 10_000 - len(noisy)
    assert told(offer(limit, OFF_THE_BUS)) == [("0000:65:00", 79, 1)]


def test_signals_of_a_window_are_bounded_whatever_is_invented() -> None:
    limit = XidLimit()
    lines = [b"NVRM: Xid (PCI:0000:%02x:00): %d, x" % (n % 256, n % 997) for n in range(5_000)]
    signals = [signal for line in lines * 2 for signal in offer(limit, line)]
    assert len(signals) == MOST
    assert len(signals) + len(limit.flush()) <= 2 * MOST
