"""The units start what exists, with settings that exist."""

import re
import subprocess
from pathlib import Path

import pytest

from rackwright.agent import config as agent
from rackwright.bus.permissions import Role
from rackwright.host.config import options

FOLDER = Path(__file__).parents[3] / "deploy" / "systemd"
SECTIONS = {"Unit", "Service", "Install"}


def unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit; each may be given several times."""
    found: dict[str, list[str]] = {}
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.service")), ids=lambda path: path.name)
def test_units_can_be_read(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert set(re.findall(r"^\[(\w+)\]$", "\n".join(lines), re.MULTILINE)) == SECTIONS
    assert [line for line in lines if not re.fullmatch(r"\[\w+\]|[A-Z]\w+=.*", line)] == []
    assert unit(path.name)["Restart"] == ["always"]


def test_settings_exist() -> None:
    known = {str(one.envvar) for one in [*options(), *agent.options()]}
    texts = "".join(path.read_text() for path in FOLDER.iterdir())
    assert set(re.findall(r"RACKWRIGHT_[A-Z_]+", texts)) - known == set()


def test_workers_outlive_the_agent_and_wrong_settings_are_not_tried_again() -> None:
    made = unit("rackwright-agent.service")
    assert (made["KillMode"], made["Delegate"]) == (["process"], ["yes"])
    for name in ("rackwright@.service", "rackwright-agent.service"):
        assert unit(name)["RestartPreventExitStatus"] == ["2"]


@pytest.mark.parametrize("role", Role)
def test_an_instance_is_a_service_with_its_copy(role: Role, tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/bin/bash\necho "$2 $RACKWRIGHT_COPY $RACKWRIGHT_USER"\n')
    (tmp_path / "python").chmod(0o755)
    start = tmp_path / "start"
    start.write_text((FOLDER / "start").read_text())
    environment = {"CREDENTIALS_DIRECTORY": "/run/credentials/x", "PATH": "/usr/bin:/bin"}
    said = subprocess.run(
        ["bash", str(start), f"{role}-2"], env=environment, capture_output=True, check=True
    )
    assert said.stdout.decode() == f"rackwright.{role.replace('-', '_')} 2 {role}\n"


@pytest.mark.parametrize("instance", ["placer", "plaser-0", "placer-x"])
def test_other_instances_are_refused(instance: str) -> None:
    done = subprocess.run(
        ["bash", str(FOLDER / "start"), instance], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"start: " in done.stderr
