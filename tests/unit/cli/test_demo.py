"""An act of the demo that cannot be played is a claim that did not hold; the next one begins."""

from __future__ import annotations

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from rackwright.cli.demo import played
from rackwright.cli.demo.scene import Scene, Unplayable
from rackwright.cli.demo.telling import Teller


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
