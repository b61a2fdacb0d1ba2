"""The table of permissions on a real server: what is denied is denied, what is needed passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rackwright.bus import permissions
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.errors import AuthFailed, BusDenied, WrongUser
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.permissions import Place, Role, User
from rackwright.bus.ports import Appended, Change, Ready, Stored
from rackwright.bus.streams import Kind

pytestmark = pytest.mark.integration

ROOT = "rackwright.lab"


def users() -> list[User]:
    places = [Place(shard="00", rack="r1", node="n1"), Place(shard="00", rack="r1", node="n2")]
    return [
        User(name="admin", password="secret"),
        *(
            User(name=role, password="secret", permissions=permissions.service("lab", role, role))
            for role in Role
        ),
        User(
            name="agent",
            password="secret",
            permissions=permissions.agent("lab", "agent", places),
        ),
        User(name="fleet", password="secret", permissions=permissions.agent("lab", "fleet", None)),
        User(name="ann", password="secret", permissions=permissions.user("lab", "ann")),
        User(name="op", password="secret", permissions=permissions.operator("lab", "op")),
    ]


class Site:
    """A server with users, and connections of theirs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._buses: list[JetStreamBus] = []

    async def bus(self, name: str, password: str = "secret", user: str = "") -> JetStreamBus:
        bus = await connect(
            ConnectOptions(
                servers=(self._url,),
                identity=name,
                user=user or name,
                password=password,
                reconnect_s=0.05,
                connect_s=5.0,
            ),
            "lab",
        )
        self._buses.append(bus)
        return bus

    async def close(self) -> None:
        for bus in self._buses:
            await bus.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path, users=users())) as server:
        site = Site(server.url)
        await (await site.bus("admin")).ensure()
        yield site
        await site.close()


async def test_a_wrong_password_is_an_error_at_once(site: Site) -> None:
    with pytest.raises(AuthFailed) as failed:
        await site.bus("placer", "wrong")
    assert failed.value.identity == "placer"


async def test_anothers_user_is_an_error_at_once(site: Site) -> None:
    with pytest.raises(WrongUser) as failed:
        await site.bus("placer", user="gateway")
    assert str(failed.value) == (
        "user 'gateway' of the bus is not permitted to hear _INBOX_placer.>, where placer is"
        " answered: log in as the user of placer"
    )


@pytest.mark.parametrize(
    ("role", "own", "foreign"),
    [
        ("placer", "job.placed", "node.failed"),
        ("health-monitor", "node.suspected", "job.placed"),
        ("spare-manager", "slice.swapped", "defrag.planned"),
        ("defragmenter", "defrag.planned", "job.placed"),
        ("dispatcher", "snapshot.verified", "job.finished"),
    ],
)
async def test_a_service_decides_only_its_own(
    site: Site, role: str, own: str, foreign: str
) -> None:
    bus = await site.bus(role)
    denied: list[tuple[str, str]] = []
    bus.link.on_denied(lambda operation, subject: denied.append((operation, subject)))
    assert await bus.ledger.append(f"{ROOT}.ledger.{own}", b"x", expected=0) == Appended(seq=1)
    with pytest.raises(BusDenied) as error:
        await bus.ledger.append(f"{ROOT}.ledger.{foreign}", b"x", expected=1)
    assert error.value.subject == f"{ROOT}.ledger.{foreign}"
    await asyncio.sleep(0)
    assert denied == [("publish", f"{ROOT}.ledger.{foreign}")]
    assert bus.link.denied == 1
    async with bus.ledger.follow(1) as feed, asyncio.timeout(30):
        assert (await anext(feed)).data == b"x"
    assert bus.link.denied == 1


async def test_no_service_changes_a_stream_and_only_one_purges_the_ledger(site: Site) -> None:
    admin = await site.bus("admin")
    await admin.ledger.append(f"{ROOT}.ledger.ledger.created", b"x", expected=0)
    for role in (Role.PLACER, Role.HEALTH_MONITOR, Role.SPARE_MANAGER, Role.GATEWAY):
        bus = await site.bus(role)
        name = bus.specs[Kind.LEDGER].name
        for verb in ("UPDATE", "DELETE", "CREATE"):
            with pytest.raises(BusDenied):
                await bus.api.call(f"STREAM.{verb}.{name}", bus.specs[Kind.LEDGER].config())
        with pytest.raises(BusDenied):
            await bus.ledger.purge_to(2)
    await (await site.bus("dispatcher")).ledger.purge_to(2)
    assert (await admin.ledger.ends()).first == 2


async def test_an_agent_reports_for_its_nodes_and_reads_its_rack(site: Site) -> None:
    agent, dispatcher = await site.bus("agent"), await site.bus("dispatcher")
    assert await agent.core.publish(f"{ROOT}.hb.00.r1.n1", b"")
    await agent.signals.publish(f"{ROOT}.signal.00.r1.n1", b"xid")
    await agent.status.put(f"{ROOT}.status.00.r1.n2", b"up")
    await dispatcher.jobs.put("j1", b"spec", revision=0)
    async with agent.assign.watch("r1") as feed, asyncio.timeout(30):
        assert isinstance(await anext(feed), Ready)
        await dispatcher.assign.put("r1", b"go", revision=0)
        assert await anext(feed) == Change(key="r1", revision=1, data=b"go")
    spec = await agent.jobs.get("j1")
    assert spec is not None
    assert spec.data == b"spec"
    echoes = await agent.core.subscribe(f"{ROOT}.echo.00.r1")
    monitor = await site.bus("health-monitor")
    await monitor.core.publish(f"{ROOT}.echo.00.r1", b"echo")
    async with asyncio.timeout(30):
        assert (await anext(echoes)).data == b"echo"
    assert agent.link.denied == 0


