"""The service as a process: killed, stopped, taken over by another copy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.host.create import create_ledger
from tests.integration.host.helpers import PATIENCE_S, answers, ledger, wish

pytestmark = pytest.mark.integration
CELL = "lab"
ROOT = Path(__file__).parents[3]


class Child:
    """One process of the service, and what it logs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def line(self, event: str) -> dict[str, Any]:
        """Its next log line of that event."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while raw := await self.process.stderr.readline():
                self.lines.append(json.loads(raw))
                if self.lines[-1]["event"] == event:
                    return self.lines[-1]
        raise AssertionError(f"ended without {event}: {self.lines}")

    async def end(self, how: signal.Signals) -> int:
        """End it and read what it still had to say; its exit status."""
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await self.ended()

    async def ended(self) -> int:
        """Read what it still has to say, until it ends; its exit status."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            rest = await self.process.stderr.read()
            self.lines += [json.loads(raw) for raw in rest.splitlines()]
            return await self.process.wait()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path / "nats")) as server:
        yield server


@pytest.fixture
async def bus(server: EmbeddedServer) -> AsyncIterator[JetStreamBus]:
    bus = await connect(ConnectOptions(servers=(server.url,), identity="admin"), CELL)
    await bus.ensure()
    assert await create_ledger(bus)
    yield bus
    await bus.close()


@asynccontextmanager
async def child(url: str, copy: int = 0, **settings: str) -> AsyncIterator[Child]:
    """A process of the service that says no to every wish; killed after the block."""
    more = {f"RACKWRIGHT_{name.upper()}": value for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.host.child",
        "--copy",
        str(copy),
        cwd=ROOT,
        env={**os.environ, "RACKWRIGHT_NATS": url, "RACKWRIGHT_CELL": CELL, **more},
        stderr=asyncio.subprocess.PIPE,
    )
    one = Child(process)
    try:
        yield one
    finally:
        await one.end(signal.SIGKILL)


async def answered(bus: JetStreamBus, wanted: list[int]) -> None:
    """Wait until these wishes are answered."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if set(wanted) <= set(await answers(bus)):
                return
            await asyncio.sleep(0.02)


async def test_killed_in_the_middle_nothing_is_lost_or_doubled(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    wanted = [await wish(bus, f"j{n}") for n in range(40)]
    async with child(server.url) as first:
        await first.line("service.ready")
        for n in range(40, 80):
            wanted.append(await wish(bus, f"j{n}"))
            if n == 60:
                first.process.kill()
    async with child(server.url):
        await answered(bus, wanted)
    assert sorted(await answers(bus)) == wanted


async def test_stopped_by_a_signal_it_ends_well(server: EmbeddedServer, bus: JetStreamBus) -> None:
    async with child(server.url) as one:
        await one.line("service.ready")
        seq = await wish(bus, "a")
        await answered(bus, [seq])
        assert await one.end(signal.SIGTERM) == 0
    assert one.lines[-1]["event"] == "service.stopped"
    assert {line["service"] for line in one.lines} == {"placer"}


async def test_a_copy_takes_over_when_its_better_dies(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    async with child(server.url, 0) as better, child(server.url, 1) as other:
        await better.line("service.ready")
        await other.line("service.ready")
        first = await wish(bus, "a")
        await answered(bus, [first])
        better.process.kill()
        await better.process.wait()
        second = await wish(bus, "b")
        await answered(bus, [second])
        third = await wish(bus, "c")
        await answered(bus, [third])
    sources = [commit.source for commit in await ledger(bus)]
    assert sources == ["admin/0", "placer/0", "placer/1", "placer/1"]


async def test_it_serves_its_standing_and_its_metrics(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    async with child(server.url) as one, aiohttp.ClientSession() as http:
        listening = await one.line("http.listening")
        await one.line("service.ready")
        url = f"http://{listening['host']}:{listening['port']}"
        async with http.get(f"{url}/readyz") as answer:
            assert answer.status == 200
            assert (await answer.json())["revision"] == 1
        async with http.get(f"{url}/metrics") as answer:
            page = await answer.text()
    assert "rackwright_ready 1.0" in page
    assert 'rackwright_service{cell="lab",copy="0",service="placer"} 1.0' in page


async def test_it_can_be_stopped_while_it_waits_for_its_streams(tmp_path: Path) -> None:
    options = EmbeddedOptions(data_dir=tmp_path / "nats")
    async with EmbeddedServer(options) as server, child(server.url) as one:
        await one.line("ledger.awaited")
        assert await one.end(signal.SIGTERM) == 0


async def test_it_waits_for_a_bus_and_can_be_stopped_meanwhile() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with child(f"nats://127.0.0.1:{taken.getsockname()[1]}") as one:
            await one.line("http.listening")
            assert await one.end(signal.SIGTERM) == 0


async def test_a_machine_that_fails_ends_the_process_loudly(
    server: EmbeddedServer, bus: JetStreamBus
) -> None:
    async with child(server.url, CHILD_FAILS="1") as one:
        await one.line("service.ready")
        await wish(bus, "a")
        died = await one.line("process.died")
        assert await one.ended() == 1
    assert "this machine fails" in died["exception"]


async def test_presence_is_seen_by_any_nats_tool(server: EmbeddedServer, bus: JetStreamBus) -> None:
    async with child(server.url, 3) as one:
        await one.line("service.ready")
        answer = await bus.core.request("$SRV.INFO.rackwright-placer", b"")
    info = json.loads(answer.data)
    assert info["type"] == "io.nats.micro.v1.info_response"
    assert info["name"] == "rackwright-placer"
    assert info["metadata"]["copy"] == "3"
    assert info["metadata"]["ready"] == "true"


async def test_traces_lead_from_the_wish_to_the_commit(
    server: EmbeddedServer, bus: JetStreamBus, tmp_path: Path
) -> None:
    file = tmp_path / "trace.jsonl"
    async with child(server.url, trace_file=str(file)) as one:
        await one.line("service.ready")
        await answered(bus, [await wish(bus, "a")])
        assert await one.end(signal.SIGTERM) == 0
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    wished = next(span for span in spans if span["name"] == "process wishes")
    sent = next(span for span in spans if span["name"].startswith("send "))
    assert sent["context"]["trace_id"] == wished["context"]["trace_id"]
    assert sent["parent_id"] == wished["context"]["span_id"]
    assert sent["attributes"]["rackwright.seq"] == 2


async def test_a_secret_is_never_printed(server: EmbeddedServer, bus: JetStreamBus) -> None:
    url = server.url.replace("nats://", "nats://bob:open-sesame@")
    async with child(url, user="bob", password="open-sesame") as one:
        await one.line("service.ready")
        assert await one.end(signal.SIGTERM) == 0
    assert "open-sesame" not in json.dumps(one.lines)
