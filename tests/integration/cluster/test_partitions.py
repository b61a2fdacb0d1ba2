"""Three servers in a network of their own: killed, cut off, split, restarted; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cluster.strikes import STRIKES, rolled, struck
from tests.integration.cluster.writing import open_bus, ready, writing
from tests.support.network import lab

pytestmark = pytest.mark.integration


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
