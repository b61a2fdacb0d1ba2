"""A question over a path: answered, or not in time; what was asked may be done all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rackwright.sim.engine import Engine
from rackwright.sim.paths import Path

T = TypeVar("T")
PATIENCE_S = 2.0


def ask(
    engine: Engine,
    path: Path,
    serve: Callable[[], T],
    answered: Callable[[T | None], None],
    patience_s: float = PATIENCE_S,
) -> None:
    """Let `serve` be done at the server and tell `answered` once: None when no answer came."""
    waiting = True

    def back(answer: T | None) -> None:
        nonlocal waiting
        if waiting:
            waiting = False
            timer.cancel()
            answered(answer)

    timer = engine.later(patience_s, back, None)
    path.toss(lambda: path.toss(back, serve()))
