"""Faults of the client and of servers that a service must live through, or die of loudly."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.bus.api import ensure
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.errors import (
    BusAway,
    BusClosed,
    JetStreamDisabled,
    MissingExtra,
    ServerTooOld,
    StreamDiffers,
    StreamMissing,
)
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Appended, Cause, Unsettled
from rackwright.bus.streams import KIB, MIB, Kind, Limits, Storage, declare

pytestmark = pytest.mark.integration

PLACED = "rackwright.lab.ledger.job.placed"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as server:
        yield server


def options(url: str, identity: str = "test") -> ConnectOptions:
    return ConnectOptions(
        servers=(url,),
        identity=identity,
        reconnect_s=0.05,
        request_s=0.5,
        ping_s=0.2,
        connect_s=0.5,
        connect_attempt_s=0.3,
    )


def freeze(pid: int) -> None:
    """Stop a child, and wait until it has stopped: its threads go on for a moment."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


@pytest.fixture
async def bus(server: EmbeddedServer) -> AsyncIterator[JetStreamBus]:
    bus = await connect(options(server.url), "lab")
    await bus.ensure()
    yield bus
    await bus.close()


def occurrence(bus: JetStreamBus, what: str) -> asyncio.Event:
    event = asyncio.Event()
    getattr(bus.link, what)(event.set)
    return event


# Connecting


async def test_nobody_there_is_away_within_the_given_time() -> None:
    with pytest.raises(BusAway):
        await connect(options("nats://127.0.0.1:1"), "lab")


class FakeServer:
    """Greets as a NATS server of some version would, and answers pings."""

    def __init__(self, **info: object) -> None:
        self._info = {"server_id": "x", "max_payload": 1024, "headers": True, **info}
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def __aenter__(self) -> FakeServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        writer.write(f"INFO {json.dumps(self._info)}\r\n".encode())
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        for writer in self._writers:
            writer.close()
        self._server.close()


@pytest.mark.parametrize("version", ["2.14.9", "1.9.0", ""])
async def test_an_old_server_is_refused_by_its_version(version: str) -> None:
    async with FakeServer(version=version, jetstream=True) as fake:
        with pytest.raises(ServerTooOld) as old:
            await connect(options(fake.url), "lab")
    assert (old.value.found, old.value.wanted) == (version, "2.15")


async def test_a_server_without_jetstream_is_refused() -> None:
    async with FakeServer(version="2.16.0") as fake:
        with pytest.raises(JetStreamDisabled):
            await connect(options(fake.url), "lab")


def test_an_identity_that_could_reach_into_other_inboxes_is_refused() -> None:
    for identity in ("", "a.b", "a*", "a b", "x" * 65):
        with pytest.raises(ValueError, match="identity"):
            options("nats://127.0.0.1:1", identity)


