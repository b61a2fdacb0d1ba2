"""The bus of `rackwright up` is started again, also when that does not work at once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer, find_binary
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.cli.keeper import Kept, Program, how_ended, keep_server

pytestmark = pytest.mark.integration
LOOK_S = 0.02


async def test_a_server_that_ended_is_started_as_soon_as_it_can_be(tmp_path: Path) -> None:
    binary = tmp_path / "nats-server"
    binary.symlink_to(find_binary())
    options = EmbeddedOptions(data_dir=tmp_path / "nats", binary=binary, tied=True)
    async with asyncio.timeout(60), EmbeddedServer(options) as server:
        first, url = server.pid, server.url
        said: list[str] = []
        with capture_logs() as logs:
            keeper = asyncio.create_task(keep_server(server, said.append))
            binary.unlink()  # as in the middle of an upgrade
            os.kill(first, signal.SIGKILL)
            await _told(logs, "process.failed")
            binary.symlink_to(find_binary())
            await _told(logs, "process.started")
        assert said[0].startswith("nats-server ended: killed by SIGKILL; it is started again in ")
        assert said[1].startswith("nats-server does not start: ")
        while len(said) < 3 or "is back" not in said[-1]:  # noqa: ASYNC110 - told after the log
            await asyncio.sleep(LOOK_S)
        assert server.pid != first
        assert server.url == url
        bus = await connect(ConnectOptions(servers=(url,), identity="lead"), "lab")
        await bus.close()
        assert not keeper.done()
        keeper.cancel()
        await asyncio.wait({keeper})


async def _told(logs: list[Any], event: str) -> None:
    while not any(one["event"] == event for one in logs):  # noqa: ASYNC110 - a log has no event
        await asyncio.sleep(LOOK_S)


async def test_who_ended_and_who_is_back_is_told(tmp_path: Path) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    ready = asyncio.Event()

    async def answers() -> None:
        await ready.wait()

    program = Program(name="placer-0", module="http.server", arguments=("0",))
    kept = Kept(program, tmp_path, tell=said.put_nowait, ready=answers)
    kept.start()
    async with asyncio.timeout(60):
        await kept.running()
        assert said.empty()
        kept.kill(signal.SIGKILL)
        assert await said.get() == (
            "placer-0 ended: killed by SIGKILL; it is started again in 0.2 s"
        )
        await kept.running()
        assert said.empty()
        ready.set()
        assert (await said.get()).startswith("placer-0 is back after ")
        await kept.stop()
    assert said.empty()


def test_how_a_process_ended_in_words() -> None:
    told = [how_ended(status) for status in (None, 0, 3, -9, -200)]
    assert told == [
        "nobody knows how",
        "exit status 0",
        "exit status 3",
        "killed by SIGKILL",
        "killed by signal 200",
    ]
