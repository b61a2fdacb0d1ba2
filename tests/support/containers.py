"""A compose project of the tests' own on the machine's Docker engine, and what befalls containers.

The engine is asked over its API in threads of their own; whatever is waited for is waited for with
a limit. Compose 1.29 and 2 are both understood.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container
from testcontainers.compose import DockerCompose

from tests.support.engine import ROOT, compose_command, image

READY_S = 90.0
LOOK_S = 0.2
SMALL_DISK = "rackwright-small-disk"


class Compose(DockerCompose):
    """Testcontainers' compose, with a name of its own for the project, for Compose 1.29 too."""

    name = ""

    @functools.cached_property
    def compose_command_property(self) -> list[str]:
        """See DockerCompose."""
        words = [*compose_command(), "-p", self.name, "--project-directory", str(self.context)]
        words += ["-f", str(Path(self.context) / "docker-compose.yml")]
        for profile in self.profiles or []:
            words += ["--profile", profile]
        return [*words, "--env-file", str(self.env_file[0] if self.env_file else os.devnull)]

    def call(self, *words: str) -> str:
        """Run a command of compose; what it printed. Fails the test if it fails."""
        command = [*self.compose_command_property, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=str(self.context)
        )
        if done.returncode:
            pytest.fail(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(slots=True, kw_only=True)
class Site:
    """One compose project. `settings` are the variables of the docker-compose.yml in `root`."""

    name: str
    folder: Path
    settings: dict[str, str]
    root: Path = ROOT
    profiles: tuple[str, ...] = ()
    client: Any = field(default_factory=lambda: docker.from_env(timeout=120))

    def compose(self) -> Compose:
        """Compose with the settings as they are now."""
        file = self.folder / "settings.env"
        lines = [f"{key}={value}\n" for key, value in self.settings.items()]
        file.write_text("".join(lines), encoding="utf-8")
        made = Compose(context=str(self.root), profiles=list(self.profiles), env_file=str(file))
        made.name = self.name
        return made

    async def up(self, *words: str) -> None:
        """Bring services up as the settings say, in the background."""
        await asyncio.to_thread(self.compose().call, "up", "-d", "--no-build", *words)

    def containers(self, service: str) -> list[Container]:
        """Containers of a service, running or not, by number."""
        labels = [f"com.docker.compose.{key}" for key in ("project", "service", "container-number")]
        found = self.client.containers.list(
            all=True,
            filters={"label": [f"{labels[0]}={self.name}", f"{labels[1]}={service}"]},
        )
        once = [one for one in found if one.labels.get("com.docker.compose.oneoff") != "True"]
        return sorted(once, key=lambda one: int(one.labels[labels[2]]))

    def one(self, service: str) -> Container:
        """The first container of a service."""
        return self.containers(service)[0]

    async def do(self, service: str, what: str, **more: Any) -> None:
        """`kill`, `stop`, `start`, `pause`, `unpause` or `restart` the first of a service."""
        container = await asyncio.to_thread(self.one, service)
        await asyncio.to_thread(getattr(container, what), **more)

    async def ready(self, *services: str) -> None:
        """Wait until every container of these services says so itself."""
        found = await asyncio.to_thread(self._all, services)
        waits = (until(functools.partial(_ready, one), f"{one.name} to be ready") for one in found)
        await asyncio.gather(*waits)

    def _all(self, services: Sequence[str]) -> list[Container]:
        return [one for service in services for one in self.containers(service)]

    async def unready(self, service: str) -> None:
        """Wait until the first container of a service says that it is not ready."""
        container = await asyncio.to_thread(self.one, service)
        await until(lambda: not _ready(container), f"{container.name} not to be ready")

    async def says(self, service: str, word: str) -> None:
        """Wait until a service has said a word in its log."""
        await until(lambda: word in self.logs(service, 1000), f"{service} to say {word}")

    def logs(self, service: str, tail: int = 50) -> str:
        """The last lines of all containers of a service."""
        texts = [one.logs(tail=tail).decode(errors="replace") for one in self.containers(service)]
        return "\n".join(texts)

    async def passwords(self, *users: str) -> list[str]:
        """What users of the bus log in with, as only the service that made them can read it."""
        files = [f"/credentials/{user}/password" for user in users]
        script = f"for file in {' '.join(files)}; do cat $file; echo; done"
        words = ["run", "--rm", "--no-deps", "-T", "--entrypoint", "bash", "credentials", "-c"]
        said = await asyncio.to_thread(self.compose().call, *words, script)
        return said.split()

    async def down(self) -> None:
        """Remove all of it: containers, network, volumes."""
        found = self.client.containers.list(
            all=True, filters={"label": f"com.docker.compose.project={self.name}"}
        )
        kills = (asyncio.to_thread(one.remove, force=True, v=True) for one in found)
        await asyncio.gather(*kills)
        await asyncio.to_thread(self.compose().call, "down", "--volumes")
        self.client.close()


def _ready(container: Container) -> bool:
    container.reload()
    if container.status != "running":
        return False
    command = ["healthy"]
    if "nats" in container.labels["com.docker.compose.service"]:
        command += ["/healthz", "8222"]
    return bool(container.exec_run(command).exit_code == 0)


async def until(holds: Callable[[], bool], what: str, within_s: float = READY_S) -> None:
    """Wait for something that only the engine knows; it is asked in a thread."""
    try:
        async with asyncio.timeout(within_s):
            while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - there is no event of ours
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        pytest.fail(f"waited in vain for {what}")


def run_alone(words: Sequence[str], **more: Any) -> tuple[int, str]:
    """Run a container of the tested image to its end: its status and what it said."""
    client = docker.from_env(timeout=120)
    made = client.containers.run(image(), list(words), detach=True, **more)
    try:
        status = int(made.wait(timeout=60)["StatusCode"])
        return status, made.logs().decode(errors="replace")
    finally:
        made.remove(force=True)
        client.close()


@contextmanager
def small_disk() -> Iterator[Container]:
    """A volume of 24 MB, and a container that keeps it mounted."""
    client = docker.from_env()
    options = {"type": "tmpfs", "device": "tmpfs", "o": "size=24m,uid=10001,gid=10001"}
    volume = client.volumes.create(SMALL_DISK, driver_opts=options)
    holder = client.containers.run(
        image(),
        ["infinity"],
        entrypoint="sleep",
        volumes={SMALL_DISK: {"bind": "/disk"}},
        init=True,
        detach=True,
    )
    try:
        yield holder
    finally:
        holder.remove(force=True)
        volume.remove()
        client.close()
