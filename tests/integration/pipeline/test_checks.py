"""A site's check, from the wish that a node is repaired to the program on the node and back."""

from __future__ import annotations

import signal

import pytest

from rackwright.wire.entries.node import (
    NodeCheckAsked,
    NodeChecked,
    NodeJoined,
    NodeRecovered,
    NodeUnfit,
)
from rackwright.wire.ids import NodeId
from rackwright.wire.nodes import Fitness
from rackwright.wire.wishes import Repaired
from tests.integration.pipeline.conftest import SOLO
from tests.support.live import Live

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="package")]

NODE = NodeId(min(SOLO))


async def begun_again(live: Live) -> NodeJoined:
    """Its agent starts anew, and finds whether the site has a check."""
    since = live.now()
    live.stack.agent_of(NODE).kill(signal.SIGKILL)
    return await live.entry(NodeJoined, since, lambda one: one.node == NODE)


async def repaired(live: Live) -> NodeChecked:
    """Somebody says so; what the check found."""
    since = live.now()
    await live.wish(Repaired(node=NODE))
    asked = await live.entry(NodeCheckAsked, since, lambda one: one.node == NODE)
    assert asked.why == "repaired"
    return await live.entry(NodeChecked, since, lambda one: one.node == NODE)


async def test_a_repaired_node_is_let_in_when_it_has_passed_its_check(live: Live) -> None:
    good = live.home / "links-are-good"
    script = f'echo "$RACKWRIGHT_HOOK $1 $2 $3"; [ -e {good} ] || {{ echo 17 links; exit 3; }}'
    with live.hook("check", script):
        assert (await begun_again(live)).hardware.checks
        since = live.now()
        await live.xid(NODE)
        await live.entry(NodeUnfit, since, lambda one: one.node == NODE)
        failed = await repaired(live)
        assert (failed.passed, failed.reason.code, failed.reason.numbers["code"]) == (
            False,
            "check.failed",
            3,
        )
        assert failed.reason.numbers["said"] == f"check repaired r01 {NODE} 17 links"
        assert live.node(NODE).fitness is Fitness.NONE
        assert live.entries(NodeRecovered, since) == []
        good.touch()
        passed = await repaired(live)
        assert (passed.passed, passed.reason.code) == (True, "check.passed")
        await live.entry(NodeRecovered, since, lambda one: one.node == NODE)
        assert live.node(NODE).fitness is Fitness.FULL
    assert not (await begun_again(live)).hardware.checks
