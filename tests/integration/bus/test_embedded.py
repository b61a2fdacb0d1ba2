"""The embedded server: starts, stops, survives its starter, refuses a data directory in use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from rackwright.bus.embedded import BINARY_ENV, EmbeddedOptions, EmbeddedServer, find_binary
from rackwright.bus.errors import BinaryMissing, DataDirInUse, ServerFailed
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Appended, Ends
from rackwright.bus.streams import KIB

pytestmark = pytest.mark.integration

PLACED = "rackwright.lab.ledger.job.placed"


def options(server: EmbeddedServer) -> ConnectOptions:
    return ConnectOptions(servers=(server.url,), identity="test", reconnect_s=0.05)


async def test_what_was_stored_is_there_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    server = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path))
    for stop, last in ((server.stop, 0), (server.kill, 1), (server.stop, 2)):
        await server.start()
        bus = await connect(options(server), "lab")
        await bus.ensure()
        assert (await bus.ledger.ends()).last == last
        assert await bus.ledger.append(PLACED, b"x", expected=last) == Appended(seq=last + 1)
        await bus.close()
        await stop()
        assert server.pid == 0
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as other:
        bus = await connect(options(other), "lab")
        assert await bus.ledger.ends() == Ends(first=1, last=3)
        await bus.close()


async def test_the_port_stays_over_restarts_and_only_loopback_listens(tmp_path: Path) -> None:
    server = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path))
    await server.start()
    url = server.url
    assert url.startswith("nats://127.0.0.1:")
    assert server.monitor_url.startswith("http://127.0.0.1:")
    await server.kill()
    await server.start()
    assert server.url == url
    await server.stop()


async def test_its_settings_are_the_safe_ones(tmp_path: Path) -> None:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as server:
        path = tmp_path / "nats-server.conf"
        config = json.loads(path.read_text())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        bus = await connect(options(server), "lab")
        assert bus.link.max_payload == 256 * KIB
        await bus.close()
    assert config["jetstream"]["sync_interval"] == "always"
    assert config["host"] == "127.0.0.1"


async def test_a_data_directory_in_use_is_refused_or_adopted(tmp_path: Path) -> None:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as first:
        with pytest.raises(DataDirInUse) as used:
            await EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)).start()
        assert (used.value.pid, used.value.url) == (first.pid, first.url)
        second = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path, adopt=True))
        await second.start()
        assert (second.pid, second.url) == (first.pid, first.url)
        await second.stop()
        assert await first.ended() is not None  # its starter is told
    third = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path))
    await third.start()
    await third.stop()


STARTER = """
import asyncio, sys
from pathlib import Path
from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer

async def main():
    await EmbeddedServer(EmbeddedOptions(data_dir=Path(sys.argv[1]))).start()
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_server_whose_starter_was_killed_is_found_again(tmp_path: Path) -> None:
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert starter.stdout is not None
    assert await starter.stdout.readline() == b"started\n"
    starter.send_signal(signal.SIGKILL)
    await starter.wait()
    with pytest.raises(DataDirInUse):
        await EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)).start()
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path, adopt=True)) as server:
        bus = await connect(options(server), "lab")
        await bus.ensure()
        await bus.close()
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as server:
        assert server.pid


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path / "one")) as one:
        port = int(one.url.rsplit(":", 1)[1])
        two = EmbeddedServer(EmbeddedOptions(data_dir=tmp_path / "two", port=port))
        with pytest.raises(ServerFailed) as failed:
            await two.start()
        assert "address already in use" in failed.value.log
        assert two.pid == 0


async def test_the_end_of_the_server_is_seen(tmp_path: Path) -> None:
    async with EmbeddedServer(EmbeddedOptions(data_dir=tmp_path)) as server:
        os.kill(server.pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            assert await server.ended() == -signal.SIGKILL


def test_a_missing_binary_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(BINARY_ENV, str(tmp_path / "nothing"))
    with pytest.raises(BinaryMissing) as missing:
        find_binary()
    assert str(tmp_path / "nothing") in str(missing.value)
    assert "rackwright[embedded]" in str(missing.value)


def test_the_binary_of_the_wheel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BINARY_ENV, raising=False)
    assert os.access(find_binary(), os.X_OK)
