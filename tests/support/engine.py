"""Is there a Docker engine with compose; the image under test, built if it is not named.

`python -m tests.support.engine` has status 0 if there is one.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE_ENV = "RACKWRIGHT_IMAGE"
REQUIRE_ENV = "RACKWRIGHT_REQUIRE_DOCKER"
MADE_BASE = "rackwright-base:bookworm"  # what deploy/airgap/make-base makes


def _fails(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


@functools.cache
def engine_missing() -> str:
    """Why there is no engine with compose to run containers on; empty if there is one."""
    if shutil.which("docker") is None:
        return "there is no docker"
    if _fails("docker", "version", "--format", "{{.Server.Version}}"):
        return "no Docker engine answers"
    try:
        compose_command()
    except FileNotFoundError as error:
        return str(error)
    return ""


@functools.cache
def compose_command() -> tuple[str, ...]:
    """Compose 2 if the engine's client has it, else 1.29. Raises FileNotFoundError."""
    if not _fails("docker", "compose", "version"):
        return ("docker", "compose")
    if shutil.which("docker-compose"):
        return ("docker-compose",)
    raise FileNotFoundError("there is no docker compose")


@functools.cache
def image() -> str:
    """The image to test: the one named in the environment, else one built now."""
    named = os.environ.get(IMAGE_ENV)
    if named:
        return named
    build("rackwright:tested", ROOT)
    return "rackwright:tested"


def build(tag: str, context: Path, **arguments: str) -> None:
    """Build the image from a tree of the project, on the base that is told or was made here."""
    base = os.environ.get("BASE_IMAGE", "")
    if not base and not _fails("docker", "image", "inspect", MADE_BASE):
        base = MADE_BASE
    if base:
        arguments["BASE_IMAGE"] = base
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    command = ["docker", "build", "-f", str(context / "deploy" / "Dockerfile"), "-t", tag]
    done = subprocess.run(
        [*command, *words, str(context)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(
            f"the image cannot be built (no registry? see deploy/airgap):\n{done.stdout[-3000:]}"
            f"\n{done.stderr[-3000:]}"
        )


if __name__ == "__main__":
    sys.exit(1 if engine_missing() else 0)
