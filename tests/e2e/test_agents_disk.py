"""The disk of an agent is full: what runs runs on, what cannot start is said, and room heals it.

Before anybody asks for long leases: one must be renewed on the full disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from docker.models.containers import Container

from rackwright.wire.ids import NodeId
from tests.e2e.test_agents import FEW, RACK_OF_FEW, start_in
from tests.support.composed import Composed
from tests.support.containers import SMALL_DISK, small_disk, until

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
STATE = "/var/lib/rackwright"
SECOND_NS = 1_000_000_000
LONG_NS = 15 * SECOND_NS  # longer than any lease that began before


@contextmanager
def with_small_disk(live: Composed, service: str) -> Iterator[Container]:
    """A container as the service's own, whose state is on the small disk."""
    own = live.site.one(service)
    volumes = {
        mount["Name"]: {"bind": mount["Destination"], "mode": "rw" if mount["RW"] else "ro"}
        for mount in own.attrs["Mounts"]
        if mount["Type"] == "volume" and mount["Destination"] != STATE
    }
    volumes |= {
        mount["Source"]: {"bind": mount["Destination"], "mode": "rw"}
        for mount in own.attrs["Mounts"]
        if mount["Type"] == "bind"
    }
    made = live.site.client.containers.run(
        own.image.id,
        own.attrs["Config"]["Cmd"],
        environment=own.attrs["Config"]["Env"],
        network=f"{live.site.name}_default",
        volumes={SMALL_DISK: {"bind": STATE}, **volumes},
        init=True,
        restart_policy={"Name": "always"},
        detach=True,
    )
    try:
        yield made
    finally:
        made.remove(force=True)


def lease_of(holder: Container, node: NodeId) -> int:
    """Until when the node may run workers, in ns, as its supervisors read it."""
    said = holder.exec_run(["cat", f"/disk/nodes/{node}/lease"]).output
    return int(said.split()[0])


@asynccontextmanager
async def on_small_disk(live: Composed, service: str) -> AsyncIterator[tuple[Container, Container]]:
    """One on a small disk takes its place: who holds the disk, and the container."""
    with small_disk() as holder:
        await live.site.do(service, "stop", timeout=10)
        try:
            with with_small_disk(live, service) as made:
                yield holder, made
        finally:
            await live.site.do(service, "start")
            await live.site.ready(service)


async def test_work_outlives_a_full_disk_of_its_agent(live: Composed) -> None:
    async with on_small_disk(live, FEW) as (holder, agents):
        await start_in(live, RACK_OF_FEW, "outlives", 1)
        before, [node] = live.identities("outlives"), live.nodes_of("outlives")
        holder.exec_run(["dd", "if=/dev/zero", "of=/disk/filler", "bs=4k"])
        since = lease_of(holder, node)
        await until(lambda: lease_of(holder, node) > since + LONG_NS, "a longer lease")
        starting = asyncio.create_task(start_in(live, RACK_OF_FEW, "refused", 1))
        await until(lambda: b"No space left on device" in agents.logs(tail=200), "the agent")
        holder.exec_run(["rm", "/disk/filler"])
        await starting
        assert live.identities("outlives") == before
        agents.reload()
        assert agents.attrs["RestartCount"] == 0
        await live.tidy_up()
