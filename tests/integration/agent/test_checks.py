"""The site's check as a real program: made when nothing else runs on the node."""

import asyncio
from pathlib import Path

from rackwright.agent.checks import Checks, check_of
from rackwright.agent.said import Who
from rackwright.wire.ids import NodeId, RackId, SessionId
from rackwright.wire.values import CheckOrder
from tests.integration.agent.helpers import gone, written

WHO = Who(node=NodeId("n1"), rack=RackId("r7"), session=SessionId("s"), boot="b")


class Site:
    """A site with this check."""

    def __init__(self, folder: Path, script: str) -> None:
        self.said = asyncio.Event()
        path = folder / "check"
        path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
        path.chmod(0o755)
        assert check_of(folder) == path
        self.checks = Checks(folder, lambda: WHO, self.said.set)

    async def answered(self) -> None:
        """Wait for the next result."""
        async with asyncio.timeout(30):
            await self.said.wait()
        self.said.clear()


def order(asked: int = 5, limit_s: float = 30.0) -> CheckOrder:
    return CheckOrder(asked=asked, why="idle", limit_s=limit_s)


async def test_it_is_told_why_and_where_and_made_once_for_an_order(tmp_path: Path) -> None:
    site = Site(tmp_path, 'echo "$RACKWRIGHT_HOOK $@"; echo x >> count')
    site.checks.look(order(), True)
    await site.answered()
    found = site.checks.result
    assert found is not None
    assert (found.asked, found.passed, found.code) == (5, True, 0)
    assert found.said == "check idle r7 n1 5\n"
    site.checks.look(order(), True)
    site.checks.look(order(6), True)
    await site.answered()
    assert (tmp_path / "count").read_text() == "x\nx\n"


async def test_a_check_that_fails_or_takes_too_long(tmp_path: Path) -> None:
    site = Site(tmp_path, '[ "$4" = 5 ] && { echo "17 links"; exit 3; }; sleep 600')
    site.checks.look(order(), True)
    await site.answered()
    found = site.checks.result
    assert found is not None
    assert (found.passed, found.code, found.said) == (False, 3, "17 links\n")
    site.checks.look(order(6, limit_s=0.2), True)
    await site.answered()
    late = site.checks.result
    assert late is not None
    assert (late.asked, late.passed, late.code) == (6, False, -9)


async def test_work_ends_it_and_it_begins_anew_afterwards(tmp_path: Path) -> None:
    site = Site(tmp_path, "[ -e child ] && exit 0; echo $$ > child; sleep 600")
    site.checks.look(order(), True)
    child = int(await written(tmp_path / "child"))
    site.checks.look(order(), False)
    await gone(child)
    assert site.checks.result is None
    site.checks.look(order(), True)
    await site.answered()
    assert site.checks.result is not None
    assert site.checks.result.passed


def test_a_site_without_a_check(tmp_path: Path) -> None:
    assert check_of(tmp_path) is None
    assert check_of(None) is None
