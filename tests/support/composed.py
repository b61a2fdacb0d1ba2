"""A live cell in containers, driven over the bus from outside as `tests.support.live` does it."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Bus
from rackwright.cli.asking import Cell
from rackwright.cli.demo.board import board
from rackwright.cli.stack import SERVICES, Stack
from rackwright.cli.watcher import watch
from rackwright.core.fleet import Fleet
from rackwright.wire.ids import CellName, Owner, WorkerId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from rackwright.wire.subjects import Subjects
from rackwright.wire.wishes import Cancel, Repaired, SetPolicy, Uncordon
from tests.support.containers import Site, free_port
from tests.support.engine import ROOT, image
from tests.support.live import FALLEN, Identity, Live
from tests.support.quick import POLICY
from tests.support.world import appears

RACKS = "3x6x4"
AGENTS = ("agents-0", "agents-1")
SHARED = "/shared"  # where workers in containers find the directory of their notes
NATS = "nats"
NOTHING: Mapping[str, str] = MappingProxyType({})
LONG_S = 60.0  # a lease that outlasts each restart, on a busy machine too
LONG = replace(POLICY, fence_after_s=LONG_S)


@dataclass(slots=True, kw_only=True)
class Composed(Live):
    """The cell, and the containers it is made of."""

    site: Site

    def spec(self, name: str, nodes: int | None = 1, **more: Any) -> JobSpec:
        """See Live; the notes lie elsewhere for a worker in a container."""
        env = {"LIVE_HOME": SHARED, **more.pop("env", {})}
        return Live.spec(self, name, nodes, env=env, **more)

    def identities(self, name: str) -> dict[WorkerId, Identity]:
        """Every running process of a job, by its number in its own container."""
        return {worker: (pid, 0) for worker, pid in self.board.pids(name).items()}

    async def xid(self, node: str, text: str = FALLEN) -> None:
        """Ask the node's agent over the bus for a driver's line in the node's kernel log."""
        gpu = self.faults[node] % 4
        self.faults[node] += 1
        line = f"NVRM: Xid (PCI:{gpu:04d}:01:00): {text}"
        subject = Subjects(CellName(self.bus.cell)).query(f"inject.{node}")
        await self.bus.core.request(subject, json.dumps({"line": line}).encode(), patience=10.0)

    async def back(self) -> None:
        """Wait until the bus is within reach again from here."""
        links = (self.bus.link, self.cell.bus.link)
        await appears(lambda: all(link.connected for link in links))

    async def steady(self) -> None:
        """From now on leases outlast restarts."""
        if self.fleet.policy.fence_after_s < LONG_S:
            longer = replace(self.fleet.policy, fence_after_s=LONG_S)
            assert (await self.wish(SetPolicy(policy=longer))).granted

    async def tidy_up(self) -> None:
        """Cancel every job, repair every node, and wait until nothing of it is left."""
        for name in sorted(self.fleet.jobs):
            await self.wish(Cancel(job=name))
        await self.until(lambda fleet: not fleet.jobs and not fleet.plans, "jobs to end")
        await self.until(partial(_all_nodes, heard=True), "all nodes to be heard of")
        for rack in self.fleet.racks.values():
            for node in rack.nodes:
                if node.cordoned:
                    await self.wish(Uncordon(node=node.name))
                if node.failed or node.fitness is not Fitness.FULL or node.repair is not None:
                    await self.wish(Repaired(node=node.name))
        await self.until(partial(_all_nodes, heard=False), "a whole cell")
        await self.until(lambda fleet: not fleet.leaving, "workers to leave")

    async def calm(self) -> None:
        """Everything is healthy, and nothing was lost or given out twice."""
        await self.site.ready(NATS, *SERVICES, *AGENTS)
        assert self.twice() == []
        assert await self.audit() == []


