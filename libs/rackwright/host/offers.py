"""Appends what a machine decided: one commit in flight, settled by the fold and by nothing else.

After a lost answer the same commit is sent again until its place in the ledger is folded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rackwright.bus.errors import BusFull
from rackwright.bus.ports import Cause, Headers, Ledger, Unsettled
from rackwright.core.fleet import Fleet
from rackwright.host.commits import Sealed
from rackwright.host.flight import Flight, Lost, OfferQueue, Settled
from rackwright.wire.ids import MessageId

RETRY_S = 0.1
FULL_RETRY_S = 1.0


class Watcher(Protocol):
    """Who is told of offers, for metrics and traces."""

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent; the headers that go with it."""
        ...

    def unsettled(self, why: str, sendings: int) -> None:
        """An append was not answered, or the ledger takes nothing, for so many times running."""
        ...


@dataclass(slots=True, kw_only=True)
class Offers(OfferQueue):
    """Everything this process offers. `changed` is called when an answer has come."""

    ledger: Ledger
    watcher: Watcher
    changed: Callable[[], None]
    _task: asyncio.Task[None] | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    def folded(self, seq: int, commit: MessageId, source: str) -> None:
        """A commit was folded."""
        OfferQueue.folded(self, seq, commit, source)
        self._moved.set()

    def settle(self, folded: int) -> Settled | None:
        """What became of the commit in flight, once that is known. Raises what the bus raised."""
        if self._task is None or not self._task.done():
            return None
        self._task.result()
        settled = self.answered(folded)
        if settled is not None:
            self._task = None
        return settled

    def advance(self, fleet: Fleet, *, now: float, mono: float) -> list[Lost]:
        """Send the next offer if nothing is in flight; those that cannot be sent come back."""
        flight, lost = self.next(fleet, now=now, mono=mono)
        if flight is not None:
            self._launch(flight)
        return lost

    def _launch(self, flight: Flight) -> None:
        headers = self.watcher.sending(flight.sealed)
        self._task = asyncio.get_running_loop().create_task(self._send(flight, headers))
        self._task.add_done_callback(lambda _: self.changed())

    async def _send(self, flight: Flight, headers: Headers) -> None:
        """Send until there is an answer or the fold has one."""
        sealed = flight.sealed
        while True:
            self._moved.clear()
            pause = RETRY_S
            try:
                flight.outcome = await self.ledger.append(
                    sealed.subject, sealed.data, expected=sealed.expected, headers=headers
                )
            except BusFull as error:
                flight.outcome = Unsettled(reason=Cause.UNAVAILABLE, detail=str(error))
                pause = FULL_RETRY_S
            if not isinstance(flight.outcome, Unsettled) or flight.found is not None:
                return
            why = f"{flight.outcome.reason}: {flight.outcome.detail}"
            self.watcher.unsettled(why, flight.sendings)
            await self._until_moved(pause)
            if flight.found is not None:
                return
            flight.sendings += 1

    async def _until_moved(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._moved.wait()
        except TimeoutError:
            return

    async def aclose(self) -> None:
        """Give up waiting; what is in flight may still come in."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
