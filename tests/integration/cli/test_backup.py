"""A cell of `rackwright up` is copied while it runs, and goes on from the copy elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.cli.conftest import PATIENCE_S, Shell

pytestmark = pytest.mark.integration
SMALL = ("--racks", "1", "--nodes-per-rack", "3", "--pretend")


@contextmanager
def cell(state: Path) -> Iterator[Shell]:
    """A cell that is ready."""
    command = [sys.executable, "-m", "rackwright.cli", "up", *SMALL, "--state-dir", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it ended before it was ready"
            yield Shell(state)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE_S) == 0


def test_a_copy_of_a_living_cell_goes_on_elsewhere(tmp_path: Path) -> None:
    state, copy = tmp_path / "cell", tmp_path / "elsewhere" / "cell"
    spec = {"name": "early", "nodes": 2, "pretend_s": 3600, "checkpoint": {"interval_s": 60}}
    with cell(state) as shell:
        assert shell("submit", "-", "--wait", input=json.dumps(spec))[0] == 0
        bus = int((state / "nats" / "pid").read_text())
        os.kill(bus, signal.SIGSTOP)  # as docs/operations.md says
        try:
            shutil.copytree(state, copy, symlinks=True)
        finally:
            os.kill(bus, signal.SIGCONT)
        late = {"name": "late", "nodes": 1, "pretend_s": 3600}
        shell.until_it_works("submit", "-", "--wait", input=json.dumps(late))
        ledger = shell.json("stats")["ledger"]
    shutil.rmtree(state)
    with cell(copy) as shell:
        shell.until(lambda said: said["job"]["state"] == "running", "job", "early")
        assert shell.json("stats")["ledger"] == ledger
        code, output = shell("job", "late")
        assert (code, "no job 'late' is known" in output) == (1, True)
        code, output = shell("verify")
        assert (code, output.splitlines()[-1]) == (0, "result: no violation")
