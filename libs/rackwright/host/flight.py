"""What became of a commit in flight, and what is offered next: the part of offering that is pure.

Refused does not mean absent, and absent when looked at does not mean never: a commit is settled
when its place in the ledger is folded, by whomever it was filled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rackwright.bus.ports import Appended, Outcome, Refused, Unsettled
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold, refuses
from rackwright.core.machine import Offer
from rackwright.host.commits import Author, Sealed
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import MessageId


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


@dataclass(slots=True, kw_only=True)
class OfferQueue:
    """What one process offers: at most one commit in flight, the others wait in order."""

    author: Author
    flight: Flight | None = None
    _queue: deque[Offer] = field(default_factory=deque)
    _foreign: bool = False

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
        self._foreign = self._foreign or source != self.author.source

    def answered(self, folded: int) -> Settled | None:
        """What became of the commit in flight, once that is known; then it is in flight no more."""
        settled = None if self.flight is None else self.flight.settled(folded)
        if settled is None:
            return None
        if isinstance(settled, Won) and settled.sealed.rest is not None:
            self._queue.appendleft(settled.sealed.rest)
        self.flight = None
        return settled

    def next(self, fleet: Fleet, *, now: float, mono: float) -> tuple[Flight | None, list[Lost]]:
        """Let the next offer fly if none does; those that cannot be sent come back."""
        lost = self.stale() if self.flight is None else []
        while self.flight is None and self._queue:
            offer = self._queue.popleft()
            legal, refused = legal_part(self.author, fleet, offer, now)
            lost += refused
            if legal is None:
                continue
            try:
                sealed = self.author.seal(fleet, legal, now)
            except Unreadable as error:
                lost.append(Lost(offer=legal, why=str(error)))
                continue
            self.flight = Flight(sealed=sealed, sent_mono=mono)
            return self.flight, lost
        return None, lost

    def stale(self) -> list[Lost]:
        """Decided before somebody else's commit: only the machine knows whether it still holds."""
        if not self._foreign:
            return []
        self._foreign = False
        back = [Lost(offer=offer) for offer in self._queue if offer.compare]
        self._queue = deque(offer for offer in self._queue if not offer.compare)
        return back


def legal_part(
    author: Author, fleet: Fleet, offer: Offer, now: float
) -> tuple[Offer | None, list[Lost]]:
    """What of an offer the fold would take at `now` of ledger time, and what it would not."""
    why = refuses(fleet, now, author.commit(fleet, offer, now))
    if why is None:
        return offer, []
    if len(offer.entries) == 1:
        return None, [Lost(offer=offer, why=why)]
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
