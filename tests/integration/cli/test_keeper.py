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
from rackwright.cli.keeper import keep_server

pytestmark = pytest.mark.integration
LOOK_S = 0.02


async def test_a_server_that_ended_is_started_as_soon_as_it_can_be(tmp_path: Path) -> None:
    binary = tmp_path / "nats-server"
    binary.symlink_to(find_binary())
    options = EmbeddedOptions(data_dir=tmp_path / "nats", binary=binary, tied=True)
    async with asyncio.timeout(60), EmbeddedServer(options) as server:
        first, url = server.pid, server.url
        with capture_logs() as logs:
            keeper = asyncio.create_task(keep_server(server))
            binary.unlink()  # as in the middle of an upgrade
            os.kill(first, signal.SIGKILL)
            await _told(logs, "process.failed")
            binary.symlink_to(find_binary())
            await _told(logs, "process.started")
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
