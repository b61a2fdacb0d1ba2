"""Three servers: the header that stops a replicated stream for ever, from whoever may publish."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rackwright.bus.embedded import EmbeddedServer
from rackwright.bus.errors import BusAway
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.permissions import Permissions, Place, User, agent, operator, user
from rackwright.bus.ports import Appended, Refused
from rackwright.bus.streams import declare
from tests.integration.bus.test_replicas import three_servers

pytestmark = pytest.mark.integration
PLACED = "rackwright.lab.ledger.job.placed"
POISON = {"Nats-Expected-Last-Msg-Id": "nonsense"}
CLIENTS = {
    "ann": user("lab", "ann"),
    "op": operator("lab", "op"),
    "node": agent("lab", "node", [Place(shard="00", rack="r1", node="n1")]),
    "fleet": agent("lab", "fleet", None),
}
REPLICATED = [spec for spec in declare("lab", replicas=3).values() if spec.replicas == 3]


def concrete(rights: Permissions) -> Iterator[str]:
    """One subject of each that the rights allow."""
    for pattern in rights.publish:
        yield pattern.replace("*", "any").replace(">", "any.thing")


async def as_client(servers: list[EmbeddedServer], name: str) -> JetStreamBus:
    options = ConnectOptions(
        servers=tuple(server.url for server in servers),
        identity=name,
        user=name,
        password="x",
        request_s=5.0,
    )
    return await connect(options, "lab", replicas=3)


async def test_no_client_outside_stops_a_replicated_stream(tmp_path: Path) -> None:
    users = [User(name="admin", password="x")]
    users += [User(name=name, password="x", permissions=r) for name, r in CLIENTS.items()]
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(three_servers(tmp_path, users))
        admin = await as_client(servers, "admin")
        stack.push_async_callback(admin.close)
        await made(admin)
        targets = [f"{spec.root}any.thing" for spec in REPLICATED]
        for name, rights in CLIENTS.items():
            client = await as_client(servers, name)
            for subject in concrete(rights):
                # The header itself, then with the answer sent into each replicated stream.
                await client.link.publish(subject, b"{}", headers=POISON)
                for target in targets:
                    await client.link.publish(subject, b"{}", reply=target, headers=POISON)
                    await client.link.publish(subject, b"", reply=target)
            for target in targets:  # and straight, which the bus must deny
                await client.link.publish(target, b"{}", headers=POISON)
            await client.link.flush()
            await client.close()
        await lives(admin)


async def made(admin: JetStreamBus) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await admin.ensure()
                return
            except BusAway:
                await asyncio.sleep(0.1)  # the servers are still electing


async def lives(admin: JetStreamBus) -> None:
    """Every replicated stream takes a write."""
    async with asyncio.timeout(60):
        while True:  # what the clients sent may still be coming in
            last = (await admin.ledger.ends()).last
            outcome = await admin.ledger.append(PLACED, b"a", expected=last)
            if not isinstance(outcome, Refused):
                break
    assert outcome == Appended(seq=last + 1)
    for bucket in (admin.assign, admin.jobs):
        assert isinstance(await bucket.put("new", b"a", revision=0), Appended)
    await admin.snapshots.write("rackwright.lab.snap.new", b"a")
    before = (await admin.wishes.ends()).last
    await admin.wishes.publish("rackwright.lab.wish.admin.submit", b"a")
    async with admin.wishes.follow(before + 1) as feed, asyncio.timeout(30):
        assert (await anext(feed)).seq > before
