"""Three servers in a network of their own: killed, cut off, split, restarted; nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.cluster.strikes import STRIKES, rolled, struck
from tests.integration.cluster.writing import leader, open_bus, ready, writing
from tests.support.network import lab

pytestmark = pytest.mark.integration
MOVES_S = 180.0  # an election, and the patience of a client


async def test_no_acknowledged_entry_is_lost_whatever_happens_to_the_leader(
    tmp_path: Path,
) -> None:
    async with lab(tmp_path) as servers:
        admin = await open_bus(servers.servers, "admin")
        try:
            await ready(admin)
            for strike in STRIKES:
                found = await struck(servers, admin, strike)
                print(strike.__name__, found)
                assert found.lost == 0
            async with writing(admin) as writer:
                await rolled(servers, writer)
            assert await writer.lost() == 0
            known = len(writer.acked) + writer.found
            ends = await admin.ledger.ends()
            assert ends.last - writer.first - known in (0, 1), "the last may be in, unheard"
        finally:
            await admin.close()


async def test_who_is_at_a_server_without_the_others_goes_to_one_of_them(tmp_path: Path) -> None:
    async with lab(tmp_path) as servers:
        admin = await open_bus(servers.servers, "admin")
        try:
            await ready(admin)
            alone = await leader(servers, admin)
            bus = await open_bus([alone], "writer")  # it tells its clients of the two others
            try:
                async with writing(bus) as writer:
                    await writer.several(5)
                    await servers.split(alone)
                    async with asyncio.timeout(MOVES_S):
                        await writer.several(20)
                    await servers.heal()
                    await servers.takes_part(alone)
                assert await writer.lost() == 0
            finally:
                await bus.close()
        finally:
            await admin.close()
