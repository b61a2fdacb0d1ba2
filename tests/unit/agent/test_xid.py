"""Lines of the driver as drivers have written them, and what is read from each."""

import pytest

from rackwright.agent.xid import MAX_TEXT, XidLine, head_of, parse_xid

LINK_DOWN = (
    b"NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 14 "
    b"(0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
)


def fields(line: XidLine | None) -> dict[str, object]:
    """What was read, without the copies of the text and what is empty."""
    assert line is not None
    values = {name: getattr(line, name) for name in XidLine.__slots__}
    return {name: value for name, value in values.items() if value not in ("", None, ())} | {
        "text": line.text,
        "line": line.line,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            b"NVRM: Xid (PCI:0000:65:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
            {"pci": "0000:65:00", "xid": 79, "pid": 1234, "process": "python"},
        ),
        (
            b"NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.",
            {"pci": "0000:65:00", "xid": 79},
        ),
        (
            b"NVRM: Xid (PCI:0000:B5:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp",
            {"pci": "0000:b5:00", "xid": 13},
        ),
        (
            b"NVRM: Xid (PCI:0000:8b:00 GPU-I:04): 94, Contained: SM (0x1). RST: No",
            {"pci": "0000:8b:00", "xid": 94},
        ),
        (
            b"NVRM: Xid (PCI:0000:00:1e): 145, pid=4, name=a b, RLW_SRC_TRACK Nonfatal XC1 i2 "
            b"Link 00 (0x040988e2 0x00000008)",
            {
                "pci": "0000:00:1e",
                "xid": 145,
                "pid": 4,
                "process": "a b",
                "mnemonic": "RLW_SRC_TRACK",
                "severity": "Nonfatal",
                "link": 0,
                "words": (0x040988E2, 8),
            },
        ),
        (
            LINK_DOWN,
            {
                "pci": "0018:01:00",
                "xid": 149,
                "mnemonic": "NETIR_LINK_DOWN",
                "severity": "Fatal",
                "link": 14,
                "words": (0x004505C6, 0, 0, 0, 0, 0),
            },
        ),
        (
            b"NVRM: Xid (PCI:0000:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 3 (0x1 0x2 0x",
            {
                "pci": "0000:01:00",
                "xid": 149,
                "mnemonic": "NETIR_LINK_DOWN",
                "severity": "Fatal",
                "link": 3,
                "words": (1, 2),
            },
        ),
        (
            b"NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
            b"(Node Reboot Required)",
            {"pci": "0000:01:00", "xid": 154, "action": "Node Reboot Required"},
        ),
        (b"NVRM: Xid (PCI:0000:01:00): 45", {"pci": "0000:01:00", "xid": 45}),
        (b"NVRM: Xid (0000:01:00): 31, Ch 00000010", {"pci": "0000:01:00", "xid": 31}),
    ],
)
def test_lines(line: bytes, expected: dict[str, object]) -> None:
    found = fields(parse_xid(line))
    del found["text"]
    assert found.pop("line") == line.decode()
    assert found == expected
    assert head_of(line) == (expected["pci"], expected["xid"])


@pytest.mark.parametrize(
    "before", [b"", b"[ 12.5] ", b"Nov 30 00:47:01 n1 kernel: [ 12.5] ", b"\xff\xfe "]
)
def test_what_stands_before_does_not_matter(before: bytes) -> None:
    assert parse_xid(before + LINK_DOWN) == parse_xid(LINK_DOWN)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"NVRM: Xid (",
        b"NVRM: Xid (PCI:0000:65:00)",
        b"NVRM: Xid (PCI:0000:65:00): many, GPU has fallen off the bus.",
        b"NVRM: Xid (PCI:elsewhere): 79, GPU has fallen off the bus.",
        b"NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.",
        b"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32",
    ],
)
def test_what_is_no_xid(line: bytes) -> None:
    assert (parse_xid(line), head_of(line)) == (None, None)


def test_text_is_bounded() -> None:
    line = parse_xid(b"NVRM: Xid (PCI:0000:65:00): 13, " + b"\xff" * 100_000)
    assert line is not None
    assert (len(line.text), len(line.line)) == (MAX_TEXT, MAX_TEXT)


MANY = b"9" * 5_000  # more digits than Python turns into a number


@pytest.mark.parametrize(
    "line",
    [
        b"NVRM: Xid (PCI:0000:65:00): 79, pid=" + MANY + b", name=x, GPU has fallen off the bus.",
        b"NVRM: Xid (PCI:0000:65:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link " + MANY + b" (0x0)",
        b"NVRM: Xid (PCI:0000:65:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x" + MANY + b")",
    ],
)
def test_a_garbled_line_with_thousands_of_digits_is_still_its_xid(line: bytes) -> None:
    read = parse_xid(line)
    assert read is not None
    assert (read.xid, read.pid, read.words) in {(79, None, ()), (149, None, ())}
