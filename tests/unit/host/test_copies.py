"""Copies that share a directory have different numbers for as long as they live."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.host.config import parse
from rackwright.host.copies import claim_copy
from rackwright.host.errors import BadSetting

HOLD = """
import sys
from pathlib import Path
from rackwright.host.copies import claim_copy
print(claim_copy(Path(sys.argv[1]), "placer", 63).copy, flush=True)
sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    """Another process that has taken a number, and holds it until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_the_lowest_number_that_nobody_has(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        assert said(first) == 0
        with holder(tmp_path) as second:
            assert said(second) == 1
            mine = claim_copy(tmp_path, "placer", 63)
            assert mine.copy == 2
            assert claim_copy(tmp_path, "gateway", 63).copy == 0
            os.close(mine.descriptor)
            first.kill()
            first.wait()
            again = claim_copy(tmp_path, "placer", 63)
            assert again.copy == 0
            os.close(again.descriptor)
            second.communicate("")


def test_no_number_left_and_no_directory(tmp_path: Path) -> None:
    claims = [claim_copy(tmp_path, "placer", 1) for _ in range(2)]
    assert [claim.copy for claim in claims] == [0, 1]
    with pytest.raises(BadSetting, match="all copies 0 to 1 of placer are taken"):
        claim_copy(tmp_path, "placer", 1)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BadSetting, match=r"copies-dir: .*file"):
        claim_copy(file, "placer", 1)


def test_a_service_takes_its_number_and_a_state_directory_of_its_own(tmp_path: Path) -> None:
    arguments = ["--copies-dir", str(tmp_path), "--state-dir", str(tmp_path / "state")]
    first = parse("dispatcher", arguments)
    second = parse("dispatcher", arguments)
    assert (first.copy, second.copy) == (0, 1)
    assert second.identity == "dispatcher-1"
    assert second.connect_options().inbox_prefix == "_INBOX_dispatcher.1"
    assert second.state_dir == tmp_path / "state" / "dispatcher-1"
