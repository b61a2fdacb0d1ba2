"""A fold of the ledger in the command's own process: sees everything, decides nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rackwright.bus.ports import Bus
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Effect, Event, Folded
from rackwright.host.hearing import Hears
from rackwright.host.service import in_process


@dataclass(slots=True)
class State:
    """Nothing is remembered."""


@dataclass(slots=True)
class Watched:
    """The newest fleet, and a way to wait for one that is as wished."""

    fleet: Fleet = field(default_factory=Fleet)
    commits: list[Folded] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    waiters: list[tuple[Callable[[Fleet], bool], asyncio.Future[Fleet]]] = field(
        default_factory=list
    )

    async def until(self, holds: Callable[[Fleet], bool], within_s: float = 120.0) -> Fleet:
        """Wait for a fleet for which `holds` is true. Raises TimeoutError."""
        if holds(self.fleet):
            return self.fleet
        future: asyncio.Future[Fleet] = asyncio.get_running_loop().create_future()
        self.waiters.append((holds, future))
        async with asyncio.timeout(within_s):
            return await future

    def take(self, fleet: Fleet, event: Folded) -> None:
        """A commit was folded."""
        self.fleet = fleet
        self.commits.append(event)
        for holds, future in list(self.waiters):
            if not future.done() and holds(fleet):
                future.set_result(fleet)
        self.waiters = [(holds, one) for holds, one in self.waiters if not one.done()]


class Watcher:
    """A machine (see core.machine) that only passes on what was folded."""

    service = "watcher"

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def start(self, copy: int) -> State:
        """Nothing to know."""
        return State()

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Pass commits on; the fleet at the start is there before the first of them."""
        if isinstance(event, Folded):
            self._watched.take(fleet, event)
        elif self._watched.fleet.seq == 0:
            self._watched.fleet = fleet
        return state, []


@asynccontextmanager
async def watch(open_bus: Callable[[str], Awaitable[Bus]], user: str) -> AsyncIterator[Watched]:
    """Follow the ledger while the block runs."""
    bus = await open_bus(user)
    watched = Watched()
    try:
        async with in_process(Watcher(watched), Hears(), bus):
            yield watched
    finally:
        await bus.close()
