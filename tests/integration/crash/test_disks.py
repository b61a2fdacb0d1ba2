"""The bus has a slow, stuck, full or read-only disk, or loses power: the cell says so and heals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio

from rackwright.bus.errors import BusError, ServerFailed
from rackwright.wire.codec import to_json
from rackwright.wire.jobs import JobSpec
from rackwright.wire.wishes import Submit
from tests.integration.crash.siege import Siege
from tests.support.disk import Disk, own_disk
from tests.support.live import Small, live_cell
from tests.support.world import WITHIN_S

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]
SEED = 11


@dataclass(slots=True, kw_only=True)
class Ailing:
    """A cell and the disk that only its bus is on."""

    siege: Siege
    disk: Disk

    async def refusal(self) -> str:
        """Wish until that fails; what the bus says then."""
        live = self.siege.live
        async with asyncio.timeout(WITHIN_S):
            while True:
                spec: JobSpec = live.spec("unheard", None, gpus=1, env={"LIVE_EXIT": "0"})
                subject = live.cell.subjects.wish(live.cell.user, Submit.TYPE)
                try:
                    await live.cell.bus.wishes.publish(
                        subject, to_json(Submit(job=spec.name, spec=spec))
                    )
                except BusError as error:
                    return f"{type(error).__name__}: {error}"

    async def heals(self, what: str) -> None:
        """A job submitted now runs; ledger and world are in order; nobody has ended meanwhile."""
        self.siege.story.append(what)
        await self.siege.heal()
        await self.siege.check()
        assert self.siege.violations == []
        print(f"{what}: healed in {self.siege.healed_s[-1]:.1f} s")

    @asynccontextmanager
    async def server_away(self) -> AsyncIterator[None]:
        """The server is killed, and started again after the block."""
        await self.siege.live.stack.server.kill()
        yield
        await self.siege.live.stack.server.start()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ailing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ailing]:
    root = tmp_path_factory.mktemp("disks")
    with own_disk(root.with_name("disks.img"), root / "nats") as disk:
        async with live_cell(root, Small(racks=2, nodes=3)) as live:
            siege = Siege(live=live, seed=SEED)
            yield Ailing(siege=siege, disk=disk)
            await siege.end()
            assert siege.violations == []


async def test_a_slow_disk_slows_and_breaks_nothing(ailing: Ailing) -> None:
    with ailing.disk.slow(ailing.siege.live.stack.server.pid, writes_a_second=40):
        for _ in range(3):
            await ailing.siege.load.go_on()
        await ailing.heals("slow")
    await ailing.heals("after slow")


async def test_a_disk_that_is_stuck_for_a_while(ailing: Ailing) -> None:
    with ailing.disk.frozen():
        said = await ailing.refusal()
    assert said.startswith("BusAway"), said
    await ailing.heals("stuck")


async def test_a_full_disk_is_said_and_room_heals_it(ailing: Ailing) -> None:
    with ailing.disk.full():
        said = await ailing.refusal()
        print(said)
    async with ailing.server_away():
        pass
    await ailing.heals("full")


async def test_a_disk_that_becomes_read_only(ailing: Ailing) -> None:
    await asyncio.to_thread(ailing.disk.read_only)
    print(await ailing.refusal())
    server = ailing.siege.live.stack.server
    await server.kill()
    with pytest.raises((OSError, ServerFailed)) as failed:
        await server.start()
    print(failed.value)
    await asyncio.to_thread(ailing.disk.unmount)
    await asyncio.to_thread(ailing.disk.mount)
    await server.start()
    await ailing.heals("read-only")


async def test_the_power_goes(ailing: Ailing) -> None:
    """What was acknowledged is in the ledger; `end` looks for each acknowledged submit."""
    at_work = asyncio.create_task(ailing.siege.load.go_on())
    await ailing.siege.check()
    folded = ailing.siege.ledger.fleet.seq
    await asyncio.to_thread(ailing.disk.cut, ailing.siege.live.stack.server.pid)
    async with ailing.server_away():
        await asyncio.to_thread(ailing.disk.unmount)
        await asyncio.to_thread(ailing.disk.mount)
    await at_work
    await ailing.siege.heal()
    # A wish may be heard that no disk has: who heard it says so, ends, and starts from the ledger.
    for name in ailing.siege.nemesis.excuse():
        log = ailing.siege.live.stack.options.state_dir / "logs" / f"{name}.log"
        said = await asyncio.to_thread(log.read_text)
        assert "was replaced" in said, said
    await ailing.heals("power")
    assert (await ailing.siege.live.bus.ledger.ends()).last > folded
