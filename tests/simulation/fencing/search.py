"""Visits every state of a space once, the nearest first, and tells the shortest way to a harm."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.fencing.alone import AloneSize, AloneWorld
from tests.simulation.fencing.hosts import lease_in_memory
from tests.simulation.fencing.sizes import Size
from tests.simulation.fencing.world import World


@dataclass(slots=True, kw_only=True)
class Explored:
    """What was found. `harm` is empty when every promise held; `way` leads to it.

    `whole`: no state was left out. `seconds` of one core.
    """

    size: Size | AloneSize
    states: int = 0
    moves: int = 0
    depth: int = 0
    seconds: float = 0.0
    whole: bool = True
    harm: str = ""
    way: list[str] = field(default_factory=list)
    entries: int = 0
    hosts: int = 0

    def counted(self) -> dict[str, object]:
        """For a report."""
        return {
            "size": self.size.name,
            "states": self.states,
            "transitions": self.moves,
            "depth": self.depth,
            "ledgers": self.entries,
            "seconds": round(self.seconds, 1),
            "whole": self.whole,
            "harm": self.harm,
        }

    def told(self) -> str:
        """One line."""
        end = self.harm or ("nothing broken" if self.whole else "nothing broken as far as seen")
        within = ""
        if self.entries:
            within = f"{self.entries:,} ledgers, {self.hosts:,} states of a host, "
        return (
            f"{self.size.name}: {self.states:,} states, {self.moves:,} transitions, depth "
            f"{self.depth}, {within}{self.seconds:.1f} s: {end}"
        )


def explore(size: Size | AloneSize, *, most: int | None = None) -> Explored:
    """Visit the space, or its nearest `most` states."""
    found = Explored(size=size)
    began = time.process_time()
    if isinstance(size, AloneSize):
        _visit(found, AloneWorld(size), most)
    else:
        with lease_in_memory():
            world = World(size)
            _visit(found, world, most)
            found.entries, found.hosts = len(world.ledger.fleets), len(world.hosts.all)
    found.seconds = time.process_time() - began
    return found


def _visit(found: Explored, world: Any, most: int | None) -> None:
    start = world.start()
    came: dict[Any, tuple[Any, str] | None] = {start: None}
    layer = [start]
    while layer and not found.harm:
        following: list[Any] = []
        for spot in layer:
            for what, after in world.moves(spot):
                found.moves += 1
                if after in came:
                    continue
                came[after] = (spot, what)
                following.append(after)
                harm = world.harm(after)
                if harm:
                    found.harm, found.way = harm, _way(came, after)
                    break
            if found.harm:
                break
            if most is not None and len(came) >= most:
                found.whole = False
                following.clear()
                break
        found.depth += bool(following)
        layer = following
    found.states = len(came)


def _way(came: dict[Any, tuple[Any, str] | None], spot: Any) -> list[str]:
    way: list[str] = []
    step = came[spot]
    while step is not None:
        before, what = step
        way.append(what)
        step = came[before]
    return way[::-1]