async def test_an_agent_can_neither_decide_nor_speak_for_others(site: Site) -> None:
    agent = await site.bus("agent")
    with pytest.raises(BusDenied):
        await agent.status.put(f"{ROOT}.status.00.r1.n3", b"up")
    with pytest.raises(BusDenied):
        await agent.signals.publish(f"{ROOT}.signal.00.r2.n1", b"xid")
    with pytest.raises(BusDenied):
        await agent.ledger.append(f"{ROOT}.ledger.node.failed", b"x", expected=0)
    with pytest.raises(BusDenied):
        await agent.assign.put("r1", b"mine", revision=0)
    with pytest.raises(BusDenied):
        await agent.assign.get("r2")
    with pytest.raises(BusDenied):
        await agent.wishes.publish(f"{ROOT}.wish.ann.submit", b"x")
    name = agent.specs[Kind.ASSIGN].name
    with pytest.raises(BusDenied):
        await agent.api.call(f"CONSUMER.CREATE.{name}.mine", {})
    assert agent.link.denied == 7


async def test_a_denied_subscription_is_counted(site: Site) -> None:
    agent = await site.bus("agent")
    told = asyncio.Event()
    agent.link.on_denied(lambda operation, subject: told.set())
    await agent.core.subscribe(f"{ROOT}.hb.>")
    async with asyncio.timeout(30):
        await told.wait()
    assert agent.link.denied == 1


async def test_a_user_wishes_in_his_own_name_only(site: Site) -> None:
    ann, placer = await site.bus("ann"), await site.bus("placer")
    await ann.wishes.publish(f"{ROOT}.wish.ann.submit", b"job")
    for subject in (f"{ROOT}.wish.bob.submit", f"{ROOT}.wish.bob.cancel"):
        with pytest.raises(BusDenied):
            await ann.wishes.publish(subject, b"job")
    async with await ann.core.subscribe(f"{ROOT}.told.job.>") as told, asyncio.timeout(30):
        await placer.ledger.append(f"{ROOT}.ledger.job.queued", b"queued", expected=0)
        assert (await anext(told)).data == b"queued"
    async with placer.wishes.follow(1) as feed, asyncio.timeout(30):
        assert (await anext(feed)).subject == f"{ROOT}.wish.ann.submit"
    await placer.wishes.trim(2)
    with pytest.raises(BusDenied):
        await ann.core.request(f"{ROOT}.wish.bob.submit", b"job")


async def test_services_answer_questions_of_users(site: Site) -> None:
    gateway, ann = await site.bus("gateway"), await site.bus("ann")

    async def answer(message: object) -> bytes:
        return b"jobs"

    responder = await gateway.core.respond(f"{ROOT}.query.jobs", answer)
    assert (await ann.core.request(f"{ROOT}.query.jobs", b"")).data == b"jobs"
    await responder.aclose()
    assert (gateway.link.denied, ann.link.denied) == (0, 0)


async def test_every_reader_can_read_what_the_table_gives_it(site: Site) -> None:
    fleet = await site.bus("fleet")
    await fleet.status.put(f"{ROOT}.status.01.r7.n1", b"up")
    await fleet.signals.publish(f"{ROOT}.signal.01.r7.n1", b"xid")
    for name in ("health-monitor", "gateway", "op"):
        bus = await site.bus(name)
        async with bus.status.follow() as status, asyncio.timeout(30):
            assert isinstance(await anext(status), Stored)
        async with bus.signals.follow(0.0) as signals, asyncio.timeout(30):
            assert isinstance(await anext(signals), Stored)
        assert await bus.snapshots.subjects() == []
        assert bus.link.denied == 0
    operator = await site.bus("op")
    assert await operator.jobs.keys() == []
    assert operator.link.denied == 0


async def test_owners_make_memory_streams_anew_after_the_server_forgot_them(
    tmp_path: Path,
) -> None:
    server = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path, users=users()))
    await server.start()
    site = Site(server.url)
    await (await site.bus("admin")).ensure()
    owner = await connect(
        ConnectOptions(
            servers=(server.url,),
            identity="health-monitor",
            user="health-monitor",
            password="secret",
            reconnect_s=0.05,
        ),
        "lab",
        recreate=(Kind.STATUS, Kind.SIGNAL),
    )
    fleet = await site.bus("fleet")
    back = asyncio.Event()
    fleet.link.on_reconnect(back.set)
    await fleet.status.put(f"{ROOT}.status.01.r7.n1", b"before")
    async with owner.status.follow() as feed, asyncio.timeout(30):
        assert isinstance(await anext(feed), Stored)
        assert isinstance(await anext(feed), Ready)
        await server.kill()
        await server.start()
        assert isinstance(await anext(feed), Ready)
        await back.wait()
        await fleet.status.put(f"{ROOT}.status.01.r7.n1", b"after")
        item = await anext(feed)
        assert isinstance(item, Stored)
        assert item.data == b"after"
    await owner.close()
    await site.close()
    await server.stop()
