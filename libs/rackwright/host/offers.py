"""Appends what a machine decided: one commit in flight, settled by the fold and by nothing else.

Refused does not mean absent, and absent when looked at does not mean never: after a lost answer the
same commit is sent again until its place in the ledger is folded, by whomever it was filled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from rackwright.bus.errors import BusFull
from rackwright.bus.ports import Appended, Cause, Headers, Ledger, Outcome, Refused, Unsettled
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.machine import Offer
from rackwright.host.commits import Author, Sealed
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import MessageId

RETRY_S = 0.1
FULL_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Won:
    """The commit is in at `seq`; it was sent at `sent_mono`."""

    sealed: Sealed
    seq: int
    sent_mono: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The offer is not in and never will be. `why` is empty when somebody else came first.

    Otherwise the fold would not have it, or nobody could read it: `why` says the reason.
    """

    offer: Offer
    why: str = ""


Settled: TypeAlias = Won | Lost


@dataclass(slots=True, kw_only=True)
class Flight:
    """A commit on its way. `found`: the sequence at which the fold met it."""

    sealed: Sealed
    sent_mono: float
    found: int | None = None
    outcome: Outcome | None = None
    sendings: int = 1

    def settled(self, folded: int) -> Settled | None:
        """What became of it, given that the ledger is folded up to `folded`; None: not known."""
        if self.found is not None:
            return Won(sealed=self.sealed, seq=self.found, sent_mono=self.sent_mono)
        expected = self.sealed.expected
        match self.outcome:
            case Appended(seq=seq) if folded >= seq:
                return Lost(offer=self.sealed.offer)
            case Refused(last_seq=last) if folded >= last:
                return Lost(offer=self.sealed.offer)
            case Unsettled() if expected is not None and folded > expected:
                return Lost(offer=self.sealed.offer)
            case _:
                return None


class Watcher(Protocol):
    """Who is told of offers, for metrics and traces."""

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent; the headers that go with it."""
        ...

    def unsettled(self, why: str) -> None:
        """An append was not answered, or the ledger takes nothing."""
        ...


@dataclass(slots=True, kw_only=True)
class Offers:
    """Everything this process offers. `changed` is called when an answer has come."""

    ledger: Ledger
    author: Author
    watcher: Watcher
    changed: Callable[[], None]
    flight: Flight | None = None
    _queue: deque[Offer] = field(default_factory=deque)
    _foreign: bool = False
    _task: asyncio.Task[None] | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def idle(self) -> bool:
        """Nothing in flight and nothing waiting to be."""
        return self.flight is None and not self._queue

    def take(self, offers: Sequence[Offer]) -> None:
        """What the machine has just decided at its turn, in order."""
        self._foreign = False
        self._queue.extend(offers)

    def folded(self, seq: int, commit: MessageId, source: str) -> None:
        """A commit was folded."""
        if self.flight is not None and commit == self.flight.sealed.commit.id:
            self.flight.found = seq
        self._moved.set()
        self._foreign = self._foreign or source != self.author.source

    def settle(self, folded: int) -> Settled | None:
        """What became of the commit in flight, once that is known. Raises what the bus raised."""
        if self.flight is None or self._task is None or not self._task.done():
            return None
        self._task.result()
        settled = self.flight.settled(folded)
        if settled is None:
            return None
        if isinstance(settled, Won) and settled.sealed.rest is not None:
            self._queue.appendleft(settled.sealed.rest)
        self.flight = self._task = None
        return settled

    def advance(self, fleet: Fleet, *, now: float, mono: float) -> list[Lost]:
        """Send the next offer if nothing is in flight; those that cannot be sent come back."""
        lost = self.stale() if self.flight is None else []
        while self.flight is None and self._queue:
            offer = self._queue.popleft()
            legal, refused = legal_part(self.author, fleet, offer, now)
            lost += refused
            if legal is None:
                continue
            try:
                self._launch(self.author.seal(fleet, legal, now), mono)
            except Unreadable as error:
                lost.append(Lost(offer=legal, why=str(error)))
        return lost

    def stale(self) -> list[Lost]:
        """Decided before somebody else's commit: only the machine knows whether it still holds."""
        if not self._foreign:
            return []
        self._foreign = False
        back = [Lost(offer=offer) for offer in self._queue if offer.compare]
        self._queue = deque(offer for offer in self._queue if not offer.compare)
        return back

    def _launch(self, sealed: Sealed, mono: float) -> None:
        self.flight = flight = Flight(sealed=sealed, sent_mono=mono)
        headers = self.watcher.sending(sealed)
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
            self.watcher.unsettled(f"{flight.outcome.reason}: {flight.outcome.detail}")
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


def legal_part(
    author: Author, fleet: Fleet, offer: Offer, now: float
) -> tuple[Offer | None, list[Lost]]:
    """What of an offer the fold would take at `now` of ledger time, and what it would not."""
    commit = author.commit(fleet, offer, now)
    whole = fold(fleet, fleet.seq + 1, now, commit)
    if not whole.void:
        return offer, []
    if len(offer.entries) == 1:
        return None, [Lost(offer=offer, why=whole.why)]
    kept, lost, trial = [], [], fleet
    for entry in offer.entries:
        one = replace(offer, entries=(entry,), wishes_to=None)
        folding = fold(trial, trial.seq + 1, now, author.commit(trial, one, now))
        if folding.void:
            lost.append(Lost(offer=one, why=folding.why))
        else:
            kept.append(entry)
            trial = folding.fleet
    return (replace(offer, entries=tuple(kept), wishes_to=None) if kept else None), lost
