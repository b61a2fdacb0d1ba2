"""Sends echoes to racks; they are the leases, so one that cannot leave now is dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from rackwright.bus.ports import Bus
from rackwright.host.commits import Author
from rackwright.wire.signals import Echo
from rackwright.wire.subjects import Subjects

WAITING = 4096


class Echoes:
    """A short queue in front of the bus."""

    def __init__(self, bus: Bus, author: Author, now: Callable[[], float]) -> None:
        self._core = bus.core
        self._author = author
        self._subjects = Subjects(author.cell)
        self._now = now
        self._queue: deque[Echo] = deque(maxlen=WAITING)
        self._filled = asyncio.Event()

    def send(self, echo: Echo) -> None:
        """Send it next."""
        self._queue.append(echo)
        self._filled.set()

    async def run(self) -> None:
        """Send what there is to send."""
        while True:
            while self._queue:
                echo = self._queue.popleft()
                await self._core.publish(
                    self._subjects.echo(echo.rack), self._author.said(echo, self._now())
                )
            self._filled.clear()
            await self._filled.wait()
