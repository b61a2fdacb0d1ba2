"""`verify` on recorded ledgers: what it checks, what it finds, and what it refuses to read."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.cli.__main__ import rackwright
from rackwright.cli.recorded import Record
from rackwright.cli.verify import report, result
from rackwright.core.audit import CHECKS, Violation
from rackwright.host.archive import Archive, ArchiveBroken
from rackwright.host.archived import read_archive
from rackwright.wire.codec import encode
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.subjects import Subjects
from tests.integration.gateway.written import Written, written
from tests.support.fleets import LEDGER


def stored(made: Written) -> list[Stored]:
    """The commits of a cell as its ledger would hold them."""
    return [
        Stored(
            seq=seq,
            subject=Subjects(CellName("lab")).entry(commit.type),
            at=commit.at,
            headers=NO_HEADERS,
            data=encode(commit),
        )
        for seq, commit in enumerate(made.commits, 1)
    ]


def archive(root: Path) -> Path:
    """An archive of three segments."""
    made = written()
    made.sit("a", "r0", [0, 1])
    made.fail("r0-n02")
    kept = Archive(root, LedgerId(LEDGER))
    every = stored(made)
    for part in (every[:3], every[3:5], every[5:]):
        kept.write(part)
    return root


def verify(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(rackwright, ["verify", *words])
    assert "Traceback" not in found.output
    return found.exit_code, found.output


def test_a_clean_record(tmp_path: Path) -> None:
    code, output = verify("--archive", str(archive(tmp_path)))
    assert code == 0, output
    lines = output.splitlines()
    assert lines[0].startswith("ledger ledger up to 11: 11 commits with 11 entries, 0 void")
    assert [line[2:] for line in lines if line[2:] in CHECKS] == list(CHECKS)
    assert "1 nodes were fenced, the soonest 0.000 s after it was suspected" in output
    assert lines[-1] == "result: no violation"


def test_both_bounds_of_the_leases_are_told(tmp_path: Path) -> None:
    code, output = verify("--archive", str(archive(tmp_path)), "--json")
    found = json.loads(output)
    assert (code, found["ok"], found["seq"], found["fenced"]) == (0, True, 11, 1)
    assert (found["lease_gone_s"], found["lease_wait_s"]) == (32.0, pytest.approx(36.75))
    assert found["checked"] == list(CHECKS)


def test_the_directory_of_one_ledger_and_a_first_segment_will_do(tmp_path: Path) -> None:
    ledger = archive(tmp_path) / LEDGER
    assert len(list(read_archive(ledger))) == 11
    first, second, _ = sorted(ledger.iterdir())
    assert verify("--archive", str(first))[0] == 0
    code, output = verify("--archive", str(second))
    assert (code, "1 had to come" in output) == (1, True)


def broken(root: Path, change: Any) -> tuple[int, str]:
    segments = sorted((archive(root) / LEDGER).iterdir())
    change(segments)
    return verify("--archive", str(root))


def cut(segments: list[Path]) -> None:
    segments[1].write_bytes(segments[1].read_bytes()[:-3])


def gone(segments: list[Path]) -> None:
    segments[1].unlink()


def altered(segments: list[Path]) -> None:
    segments[0].write_bytes(segments[0].read_bytes().replace(b"slice_nodes", b"slice_modes"))


def lost(segments: list[Path]) -> None:
    lines = segments[2].read_bytes().splitlines(keepends=True)
    segments[2].write_bytes(b"".join(lines[:1] + lines[2:]))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (cut, "0000000000000005.jsonl is cut off"),
        (gone, "after 0000000000000001-0000000000000003.jsonl comes"),
        (altered, "cannot be read at 1"),
        (lost, "6 had to come"),
    ],
)
def test_a_record_that_was_changed_is_not_believed(tmp_path: Path, change: Any, text: str) -> None:
    code, output = broken(tmp_path, change)
    assert (code, text in output) == (1, True), output


def test_a_change_that_still_reads_breaks_the_chain(tmp_path: Path) -> None:
    segments = sorted((archive(tmp_path) / LEDGER).iterdir())
    segments[0].write_bytes(segments[0].read_bytes().replace(b"r0-n03", b"r0-n93"))
    with pytest.raises(ArchiveBroken, match="does not follow the segment before it"):
        list(read_archive(tmp_path))


def test_nothing_there(tmp_path: Path) -> None:
    code, output = verify("--archive", str(tmp_path / "none"))
    assert (code, "is not there" in output) == (1, True)
    code, output = verify("--archive", str(tmp_path))
    assert (code, "must hold one ledger" in output) == (1, True)


def test_violations_are_told_and_counted() -> None:
    record = Record()
    for each in stored(written()):
        record.take(each)
    record.end()
    record.audit.violations.extend(Violation(seq=seq, what="a rule") for seq in range(1, 31))
    lines = list(report(record))
    assert lines[-22:] == [
        "result: 30 violations",
        *(f"  at {seq}: a rule" for seq in range(1, 21)),
        "  and 10 more",
    ]
    assert result(record)["ok"] is False
