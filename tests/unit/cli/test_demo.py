"""An act of the demo that cannot be played is a claim that did not hold; the next one begins."""

from __future__ import annotations

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from rackwright.cli.demo import played, too_busy
from rackwright.cli.demo.scene import Scene, Unplayable
from rackwright.cli.demo.telling import Teller
from rackwright.cli.watcher import Watched
from rackwright.core.machine import Folded
from rackwright.wire.entries.node import NodeSuspected
from rackwright.wire.ids import NodeId, SessionId
from rackwright.wire.reasons import Reason


class Stage:
    """A scene of which acts use only the teller."""

    def __init__(self) -> None:
        self.tell = Teller(console=Console(file=StringIO()))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unplayable("no rack is empty"), "no rack is empty"),
        (KeyError("train"), "train"),
        (TimeoutError(), "in time"),
    ],
)
async def test_an_act_that_ends_early_is_a_claim(error: Exception, told: str) -> None:
    async def act(_: Scene) -> None:
        raise error

    stage = Stage()
    await played(act, cast(Scene, stage))
    assert [told in claim.text for claim in stage.tell.failed] == [True]


async def test_an_act_that_is_played_claims_what_it_claims() -> None:
    async def act(scene: Scene) -> None:
        scene.tell.claim("it is so", True)

    stage = Stage()
    await played(act, cast(Scene, stage))
    assert [(claim.text, claim.held) for claim in stage.tell.claims] == [("it is so", True)]


def test_healthy_nodes_that_fell_silent_are_told_apart_from_a_killed_agent() -> None:
    def silent(name: str) -> Folded:
        entry = NodeSuspected(
            node=NodeId(name), of=1, session=SessionId("s"), reason=Reason(code="silence")
        )
        return Folded(
            now=0.0,
            mono=0.0,
            seq=1,
            source="health-monitor/0",
            type=NodeSuspected.TYPE,
            entries=(entry,),
            void=False,
            why="",
        )

    killed = frozenset({NodeId("r01-n03")})
    assert too_busy(Watched(commits=[silent("r01-n03")]), killed) == ""
    found = too_busy(Watched(commits=[silent("r01-n03"), silent("r02-n01")] * 2), killed)
    assert found.startswith("Healthy nodes fell silent (1)")
