"""How a simulated process sends its commits: the rules of `host.offers` on virtual time."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.bus.ports import Cause, Outcome, Unsettled
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer
from rackwright.host.commits import Author, Sealed
from rackwright.host.flight import Flight, Lost, OfferQueue, Settled, legal_part
from rackwright.host.offers import RETRY_S
from rackwright.sim.engine import Engine, Timer
from rackwright.sim.ledger import SimLedger
from rackwright.sim.paths import Path
from rackwright.wire.ids import CellName, MessageId

ANSWER_S = 2.0  # an append that was not answered by then is unsettled


class PlainAuthor(Author):
    """An author whose commits are never written down: no bytes, no limit of size."""

    def __init__(self, cell: CellName, service: str, ordinal: int, token: str) -> None:
        super().__init__(cell, service, ordinal, token)
        self._subject: dict[str, str] = {}

    def seal(self, fleet: Fleet, offer: Offer, at: float) -> Sealed:
        """See Author."""
        commit = self.commit(fleet, offer, at)
        subject = self._subject.get(commit.type)
        if subject is None:
            self._subject[commit.type] = subject = self._subjects.entry(commit.type)
        return Sealed(
            commit=commit,
            data=b"",
            subject=subject,
            expected=fleet.seq if offer.compare else None,
            offer=offer,
        )


class AtOnce(OfferQueue):
    """Offers that are answered at once: nobody can come between the decision and the append."""

    __slots__ = ("_ledger", "_wake")

    def __init__(self, author: Author, ledger: SimLedger, wake: Callable[[], None]) -> None:
        super().__init__(author=author)
        self._ledger = ledger
        self._wake = wake

    def settle(self, folded: int) -> Settled | None:
        """See host.mind.Offering."""
        return self.answered(folded)

    def advance(self, fleet: Fleet, *, now: float, mono: float) -> list[Lost]:
        """See host.mind.Offering."""
        if self.flight is not None or fleet is not self._ledger.fleet:
            return []  # a commit of this very moment is still to be folded here
        lost = self.stale()
        while self.flight is None and self._queue:
            offer = self._queue.popleft()
            sealed = self.author.seal(fleet, offer, now)
            # The fold meets it within the append.
            self.flight = Flight(sealed=sealed, sent_mono=mono)
            answer = self._ledger.append_if_legal(sealed)
            if answer is None:
                self.flight = None
                legal, refused = legal_part(self.author, fleet, offer, now)
                lost += refused
                if legal is not None:
                    self._queue.appendleft(legal)
            else:
                self.flight.outcome = answer
                self._wake()
        return lost


class Sending(OfferQueue):
    """Offers that travel: late, lost, answered late or never, sent again until they are settled.

    `point` is told of each moment at which a process may die, `settled` of what became of a commit.
    """

    __slots__ = (
        "_engine",
        "_final",
        "_ledger",
        "_path",
        "_point",
        "_settled",
        "_timer",
        "_try",
        "_wake",
    )

    def __init__(
        self,
        author: Author,
        engine: Engine,
        ledger: SimLedger,
        path: Path,
        *,
        wake: Callable[[], None],
        point: Callable[[str], None],
        settled: Callable[[Sealed, Settled], None],
    ) -> None:
        super().__init__(author=author)
        self._engine = engine
        self._ledger = ledger
        self._path = path
        self._wake = wake
        self._point = point
        self._settled = settled
        self._final = False
        self._try = 0
        self._timer: Timer | None = None

    def folded(self, seq: int, commit: MessageId, source: str) -> None:
        """A commit was folded: an unsettled one is looked at again."""
        OfferQueue.folded(self, seq, commit, source)
        flight = self.flight
        if flight is None or self._final or not isinstance(flight.outcome, Unsettled):
            return
        if flight.found is not None:
            self._end(flight.outcome)
        else:
            self._again(0.0)

    def settle(self, folded: int) -> Settled | None:
        """See host.mind.Offering."""
        flight = self.flight
        if not self._final or flight is None:
            return None
        settled = self.answered(folded)
        if settled is not None:
            self._final = False
            self._settled(flight.sealed, settled)
            self._point("answered")
        return settled

    def advance(self, fleet: Fleet, *, now: float, mono: float) -> list[Lost]:
        """See host.mind.Offering."""
        flight, lost = self.next(fleet, now=now, mono=mono)
        if flight is not None:
            self._point("before append")
            self._final = False
            self._send()
            self._point("after append")
        return lost

    def aclose(self) -> None:
        """The process is gone; what it sent may still come in."""
        self._try += 1
        if self._timer is not None:
            self._timer.cancel()

    def _send(self) -> None:
        if self.flight is None or self._final:
            return
        self._try += 1
        number, sealed = self._try, self.flight.sealed
        self._timer = self._engine.later(ANSWER_S, self._unanswered, number)
        self._path.toss(self._arrived, number, sealed)

    def _arrived(self, number: int, sealed: Sealed) -> None:
        """At the server."""
        self._path.toss(self._answered, number, self._ledger.append(sealed))

    def _answered(self, number: int, outcome: Outcome) -> None:
        if number == self._try and self.flight is not None and not self._final:
            self._end(outcome)

    def _unanswered(self, number: int) -> None:
        flight = self.flight
        if number != self._try or flight is None or self._final:
            return
        flight.outcome = Unsettled(reason=Cause.NO_ANSWER, detail="no answer in time")
        self._try += 1  # an answer that comes now is too late
        if flight.found is not None:
            self._end(flight.outcome)
        else:
            self._again(RETRY_S)

    def _again(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.flight is not None:
            self.flight.sendings += 1
        self._timer = self._engine.later(delay, self._send)

    def _end(self, outcome: Outcome) -> None:
        if self.flight is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.flight.outcome = outcome
        self._final = True
        self._wake()
