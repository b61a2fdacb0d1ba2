"""Sends echoes to racks; they are the leases, so one that cannot leave now is dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from rackwright.bus.ports import Bus
from rackwright.host.commits import Author
from rackwright.wire.codec import encode
from rackwright.wire.message import Envelope
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
                await self._core.publish(self._subjects.echo(echo.rack), self._bytes(echo))
            self._filled.clear()
            await self._filled.wait()

    def _bytes(self, echo: Echo) -> bytes:
        return encode(
            Envelope(
                id=self._author.message_id(),
                type=Echo.TYPE,
                v=Echo.VERSION,
                at=self._now(),
                source=self._author.source,
                cell=self._author.cell,
                body=echo,
            )
        )