async def test_a_seed_file_without_the_package_for_it_says_so(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with_seed = replace(options(server.url), nkey_seed_file=tmp_path / "seed")
    with pytest.raises(MissingExtra, match="nkeys"):
        await connect(with_seed, "lab")


# Under way


async def test_a_frozen_server_is_noticed_and_outlived(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    gone, back = occurrence(bus, "on_disconnect"), occurrence(bus, "on_reconnect")
    async with bus.ledger.follow(1) as feed, asyncio.timeout(30):
        freeze(server.pid)
        try:
            outcome = await bus.ledger.append(PLACED, b"frozen", expected=0)
            assert isinstance(outcome, Unsettled)
            assert outcome.reason is Cause.NO_ANSWER
            await gone.wait()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await back.wait()
        last = (await bus.ledger.ends()).last  # the frozen append may be in, or come in late
        await bus.ledger.append(PLACED, b"thawed", expected=last)
        seen = [await anext(feed)]
        while seen[-1].data != b"thawed":
            seen.append(await anext(feed))
    assert [s.seq for s in seen] == list(range(1, len(seen) + 1))
    assert len(seen) <= 2


async def test_a_flush_that_was_given_up_does_not_end_the_connection(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    bus = await connect(replace(options(server.url), ping_s=60.0, request_s=0.2), "lab")
    try:
        freeze(server.pid)
        try:
            with pytest.raises(BusAway, match="flush"):
                await bus.link.flush()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        async with asyncio.timeout(20):
            await bus.ensure()
            await bus.link.flush()
        assert bus.link.reconnects == 0
    finally:
        await bus.close()


async def test_a_process_that_was_busy_for_long_still_finds_its_answer(bus: JetStreamBus) -> None:
    appending = asyncio.create_task(bus.ledger.append(PLACED, b"x", expected=0))
    for _ in range(3):  # it is sent, and not yet answered
        await asyncio.sleep(0)
    threading.Event().wait(1.0)  # twice its patience, and nobody reads the socket
    assert await appending == Appended(seq=1)


async def test_a_dead_reading_task_is_noticed_and_replaced(bus: JetStreamBus) -> None:
    back = occurrence(bus, "on_reconnect")
    reading = bus.link._nc._reading_task
    assert reading is not None
    reading.cancel()
    async with asyncio.timeout(20):
        await back.wait()
    assert await bus.ledger.append(PLACED, b"x", expected=0) == Appended(seq=1)


async def test_a_listener_that_raises_does_not_hurt_the_connection(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    raised = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: raised.set())

    def listener() -> None:
        raise ZeroDivisionError

    bus.link.on_disconnect(listener)
    back = occurrence(bus, "on_reconnect")
    async with asyncio.timeout(20):
        await server.kill()
        await server.start()
        await back.wait()
    assert raised.is_set()
    assert await bus.ledger.append(PLACED, b"x", expected=0) == Appended(seq=1)


async def test_a_consumer_deleted_on_the_server_is_made_anew(bus: JetStreamBus) -> None:
    name = bus.specs[Kind.LEDGER].name
    async with bus.ledger.follow(1) as feed, asyncio.timeout(20):
        for n in range(3):
            await bus.ledger.append(PLACED, b"%d" % n, expected=n)
            assert (await anext(feed)).seq == n + 1
            for consumer in (await bus.api.call(f"CONSUMER.NAMES.{name}"))["consumers"]:
                await bus.api.call(f"CONSUMER.DELETE.{name}.{consumer}")


async def test_consumers_do_not_pile_up(bus: JetStreamBus) -> None:
    name = bus.specs[Kind.ASSIGN].name
    for _ in range(20):
        await bus.assign.keys()
    await bus.link.flush()
    assert not (await bus.api.call(f"CONSUMER.NAMES.{name}"))["consumers"]


async def test_a_slow_reader_gets_everything_in_order(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    other = await connect(options(server.url, "other"), "lab")
    count = 30_000  # more than one flow-control window and more than the feed's high mark
    subject = "rackwright.lab.signal.00.r1.n"
    for n in range(count):
        await bus.link.publish(f"{subject}{n}", b"x" * 1000)
        if n % 1000 == 0:
            await bus.link.flush()
    seen: list[int] = []
    async with bus.signals.follow(0.0) as feed, asyncio.timeout(120):
        await anext(feed)
        while feed.buffered < 16_000:
            await other.link.flush()  # let it run into its limit, then read on
        while len(seen) < count - 1:
            seen += [item.seq for item in await feed.batch(100) if hasattr(item, "seq")]
    assert seen == list(range(2, count + 1))
    await other.close()


async def test_a_request_in_flight_when_the_connection_breaks_is_answered_at_once(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    hearer = await bus.core.subscribe("rackwright.lab.query.slow")
    asking = asyncio.create_task(
        bus.core.request("rackwright.lab.query.slow", b"", patience=3600.0)
    )
    async with asyncio.timeout(20):
        await anext(hearer)
        await server.kill()
        with pytest.raises(BusAway, match="connection lost"):
            await asking


async def test_a_connection_the_server_ends_for_good_says_why(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    async with FakeServer(version="2.16.0", jetstream=True) as fake:
        bus = await connect(options(fake.url), "lab")
        feed = bus.ledger.follow(1)
        fake._writers[0].write(b"-ERR 'maximum connections exceeded'\r\n")
        async with asyncio.timeout(20):
            reason = await bus.link.closed()
            with pytest.raises(BusClosed):
                await anext(feed)
        assert "maximum connections exceeded" in reason
        await bus.close()


# Streams


async def test_ensure_makes_repeats_and_changes(server: EmbeddedServer, bus: JetStreamBus) -> None:
    await bus.ensure()
    wider = declare("lab", limits=Limits(wish_bytes=300 * MIB, signal_per_node=32))
    await ensure(bus.link, wider)
    for kind, spec in wider.items():
        config = (await bus.api.stream(spec.name)).config
        assert config["max_bytes"] == spec.max_bytes, kind
        assert config["max_msgs_per_subject"] == spec.max_per_subject, kind
    ledger = (await bus.api.stream(wider[Kind.LEDGER].name)).config
    assert {k: ledger[k] for k in ("deny_delete", "allow_direct", "discard", "max_age")} == {
        "deny_delete": True,
        "allow_direct": False,
        "discard": "new",
        "max_age": 0,
    }
    assert ledger["max_msg_size"] == 128 * KIB


async def test_what_cannot_be_changed_is_an_error_with_names(bus: JetStreamBus) -> None:
    with pytest.raises(StreamDiffers) as differs:
        await ensure(bus.link, declare("lab", limits=Limits(status_storage=Storage.FILE)))
    assert differs.value.stream == bus.specs[Kind.STATUS].name
    assert differs.value.fields == {"storage": ("memory", "file")}


async def test_a_ledger_that_is_not_there_is_missing(server: EmbeddedServer) -> None:
    bus = await connect(options(server.url), "other")
    with pytest.raises(StreamMissing):
        await bus.ledger.ends()
    async with bus.ledger.follow(1) as feed, asyncio.timeout(20):
        with pytest.raises(StreamMissing):
            await anext(feed)
    outcome = await bus.ledger.append("rackwright.other.ledger.job.placed", b"x", expected=0)
    assert isinstance(outcome, Unsettled)
    assert outcome.reason is Cause.NO_LEADER
    await bus.close()


async def test_two_cells_share_a_server_and_nothing_else(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    other = await connect(options(server.url), "other")
    await other.ensure()
    await bus.ledger.append(PLACED, b"x", expected=0)
    assert (await other.ledger.ends()).last == 0
    await other.close()


async def test_a_transport_that_is_closed_already_is_an_absence(
    bus: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed:
        """As uvloop's is between the end of the server and the client's noticing it."""

        def writelines(self, _: object) -> None:
            raise RuntimeError("the handler is closed")

    client = bus.link._nc
    with monkeypatch.context() as patch:
        patch.setattr(client, "_transport", Closed())
        patch.setattr(client, "_flusher_task", None)
        assert not await bus.core.publish("rackwright.lab.told.job.placed", b"{}")
        outcome = await bus.ledger.append(PLACED, b"{}", expected=None)
        assert isinstance(outcome, Unsettled)
        assert outcome.reason is Cause.AWAY
        client._pending, client._pending_data_size = [], 0
