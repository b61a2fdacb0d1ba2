"""Three nats-servers, each in a network namespace of its own, and what may happen to them.

The test sits at the bridge that joins them, so it reaches each as long as its link is up; a split
stands between servers only. Making namespaces needs root and iproute2.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from rackwright.bus.embedded import find_binary
from rackwright.bus.permissions import User
from rackwright.bus.streams import GIB, KIB

CLIENTS, ROUTES, MONITOR = 4222, 6222, 8222
LOOK_S = 0.05
NOWHERE = "02:00:00:00:00:01"


async def run(*words: str) -> None:
    """Raises RuntimeError with what the program said."""
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)}: {said.decode(errors='replace').strip()}")


@dataclass(slots=True)
class Server:
    """One server: its namespace, its address and its process, if it runs."""

    name: str
    space: str
    address: str
    root: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"nats://{self.address}:{CLIENTS}"

    def write(self, others: Iterable[Server], users: Sequence[User]) -> None:
        """Its configuration."""
        routes = [f"nats://{one.address}:{ROUTES}" for one in others]
        self.root.mkdir(parents=True, exist_ok=True)
        config: dict[str, object] = {
            "server_name": self.name,
            "listen": f"{self.address}:{CLIENTS}",
            "http": f"{self.address}:{MONITOR}",
            "max_payload": 256 * KIB,
            "jetstream": {
                "store_dir": str(self.root / "data"),
                "sync_interval": "always",
                "max_memory_store": GIB,
                "max_file_store": 8 * GIB,
            },
            "cluster": {"name": "lab", "listen": f"{self.address}:{ROUTES}", "routes": routes},
        }
        if users:
            config["authorization"] = {"users": [user.config() for user in users]}
        (self.root / "nats.conf").write_text(json.dumps(config), encoding="utf-8")

    def leader_of(self, stream: str) -> str:
        """Whom it takes for the leader of a stream; empty if it knows of none."""
        asked = f"http://{self.address}:{MONITOR}/jsz?accounts=true&streams=true"
        try:
            with urlopen(asked, timeout=2) as answer:
                told = json.load(answer)
        except OSError:  # not up, or not reached
            return ""
        streams = [s for one in told.get("account_details", ()) for s in one["stream_detail"]]
        mine: dict[str, Any] = next((one for one in streams if one["name"] == stream), {})
        return str(mine.get("cluster", {}).get("leader", ""))

    async def start(self) -> None:
        """It runs, and may not be ready yet."""
        log = (self.root / "log").open("ab")
        self.process = await asyncio.create_subprocess_exec(
            *("ip", "netns", "exec", self.space, str(find_binary())),
            *("-c", str(self.root / "nats.conf")),
            stdout=log,
            stderr=log,
        )
        log.close()

    async def stop(self, number: int = signal.SIGKILL) -> None:
        """By SIGKILL, or as it is asked."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)
            await self.process.wait()
        self.process = None


@dataclass(slots=True)
class Lab:
    """Three servers and their network."""

    servers: list[Server] = field(default_factory=list)
    hub: str = ""

    def named(self, name: str) -> Server:
        """A server by its name."""
        return next(server for server in self.servers if server.name == name)

    async def cut_off(self, server: Server) -> None:
        """Nobody reaches it, and it reaches nobody."""
        await run("ip", "-n", self.hub, "link", "set", server.space, "down")

    async def split(self, server: Server) -> None:
        """It and the other two do not reach each other; clients reach all of them.

        Each takes the others to be where nobody is: frames to them get lost without a word.
        """
        for other in self.servers:
            if other is not server:
                await _mislead(server, other)
                await _mislead(other, server)

    async def takes_part(self, server: Server) -> None:
        """Wait until it says that it is well: its streams are caught up with the others'."""
        async with asyncio.timeout(60):
            while True:
                if await asyncio.to_thread(_is_well, server):
                    return
                await asyncio.sleep(LOOK_S)

    async def heal(self) -> None:
        """All of them reach each other."""
        for server in self.servers:
            await run("ip", "-n", self.hub, "link", "set", server.space, "up")
            await run("ip", "-n", server.space, "neigh", "flush", "nud", "permanent", "dev", "eth0")


def _is_well(server: Server) -> bool:
    try:
        with urlopen(f"http://{server.address}:{MONITOR}/healthz", timeout=2) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:  # not up yet, or it says that it is not well
        return False


async def _mislead(server: Server, about: Server) -> None:
    words = ("neigh", "replace", about.address, "lladdr", NOWHERE, "dev", "eth0")
    await run("ip", "-n", server.space, *words, "nud", "permanent")


@asynccontextmanager
async def lab(root: Path, users: Sequence[User] = ()) -> AsyncIterator[Lab]:
    """Three running servers; nothing of them is left afterwards."""
    mark = os.getpid() % 100_000
    net = f"10.{200 + mark % 50}.{mark // 50 % 250}"
    made = Lab(hub=f"rw{mark}h")
    async with AsyncExitStack() as stack:
        # The bridge has a namespace of its own, where nobody's packet filter looks at it.
        await run("ip", "netns", "add", made.hub)
        stack.push_async_callback(run, "ip", "netns", "del", made.hub)
        await run("ip", "-n", made.hub, "link", "add", "hub", "type", "bridge")
        await run("ip", "-n", made.hub, "link", "set", "hub", "up")
        ours = f"{made.hub}o"
        await run(*_veth(ours), "ours", "netns", made.hub)
        stack.push_async_callback(run, "ip", "link", "del", ours)
        await run("ip", "-n", made.hub, "link", "set", "ours", "master", "hub", "up")
        await run("ip", "addr", "add", f"{net}.254/24", "dev", ours)
        await run("ip", "link", "set", ours, "up")
        for number in range(3):
            space = f"rw{mark}{'abc'[number]}"
            address = f"{net}.{number + 1}"
            server = Server(f"s{number}", space, address, root / f"s{number}")
            await _plug(server, made.hub, stack)
            made.servers.append(server)
        for server in made.servers:
            server.write((one for one in made.servers if one is not server), users)
            await server.start()
            stack.push_async_callback(server.stop)
        yield made


def _veth(name: str) -> tuple[str, ...]:
    """To be followed by the name of its other end."""
    return ("ip", "link", "add", name, "type", "veth", "peer", "name")


async def _plug(server: Server, hub: str, stack: AsyncExitStack) -> None:
    """Its namespace and its link to the bridge."""
    space, inside = server.space, ("ip", "-n", server.space)
    await run("ip", "netns", "add", space)
    stack.push_async_callback(run, "ip", "netns", "del", space)
    await run("ip", "-n", hub, *_veth(space)[1:], "eth0", "netns", space)
    await run("ip", "-n", hub, "link", "set", space, "master", "hub", "up")
    await run(*inside, "addr", "add", f"{server.address}/24", "dev", "eth0")
    await run(*inside, "link", "set", "eth0", "up")
    await run(*inside, "link", "set", "lo", "up")
