"""One life of a machine, apart from waiting: everything that happens becomes an event, in turn.

The ledger comes first, then a few messages of each source, then the machine's turn. Nothing is
decided, projected or echoed before the fold is at the ledger's end and the last values are in. A
process lives by it on asyncio, the simulator on virtual time; which of them it is cannot be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from rackwright.bus.ports import Stored
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Acked,
    Copies,
    Deed,
    Effect,
    Event,
    Folded,
    Heard,
    Machine,
    Offer,
    Refused,
    Room,
    Turn,
    WakeAt,
)
from rackwright.host.clock import Clock, LedgerClock
from rackwright.host.commits import Author
from rackwright.host.errors import OfferOutOfTurn
from rackwright.host.flight import Lost, Settled
from rackwright.host.patience import Patience
from rackwright.host.reading import Arrival
from rackwright.host.sources import Arrivals, Source
from rackwright.host.standing import Standing
from rackwright.host.steps import Step
from rackwright.wire.ids import MessageId

S = TypeVar("S")
FOLD_QUANTUM = 512
ILLEGAL_RETRY_S = 1.0
BEAT_TURN_S = 0.05  # heartbeats alone bring a turn at most so often


class Offering(Protocol):
    """Where offers go, and what becomes of them."""

    @property
    def idle(self) -> bool:
        """Nothing in flight and nothing waiting to be."""
        ...

    def take(self, offers: Sequence[Offer]) -> None:
        """What the machine has just decided at its turn, in order."""
        ...

    def folded(self, seq: int, commit: MessageId, source: str) -> None:
        """A commit was folded."""
        ...

    def settle(self, folded: int) -> Settled | None:
        """What became of the commit in flight, once that is known."""
        ...

    def advance(self, fleet: Fleet, *, now: float, mono: float) -> list[Lost]:
        """Send the next offer if nothing is in flight; those that cannot be sent come back."""
        ...

    def stale(self) -> list[Lost]:
        """What was decided before somebody else's commit comes back."""
        ...


class Keeper(Protocol):
    """Who keeps a mind alive: does what it wants done, and is told what happens, for metrics."""

    def fold(self, stored: Stored) -> Step:
        """Fold the next commit of the ledger."""
        ...

    def folded(self, step: Step, moved: float) -> None:
        """It is folded; the estimate of ledger time moved by so many seconds."""
        ...

    def handled(self, lag: float) -> None:
        """The machine has seen a commit, so many seconds after it was stored."""
        ...

    def handling(self, arrival: Arrival, source: str) -> AbstractContextManager[None]:
        """Something that was heard is about to be handled."""
        ...

    def turning(self) -> AbstractContextManager[object]:
        """The machine is about to have its turn."""
        ...

    def settled(self, settled: Settled, mono: float) -> None:
        """It is known what became of an offer."""
        ...

    def illegal(self, lost: Lost) -> None:
        """The fold would not have an offer."""
        ...

    @property
    def loaded(self) -> bool:
        """Has all that was there at the start been handled?"""
        ...

    def opened(self) -> None:
        """The mind may decide from now on."""
        ...

    def cover(self, present: int, ordinal: int) -> None:
        """Hear this copy's share."""
        ...

    def do(self, effect: Deed) -> None:
        """An effect that is no offer and no wake."""
        ...


