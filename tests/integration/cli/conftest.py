"""One cell for all tests of the commands, started by `rackwright up` as anybody would."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rackwright.cli.__main__ import rackwright
from rackwright.cli.failures import UNANSWERED, UNREACHABLE

PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Shell:
    """Commands on one cell."""

    state_dir: Path

    def __call__(self, *words: str, input: str | None = None) -> tuple[int, str]:
        """Exit code and everything printed."""
        runner = CliRunner(env={"RACKWRIGHT_STATE_DIR": str(self.state_dir)})
        result = runner.invoke(rackwright, list(words), input=input)
        raised = result.exception
        assert raised is None or isinstance(raised, SystemExit | click.ClickException), raised
        return result.exit_code, result.output

    def json(self, *words: str) -> dict[str, Any]:
        """The answer of a query."""
        code, output = self(*words, "--json")
        assert code == 0, output
        found: dict[str, Any] = json.loads(output)
        return found

    def until_it_works(self, *words: str, input: str) -> None:
        """Say it until the cell takes it."""
        end = time.monotonic() + PATIENCE_S
        while (answer := self(*words, input=input))[0] != 0:
            assert time.monotonic() < end, answer
            asyncio.run(asyncio.sleep(0.05))  # another process has no event of ours

    def until(self, met: Callable[[dict[str, Any]], bool], *words: str) -> dict[str, Any]:
        """Ask until the answer is as wished, also of a gateway that is away for a moment."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            code, output = self(*words, "--json")
            assert code in (0, UNREACHABLE, UNANSWERED), output
            if code == 0 and met(found := json.loads(output)):
                return dict(found)
            asyncio.run(asyncio.sleep(0.05))  # another process has no event of ours
        raise AssertionError(f"{words}: {output}")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, str]]:
    """A shell, and the line that `up` printed."""
    state = tmp_path_factory.mktemp("cell")
    words = ("--racks", "2", "--nodes-per-rack", "6", "--pretend", "--state-dir", str(state))
    command = [sys.executable, "-m", "rackwright.cli", "up", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "it ended before it was ready"
            yield Shell(state), line
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE_S) == 0


@pytest.fixture
def shell(up: tuple[Shell, str]) -> Shell:
    """Commands on the cell."""
    return up[0]
