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

import psutil
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
        process.communicate()  # closes what it wrote to
        os.close(seen)


def until_shown(terminal: int, text: re.Pattern[str]) -> None:
    """Read what is shown until this is."""
    shown = ""
    while not text.search(COLOURS.sub("", shown)):
        shown += os.read(terminal, 4096).decode(errors="replace")


def endless(trace: Path) -> list[str]:
    """Two policies on a trace that does not end."""
    trace.write_text(ENDLESS, encoding="utf-8")
    words = ["--topology", "3x18", "--trace", str(trace), "--unavailable", "0.02"]
    return [*words, "--policy", "rackwright,scatter"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_leaves_a_partial_report(
    tmp_path: Path, number: signal.Signals
) -> None:
    trace, out = tmp_path / "jobs.csv", tmp_path / "report"
    words = [*endless(trace), "--processes", "1", "--out", str(out), "--json"]
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


SIDE_BY_SIDE = re.compile(r"rackwright \(1 of 2\).* 50% .*scatter \(2 of 2\).* 50% ", re.DOTALL)


def runs_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The processes in which the two policies run."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [one for one in below if "spawn_main" in " ".join(one.cmdline())]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_side_by_side_are_all_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    words = [*endless(tmp_path / "jobs.csv"), "--processes", "2", "--json"]
    with simulating(*words) as (process, terminal):
        until_shown(terminal, SIDE_BY_SIDE)
        assert len(runs_of(process)) == 2
        process.send_signal(number)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    found = json.loads(told)["policies"]
    assert [(one["policy"], one["partial"]) for one in found] == [
        ("rackwright", True),
        ("scatter", True),
    ]


def test_a_run_that_is_killed_ends_the_others_and_is_told(tmp_path: Path) -> None:
    words = [*endless(tmp_path / "jobs.csv"), "--processes", "2"]
    with simulating(*words) as (process, terminal):
        until_shown(terminal, SIDE_BY_SIDE)
        runs = runs_of(process)
        runs[0].kill()
        until_shown(terminal, re.compile("a run was killed"))
        process.communicate(timeout=60)
        assert process.returncode == 1
        assert psutil.wait_procs(runs, timeout=60)[1] == []


def test_runs_do_not_outlive_who_began_them(tmp_path: Path) -> None:
    words = [*endless(tmp_path / "jobs.csv"), "--processes", "2"]
    with simulating(*words) as (process, terminal):
        until_shown(terminal, SIDE_BY_SIDE)
        runs = runs_of(process)
        process.kill()
        assert psutil.wait_procs(runs, timeout=60)[1] == []