def _all_nodes(fleet: Fleet, *, heard: bool) -> bool:
    nodes = [node for rack in fleet.racks.values() for node in rack.nodes]
    if heard:
        return bool(nodes) and all(n.session is not None and not n.suspected for n in nodes)
    free = all(rack.usable.bit_count() == len(rack.nodes) for rack in fleet.racks.values())
    return free and all(node.fitness is Fitness.FULL for node in nodes)


def settings(folder: Path, policy: Policy) -> dict[str, str]:
    """The variables of a small cell with real processes, whose times are short."""
    shared, told = folder / "shared", folder / "policy.json"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    # Only what differs: an older image knows fewer settings.
    default = Policy()
    names = [field.name for field in fields(policy)]
    changed = {n: getattr(policy, n) for n in names if getattr(policy, n) != getattr(default, n)}
    told.write_text(json.dumps(changed), encoding="utf-8")
    shutil.copytree(ROOT / "deploy" / "nats", folder / "nats")
    return {
        "RACKWRIGHT_IMAGE": image(),
        "NATS_IMAGE": image(),
        "NATS_PORT": str(free_port()),
        "GATEWAY_PORT": str(free_port()),
        "RACKWRIGHT_RACKS": RACKS,
        "RACKWRIGHT_PRETEND": "0",
        "RACKWRIGHT_POLICY": str(told),
        "RACKWRIGHT_NATS_DIR": str(folder / "nats"),
        "RACKWRIGHT_SHARED": str(shared),
        "RACKWRIGHT_HEALTH_INTERVAL": "2s",
    }


@asynccontextmanager
async def reached(site: Site, *, replicas: int = 1) -> AsyncIterator[Composed]:
    """Drive the cell of a site that is up."""
    servers = (f"nats://127.0.0.1:{site.settings['NATS_PORT']}",)
    users = ("admin", "operator")
    secrets = dict(zip(users, await site.passwords(*users), strict=True))

    async def open_bus(user: str) -> JetStreamBus:
        options = ConnectOptions(
            servers=servers, identity=user, user=user, password=secrets[user], connect_s=30.0
        )
        return await connect(options, "main", replicas=replicas)

    async with AsyncExitStack() as more:
        watched = await more.enter_async_context(watch(open_bus, "admin"))
        bus: Bus = await open_bus("admin")
        more.push_async_callback(bus.close)
        mine = await open_bus("operator")
        more.push_async_callback(mine.close)
        live = Composed(
            stack=cast(Stack, None),
            bus=cast(JetStreamBus, bus),
            cell=Cell(bus=mine, user=Owner("operator")),
            watched=watched,
            board=await more.enter_async_context(board(bus)),
            home=Path(site.settings["RACKWRIGHT_SHARED"]),
            site=site,
        )
        await live.until(partial(_all_nodes, heard=True), "all nodes to join")
        yield live


@asynccontextmanager
async def composed_site(
    name: str,
    folder: Path,
    *,
    policy: Policy = LONG,
    root: Path = ROOT,
    more: Mapping[str, str] = NOTHING,
) -> AsyncIterator[Site]:
    """Start a cell in containers, remove it after the block; `folder` has its logs then.

    `root` is the tree whose compose file it is started with, `more` variables of that.
    """
    profiles = ("cluster",) if "NATS_CONFIG" in more else ()
    told = {**settings(folder, policy), **more}
    site = Site(name=name, folder=folder, settings=told, root=root, profiles=profiles)
    try:
        await site.up()
        await site.ready(*SERVICES)
        yield site
    finally:
        for service in (NATS, *SERVICES, *AGENTS, "setup"):
            (folder / f"{service}.log").write_text(site.logs(service, 2000), encoding="utf-8")
        await site.down()


@asynccontextmanager
async def composed_cell(
    name: str, folder: Path, *, policy: Policy = LONG, more: Mapping[str, str] = NOTHING
) -> AsyncIterator[Composed]:
    """The same, driven from here."""
    replicas = int(more.get("RACKWRIGHT_REPLICAS", "1"))
    async with (
        composed_site(name, folder, policy=policy, more=more) as site,
        reached(site, replicas=replicas) as live,
    ):
        yield live
