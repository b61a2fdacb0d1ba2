"""Visits every state of a space once, the nearest first, and tells the shortest way to a harm."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.simulation.fencing.hosts import lease_in_memory
from tests.simulation.fencing.sizes import Size
from tests.simulation.fencing.world import Spot, World


@dataclass(slots=True, kw_only=True)
class Explored:
    """What was found. `harm` is empty when every promise held; `way` leads to it.

    `whole`: no state was left out. `seconds` of one core.
    """

    size: Size
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
        return (
            f"{self.size.name}: {self.states:,} states, {self.moves:,} transitions, depth "
            f"{self.depth}, {self.entries:,} ledgers, {self.hosts:,} states of a host, "
            f"{self.seconds:.1f} s: {end}"
        )


def explore(size: Size, *, most: int | None = None) -> Explored:
    """Visit the space, or its nearest `most` states."""
    with lease_in_memory():
        return _explore(size, most)


def _explore(size: Size, most: int | None) -> Explored:
    began = time.process_time()
    world = World(size)
    found = Explored(size=size)
    start = world.start()
    came: dict[Spot, tuple[Spot, str] | None] = {start: None}
    layer = [start]
    while layer and not found.harm:
        following: list[Spot] = []
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
    found.entries, found.hosts = len(world.ledger.fleets), len(world.hosts.all)
    found.seconds = time.process_time() - began
    return found


def _way(came: dict[Spot, tuple[Spot, str] | None], spot: Spot) -> list[str]:
    way: list[str] = []
    step = came[spot]
    while step is not None:
        before, what = step
        way.append(what)
        step = came[before]
    return way[::-1]
