"""Every reader against bytes of any kind: a little at each run, for long by `make fuzz`."""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds, took

RUNS = 2_000
ENDED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
HAS_ATHERIS = sys.platform == "linux" and platform.machine() == "x86_64"  # as in pyproject.toml


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=50)
@given(data=st.data())
def test_spoilt_input_is_refused_and_nothing_else(target: str, data: st.DataObject) -> None:
    good = data.draw(st.sampled_from(seeds(target)))
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, len(good)))
    took(target, good[:start] + data.draw(st.binary(max_size=64)) + good[end:])


@pytest.mark.parametrize("target", TARGETS)
def test_what_it_starts_from_is_good(target: str) -> None:
    assert seeds(target)
    assert all(took(target, good) for good in seeds(target))


@pytest.mark.parametrize("target", TARGETS if HAS_ATHERIS else ())
def test_guided_by_coverage(target: str, tmp_path: Path) -> None:
    limits = ["--runs", str(RUNS), "--seed", "1", "--seconds", "200", "--corpus", str(tmp_path)]
    told = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", target, *limits],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-4_000:]
    ran = ENDED.search(told.stderr)
    assert ran is not None, told.stderr[-4_000:]
    assert int(ran[1]) >= RUNS