class Mind(Generic[S]):
    """`machine` on one fold, from a ready fold on. `sources`: what it hears beside the ledger."""

    def __init__(
        self,
        machine: Machine[S],
        keeper: Keeper,
        *,
        standing: Standing,
        author: Author,
        clock: LedgerClock,
        mono: Clock,
        offers: Offering,
        patience: Patience,
        ledger: Source[Stored],
        sources: Sequence[Arrivals],
    ) -> None:
        self._machine = machine
        self._keeper = keeper
        self._standing = standing
        self._clock = clock
        self._mono = mono
        self._offers = offers
        self._patience = patience
        self._ledger = ledger
        self._sources = sources
        self._copies: tuple[int, int] | None = None
        self._room: tuple[float, float] | None = None
        self._changed = True
        self._wake_at: float | None = None
        self.state = machine.start(author.ordinal)

    def step(self) -> bool:
        """Do a little of everything; whether there is more to do at once."""
        busy = self._fold_some()
        self._settle()
        self._see_copies()
        self._see_room()
        busy |= self._hear_some()
        self._become_ready()
        if self._may_turn():
            self._turn()
        self._advance()
        # What came back just now may have to be decided anew, and no event says so.
        return busy or (self._changed and self._turns_allowed())

    def next_due(self) -> float | None:
        """The `mono` time at which something is due, if nothing happens before; None: nothing."""
        due = [source.next_due() for source in self._sources]
        if self._turns_allowed():
            due.append(self._wake_at)
        return min((at for at in due if at is not None), default=None)

    def now(self) -> float:
        """Ledger time."""
        return self._clock.now(self._mono(), self._standing.fleet.time)

    # What happens

    def _fold_some(self) -> bool:
        for stored in self._ledger.take(FOLD_QUANTUM):
            step = self._keeper.fold(stored)
            fleet = self._standing.fleet = step.folding.fleet
            commit = step.commit
            mono = self._mono()
            moved = self._clock.hear(fleet.time, mono, slow=fleet.ahead > 0.0)
            self._offers.folded(stored.seq, commit.id, commit.source)
            self._patience.heard(commit.source)
            self._keeper.folded(step, moved)
            self._handle(
                Folded(
                    now=self._clock.now(mono, fleet.time),
                    mono=mono,
                    seq=stored.seq,
                    source=commit.source,
                    type=commit.type,
                    entries=commit.entries,
                    void=step.folding.void,
                    why=step.folding.why,
                )
            )
            self._keeper.handled(self.now() - stored.at)
        return len(self._ledger) > 0

    def _hear_some(self) -> bool:
        folded = self._standing.fleet.seq
        more = False
        for source in self._sources:
            for arrival in source.due(folded, self._mono()):
                self._deliver(arrival, source.name)
            more |= source.due_now(folded, self._mono())
        return more

    def _deliver(self, arrival: Arrival, source: str) -> None:
        self._standing.cause = arrival.cause
        with self._keeper.handling(arrival, source):
            self._handle(arrival.happens(now=self.now(), mono=self._mono()))
        self._standing.cause = None

    def _see_copies(self) -> None:
        copies = self._standing.copies
        if copies is None or copies == self._copies:
            return
        self._copies = copies
        present, ordinal = copies
        self._keeper.cover(present, ordinal)
        event = Copies(now=self.now(), mono=self._mono(), present=present, ordinal=ordinal)
        self._handle(event)

    def _see_room(self) -> None:
        room = self._standing.room
        if room is None or room == self._room:
            return
        self._room = room
        used, refuse_at = room
        event = Room(now=self.now(), mono=self._mono(), used=used, refuse_at=refuse_at)
        self._handle(event)

    def _become_ready(self) -> None:
        if self._standing.ready or self._copies is None or not self._keeper.loaded:
            return
        self._standing.set_ready()
        self._keeper.opened()

    # Turns and offers

    def _may_turn(self) -> bool:
        if not self._turns_allowed():
            return False
        due = self._wake_at is not None and self._mono() >= self._wake_at
        return self._changed or due

    def _turns_allowed(self) -> bool:
        if not self._standing.ready or self._standing.stopping:
            return False
        return self._offers.idle and not len(self._ledger)

    def _turn(self) -> None:
        mono = self._mono()
        self._changed = False
        if self._wake_at is not None and mono >= self._wake_at:
            self._wake_at = None
        offers: list[Offer] = []
        with self._keeper.turning():
            self._handle(Turn(now=self.now(), mono=mono), offers)
        ripe = self._patience.sift(offers, mono)
        if ripe.again is not None:
            self._wake_by(ripe.again)
        self._offers.take(ripe.offers)

    def _advance(self) -> None:
        if self._standing.stopping:
            return
        fleet = self._standing.fleet
        # What goes back may be offered again at once: then it is sent now, since nobody can say
        # when this process is woken next.
        while back := self._offers.advance(fleet, now=self.now(), mono=self._mono()):
            for lost in back:
                self._give_back(lost)

    def _settle(self) -> None:
        settled = self._offers.settle(self._standing.fleet.seq)
        if settled is None:
            return
        mono = self._mono()
        self._keeper.settled(settled, mono)
        if isinstance(settled, Lost):
            # What was decided with it or after it goes back too, in order: it may build on it.
            for lost in (settled, *self._offers.stale()):
                self._give_back(lost)
            return
        self._handle(Acked(now=self.now(), mono=mono, sent_mono=settled.sent_mono, seq=settled.seq))

    def _give_back(self, lost: Lost) -> None:
        again: list[Offer] = []
        event = Refused(now=self.now(), mono=self._mono(), offer=lost.offer)
        self._handle(event, again)
        if not lost.why:
            self._offers.take(again)
            self._changed = True
            return
        # A decision that the fold would not take is taken no sooner by repeating it at once.
        self._wake_by(self._mono() + ILLEGAL_RETRY_S)
        self._keeper.illegal(lost)

    # What the machine wants

    def _handle(self, event: Event, offers: list[Offer] | None = None) -> None:
        self.state, effects = self._machine.handle(self.state, self._standing.fleet, event)
        for effect in effects:
            self._do(effect, event, offers)
        if isinstance(event, Heard):
            self._wake_by(event.mono + BEAT_TURN_S)
        elif offers is None:
            self._changed = True

    def _do(self, effect: Effect, event: Event, offers: list[Offer] | None) -> None:
        match effect:
            case Offer():
                if offers is None:
                    raise OfferOutOfTurn(self._machine.service, type(event).__name__)
                offers.append(effect)
            case WakeAt(mono=mono):
                self._wake_by(mono)
            case _:
                self._keeper.do(effect)

    def _wake_by(self, mono: float) -> None:
        self._wake_at = mono if self._wake_at is None else min(self._wake_at, mono)
