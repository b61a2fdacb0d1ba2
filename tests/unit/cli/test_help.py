"""Help is quick, complete, and teaches."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from rackwright.cli.__main__ import COMMANDS, Commands, rackwright

NAMES = [name for group in COMMANDS.values() for name in group if name != "demo"]
HEAVY = {"nats", "aiohttp", "rich", "pydantic", "uvloop", "yaml"}


def command(name: str) -> click.Command:
    assert isinstance(rackwright, Commands)
    found = rackwright.get_command(click.Context(rackwright), name)
    assert found is not None
    return found


def test_help_lists_every_command_and_the_exit_codes() -> None:
    result = CliRunner().invoke(rackwright, ["--help"])
    assert result.exit_code == 0
    assert [name for name in NAMES if f"  {name} " not in result.output] == []
    assert "3 the cell cannot be reached" in result.output
    assert "~/.local/state/rackwright" in result.output


def test_help_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from rackwright.cli.__main__ import rackwright\n"
        "assert CliRunner().invoke(rackwright, ['--help']).exit_code == 0\n"
        "print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert HEAVY.intersection(result.stdout.split()) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_command_teaches_by_example(name: str) -> None:
    result = CliRunner().invoke(rackwright, [name, "--help"])
    assert result.exit_code == 0
    if isinstance(command(name), click.Group):
        return
    assert f"rackwright {name}" in result.output


@pytest.mark.parametrize("name", ["show", "set"])
def test_so_do_those_of_a_group(name: str) -> None:
    result = CliRunner().invoke(rackwright, ["policy", name, "--help"])
    assert f"rackwright policy {name}" in result.output


def test_unknown_commands_are_usage_errors() -> None:
    result = CliRunner().invoke(rackwright, ["fly"])
    assert result.exit_code == 2
    assert "fly" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = CliRunner().invoke(rackwright, ["completion", shell])
    assert result.exit_code == 0
    assert "_RACKWRIGHT_COMPLETE" in result.output
