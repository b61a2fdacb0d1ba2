"""The power goes while a server takes appends: what was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from rackwright.bus.embedded import EmbeddedOptions, EmbeddedServer
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Appended, Refused, Unsettled
from tests.support.disk import Disk, own_disk

pytestmark = pytest.mark.integration
PLACED = "rackwright.lab.ledger.job.placed"
ROUNDS = 3
EACH = 60


@asynccontextmanager
async def up(server: EmbeddedServer) -> AsyncIterator[JetStreamBus]:
    options = ConnectOptions(servers=(server.url,), identity="admin")
    bus = await connect(options, "lab")
    try:
        await bus.ensure()
        yield bus
    finally:
        await bus.close()


async def append(bus: JetStreamBus, data: bytes, last: int) -> None:
    """Until it is acknowledged, or found there: a disk may take longer than an answer may. Nobody
    else writes."""
    outcome = await bus.ledger.append(PLACED, data, expected=last)
    while isinstance(outcome, Unsettled):
        outcome = await bus.ledger.append(PLACED, data, expected=last)
    assert outcome in {Appended(seq=last + 1), Refused(last_seq=last + 1)}


async def write(bus: JetStreamBus, acked: list[bytes], disk: Disk, pid: int) -> None:
    """Append without a pause; the power goes in the middle of it."""
    end = len(acked) + EACH
    while len(acked) < end:
        data = b"%d" % len(acked)
        await append(bus, data, len(acked))
        acked.append(data)
    going = asyncio.create_task(bus.ledger.append(PLACED, b"in flight", expected=None))
    await asyncio.to_thread(disk.cut, pid)
    await asyncio.wait({going})


async def found(bus: JetStreamBus) -> list[bytes]:
    ends = await bus.ledger.ends()
    data: list[bytes] = []
    async with bus.ledger.follow(1) as feed, asyncio.timeout(30):
        while len(data) < ends.last:
            data += [stored.data for stored in await feed.batch()]
    return data


async def through_cuts(tmp_path: Path, sync_interval: str, rounds: int) -> tuple[int, int]:
    """Appends acknowledged, and how many of them were lost, over some cuts."""
    sent = lost = 0
    async with AsyncExitStack() as ends:
        disk = ends.enter_context(own_disk(tmp_path / "image", tmp_path / "at", 64))
        for turn in range(rounds):
            options = EmbeddedOptions(data_dir=disk.at / str(turn), sync_interval=sync_interval)
            server = await EmbeddedServer(options).start()
            ends.push_async_callback(server.kill)  # else what fails here leaves it and its disk
            acked: list[bytes] = []
            async with up(server) as bus:
                # Made, and known to the disk: a stream just made may be lost whole without syncs.
                await asyncio.to_thread(_sync, disk)
                await write(bus, acked, disk, server.pid)
            await server.kill()
            await asyncio.to_thread(disk.unmount)
            await asyncio.to_thread(disk.mount)
            await server.start()
            async with up(server) as bus:
                there = await found(bus)
            await server.stop()
            sent += len(acked)
            lost += len(acked) - len([one for one in there[: len(acked)] if one in acked])
    return sent, lost


def _sync(disk: Disk) -> None:
    with disk.frozen():
        return  # a file system that is frozen has written everything


async def test_with_syncs_always_a_cut_loses_nothing_acknowledged(tmp_path: Path) -> None:
    assert await through_cuts(tmp_path, "always", ROUNDS) == (ROUNDS * EACH, 0)


async def test_the_cut_is_real_without_syncs_it_loses_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    sent, lost = await through_cuts(tmp_path, "2m", 1)
    assert (sent, lost) == (EACH, EACH)
