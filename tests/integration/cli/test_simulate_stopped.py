"""`rackwright simulate` in a real process, with a terminal, that is told to end."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ENDLESS = "job,submit_s,gpus,duration_s\na,0,64,1e8\nb,60,2,600\n"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LEFT = re.compile(r"rackwright \(1 of 2\).* 50% [-\d:]+ left")  # one of two jobs is done


@contextmanager
def simulating(*words: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The process, and the terminal that its standard error is."""
    seen, shown = pty.openpty()
    command = [sys.executable, "-m", "rackwright.cli", "simulate", *words]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=shown,
        text=True,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    )
    os.close(shown)
    try:
        yield process, seen
    finally:
        process.kill()
        process.wait()
        os.close(seen)


def until_shown(terminal: int, text: re.Pattern[str]) -> None:
    """Read what is shown until this is."""
    shown = ""
    while not text.search(COLOURS.sub("", shown)):
        shown += os.read(terminal, 4096).decode(errors="replace")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_leaves_a_partial_report(
    tmp_path: Path, number: signal.Signals
) -> None:
    trace, out = tmp_path / "jobs.csv", tmp_path / "report"
    trace.write_text(ENDLESS, encoding="utf-8")
    words = ["--topology", "3x18", "--trace", str(trace), "--unavailable", "0.02"]
    words += ["--policy", "rackwright,scatter", "--out", str(out), "--json"]
    with simulating(*words) as (process, terminal):
        until_shown(terminal, LEFT)
        process.send_signal(number)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    (one,) = json.loads(told)["policies"]
    assert one["partial"]
    assert one["jobs"]["finished"] == 1
    whole = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert whole["partial"]
    assert whole["not_run"] == ["scatter"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert re.search(r"Partial:</b> rackwright was stopped after [\d.]+ days; not run: sc", page)
