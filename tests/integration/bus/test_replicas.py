"""Three servers: compare, the intake that shields replicated streams, and the loss of a leader."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.errors import BusAway, BusRejected
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.permissions import User
from rackwright.bus.ports import Appended, Ready, Refused, Stored, Unsettled
from rackwright.bus.streams import Kind

pytestmark = pytest.mark.integration

PLACED = "rackwright.lab.ledger.job.placed"
SUBMIT = "rackwright.lab.wish.ann.submit"


def free_ports(count: int) -> list[int]:
    with HeldPorts() as sockets:
        return [sockets.bind() for _ in range(count)]


class HeldPorts:
    """Holds several ports at once, so that they differ."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> HeldPorts:
        return self

    def bind(self) -> int:
        held = socket.socket()
        self._sockets.append(held)
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        for held in self._sockets:
            held.close()


@asynccontextmanager
async def three_servers(
    root: Path, users: Sequence[User] = ()
) -> AsyncIterator[list[EmbeddedServer]]:
    """A cluster of three, on ports of its own."""
    ports = free_ports(3)
    routes = [f"nats://127.0.0.1:{port}" for port in ports]
    async with AsyncExitStack() as stack:
        servers = []
        for n, port in enumerate(ports):
            cluster = {"name": "lab", "listen": f"127.0.0.1:{port}", "routes": routes}
            options = EmbeddedOptions(
                data_dir=root / str(n), name=f"s{n}", users=users, extra={"cluster": cluster}
            )
            servers.append(await stack.enter_async_context(EmbeddedServer(options)))
        yield servers


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[list[EmbeddedServer]]:
    async with three_servers(tmp_path) as servers:
        yield servers


async def open_bus(servers: list[EmbeddedServer], identity: str) -> JetStreamBus:
    options = ConnectOptions(
        servers=tuple(server.url for server in servers), identity=identity, reconnect_s=0.05
    )
    return await connect(options, "lab", replicas=3)


@pytest.fixture
async def bus(servers: list[EmbeddedServer]) -> AsyncIterator[JetStreamBus]:
    bus = await open_bus(servers, "admin")
    async with asyncio.timeout(30):
        while True:
            try:
                await bus.ensure()
                break
            except BusAway:
                await asyncio.sleep(0.1)  # the servers are still electing
    yield bus
    await bus.close()


async def test_three_servers_keep_the_promises_of_one(
    servers: list[EmbeddedServer], bus: JetStreamBus
) -> None:
    other = await open_bus(servers, "other")
    assert await bus.ledger.append(PLACED, b"a", expected=0) == Appended(seq=1)
    assert await other.ledger.append(PLACED, b"b", expected=0) == Refused(last_seq=1)
    both = await asyncio.gather(
        bus.ledger.append(PLACED, b"c", expected=1), other.ledger.append(PLACED, b"d", expected=1)
    )
    assert sorted(type(o).__name__ for o in both) == ["Appended", "Refused"]
    assert await bus.assign.put("r1", b"a", revision=0) == Appended(seq=1)
    assert await other.assign.put("r1", b"b", revision=0) == Refused(last_seq=1)
    await bus.status.put("rackwright.lab.status.00.r1.n1", b"up")
    async with other.status.follow() as feed, asyncio.timeout(30):
        assert isinstance(await anext(feed), Stored)
        assert isinstance(await anext(feed), Ready)
    await bus.ensure()
    await other.close()


async def test_a_header_that_stops_replicated_streams_stops_at_the_intake(
    bus: JetStreamBus,
) -> None:
    poison = {"Nats-Expected-Last-Msg-Id": "nonsense"}
    with pytest.raises(BusRejected) as rejected:
        await bus.wishes.publish(SUBMIT, b"poison", poison)
    assert rejected.value.code == 10070
    for n in range(3):
        await bus.wishes.publish(SUBMIT, b"%d" % n, {"Nats-Expected-Last-Msg-Id": ""})
    async with bus.wishes.follow(1) as feed, asyncio.timeout(20):
        wishes = [await anext(feed) for _ in range(3)]
    assert [(w.seq, w.subject, w.data) for w in wishes] == [
        (n + 1, SUBMIT, b"%d" % n) for n in range(3)
    ]
    assert "Nats-Expected-Last-Msg-Id" not in wishes[0].headers


async def test_the_loss_of_a_leader_loses_nothing_and_doubles_nothing(
    servers: list[EmbeddedServer], bus: JetStreamBus
) -> None:
    name = bus.specs[Kind.LEDGER].name
    leader = (await bus.api.call(f"STREAM.INFO.{name}"))["cluster"]["leader"]
    written: list[bytes] = []
    seen: list[Stored] = []
    async with bus.ledger.follow(1) as feed, asyncio.timeout(60):
        while len(written) < 60:
            if len(written) == 20:
                await servers[int(leader[1])].kill()
            data = b"%d" % len(written)
            if await settle(bus, data, len(written)):
                written.append(data)
        while len(seen) < 60:
            seen += await feed.batch()
    assert [s.data for s in seen] == written
    assert [s.seq for s in seen] == list(range(1, 61))


async def settle(bus: JetStreamBus, data: bytes, expected: int) -> bool:
    """Offer until it is in: refused by one is the mark that an unanswered attempt was taken."""
    match await bus.ledger.append(PLACED, data, expected=expected):
        case Appended(seq=seq):
            return seq == expected + 1
        case Refused(last_seq=last):
            return last == expected + 1
        case Unsettled():
            await asyncio.sleep(0.05)
            return False
