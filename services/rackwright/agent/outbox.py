"""What the nodes of this process have to say, sent as soon as the bus takes it.

A status is state: only the newest of a node is kept, so a bus outage costs one value a node. Faults
wait in a queue of at most 64 a node, oldest dropped and counted, as the stream itself would.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import structlog

from rackwright.bus.errors import BusError
from rackwright.bus.ports import Bus

FAULTS_KEPT = 64
IN_FLIGHT = 32
RETRY_S = 0.5

log = structlog.get_logger()


class Outbox:
    """Statuses and faults of many nodes. `status_of(subject)` makes the bytes when they go out."""

    def __init__(self, bus: Bus, status_of: Callable[[str], bytes]) -> None:
        self._bus = bus
        self._status_of = status_of
        self._dirty: dict[str, None] = {}
        self._faults: dict[str, deque[bytes]] = {}
        self._wake = asyncio.Event()
        self.dropped = 0

    def status_changed(self, subject: str) -> None:
        """The node behind this status subject has something new to say."""
        self._dirty[subject] = None
        self._wake.set()

    def fault(self, subject: str, data: bytes) -> None:
        """A fault to be told."""
        waiting = self._faults.setdefault(subject, deque())
        if len(waiting) == FAULTS_KEPT:
            waiting.popleft()
            self.dropped += 1
        waiting.append(data)
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty or self._faults:
                if not await self._round():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(RETRY_S):
                            await self._wake.wait()

    async def flush(self) -> None:
        """Send what waits, once; for an orderly end."""
        await self._round()

    async def _round(self) -> bool:
        """Send a handful side by side, faults first; False when the bus did not take it all."""
        sends = []
        for subject, waiting in list(self._faults.items())[:IN_FLIGHT]:
            sends.append(self._send_fault(subject, waiting))
        for subject in list(self._dirty)[: max(1, IN_FLIGHT - len(sends))]:
            del self._dirty[subject]
            sends.append(self._send_status(subject))
        return all(await asyncio.gather(*sends))

    async def _send_fault(self, subject: str, waiting: deque[bytes]) -> bool:
        while waiting:
            data = waiting[0]
            try:
                await self._bus.signals.publish(subject, data)
            except BusError as error:
                log.warning("signal.unsent", subject=subject, problem=str(error))
                return False
            if waiting and waiting[0] is data:
                waiting.popleft()
        self._faults.pop(subject, None)
        return True

    async def _send_status(self, subject: str) -> bool:
        try:
            await self._bus.status.put(subject, self._status_of(subject))
        except BusError as error:
            log.warning("status.unsent", subject=subject, problem=str(error))
            self._dirty[subject] = None
            return False
        return True
