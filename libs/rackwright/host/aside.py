"""Sets aside what nobody can read, on a dead-letter subject, with the reason in its headers."""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from rackwright.bus.errors import BusAway, MessageTooLarge
from rackwright.bus.ports import DeadLetters
from rackwright.host.metrics import Metrics
from rackwright.host.reading import SetAside
from rackwright.wire.subjects import Subjects

RETRY_S = 0.5
WAITING = 256
LONGEST = 500


def printable(text: str) -> str:
    """Text as a header may hold it."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:LONGEST])


class DeadLetterBox:
    """What could not be read goes out through here.

    Wishes wait until theirs is stored; of signals and status, of which a broken node may send any
    number, those that do not fit into a bounded queue are only counted.
    """

    def __init__(
        self, port: DeadLetters, subjects: Subjects, source: str, metrics: Metrics
    ) -> None:
        self._port = port
        self._subjects = subjects
        self._source = source
        self._metrics = metrics
        self._log = structlog.get_logger()
        self._queue: deque[tuple[str, SetAside]] = deque()
        self._filled = asyncio.Event()

    async def store(self, stream: str, aside: SetAside) -> None:
        """Set it aside, however long the bus is away."""
        stored = aside.stored
        headers = {
            "Rackwright-Why": printable(aside.why),
            "Rackwright-Subject": printable(stored.subject),
            "Rackwright-Seq": str(stored.seq),
            "Rackwright-Source": self._source,
            # Each copy sets aside what it cannot read; the bus keeps one of them.
            "Nats-Msg-Id": f"{stream}.{stored.seq}",
        }
        self._metrics.dead_letters.labels(stream).inc()
        self._log.warning(
            "message.set_aside",
            stream=stream,
            seq=stored.seq,
            subject=stored.subject,
            why=aside.why,
        )
        data = stored.data
        while True:
            try:
                await self._port.publish(self._subjects.dead(stream), data, headers)
                return
            except MessageTooLarge as error:
                data = data[: len(data) - (error.size - error.limit)]
            except BusAway:
                await asyncio.sleep(RETRY_S)

    def drop(self, stream: str, aside: SetAside) -> None:
        """Set it aside soon, or count it only."""
        if len(self._queue) < WAITING:
            self._queue.append((stream, aside))
            self._filled.set()
        else:
            self._metrics.dead_letters_lost.labels(stream).inc()

    async def run(self) -> None:
        """Store what was dropped."""
        while True:
            while self._queue:
                await self.store(*self._queue.popleft())
            self._filled.clear()
            await self._filled.wait()
