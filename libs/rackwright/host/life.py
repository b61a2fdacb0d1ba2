"""One life of a machine on one fold: everything that happens becomes an event, one at a time.

The ledger comes first, then a few messages of each source in turn, then the machine's turn. Nothing
is decided, projected or echoed before the fold is at the ledger's end and the last values are in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from rackwright.bus.ports import Bus, Feed, Headers, Stored
from rackwright.core.machine import (
    Acked,
    Copies,
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
from rackwright.host.aside import DeadLetterBox
from rackwright.host.clock import Clock, LedgerClock
from rackwright.host.commits import Author, Sealed
from rackwright.host.crew import Crew
from rackwright.host.deeds import Deeds
from rackwright.host.errors import OfferOutOfTurn
from rackwright.host.follower import Follower, Step
from rackwright.host.hearing import Hearing, Hears
from rackwright.host.metrics import Metrics
from rackwright.host.offers import Lost, Offers
from rackwright.host.patience import Patience
from rackwright.host.reading import Arrival
from rackwright.host.sources import Source
from rackwright.host.standing import Standing
from rackwright.host.telemetry import Tracing
from rackwright.host.witness import Witness
from rackwright.wire.subjects import Subjects

S = TypeVar("S")
FOLD_QUANTUM = 512
BATCH = 512
ILLEGAL_RETRY_S = 1.0
BEAT_TURN_S = 0.05  # heartbeats alone bring a turn at most so often
STOP_S = 5.0
SKEW_S = 5.0  # ledger time and this machine's clock should agree better than that


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a life finds in its process. `patience_s`: 0 for a service that shares by shards."""

    bus: Bus
    hears: Hears
    author: Author
    standing: Standing
    metrics: Metrics
    tracing: Tracing
    clock: LedgerClock
    mono: Clock
    patience_s: float
    archive: Path | None
    told: Callable[[Step], None]


class Life(Generic[S]):
    """Runs until it is stopped, or until a task of its or the fold fails."""

    def __init__(
        self, around: Around, machine: Machine[S], follower: Follower, feed: Feed[Stored]
    ) -> None:
        author, bus, metrics = around.author, around.bus, around.metrics
        self._around = around
        self._machine = machine
        self._follower = follower
        self._feed = feed
        self._standing = around.standing
        self._log = structlog.get_logger()
        self._wake = asyncio.Event()
        self._crew = Crew(self._wake.set)
        self._ledger: Source[Stored] = Source(name="ledger", wake=self._wake.set, limit=4096)
        self._box = DeadLetterBox(bus.dead, Subjects(author.cell), author.source, metrics)
        self._hearing = Hearing(
            bus,
            around.hears,
            wake=self._wake.set,
            mono=around.mono,
            box=self._box,
            metrics=metrics,
            crew=self._crew,
        )
        self._offers = Offers(
            ledger=bus.ledger, author=author, watcher=self, changed=self._wake.set
        )
        self._patience = Patience(
            service=author.service, ordinal=author.ordinal, step=around.patience_s
        )
        self._deeds = Deeds(
            bus,
            author,
            around.standing,
            crew=self._crew,
            metrics=metrics,
            now=self._now,
            wake=self._wake.set,
            archive=around.archive,
        )
        self._witness = Witness(around.mono)
        self._sources = [*self._hearing.sources, self._deeds.done]
        metrics.fold_waiting.set_function(lambda: float(len(self._ledger)))
        for source in self._sources:
            metrics.queued.labels(source.name).set_function(partial(_waiting, source))
        self._copies: tuple[int, int] | None = None
        self._room: tuple[float, float] | None = None
        self._changed = True
        self._wake_at: float | None = None
        self._stop_by: float | None = None
        self.state = machine.start(author.ordinal)

    # Its course

    async def run(self) -> None:
        """Live."""
        floor = self._standing.fleet.answers.get(self._around.author.service)
        self._crew.start(self._read_ledger(), "ledger")
        self._crew.start(self._box.run(), "dead letters")
        self._hearing.start(wishes_from=(floor.floor if floor else 0) + 1, now=self._now())
        try:
            while not self._ended():
                self._crew.check()
                busy = self._step()
                await self._pause(busy)
        finally:
            self._standing.set_waiting("stopping" if self._standing.stopping else "starting")
            await self._offers.aclose()
            await self._crew.aclose()
            await self._feed.aclose()

    async def _read_ledger(self) -> None:
        while items := await self._feed.batch(BATCH):
            await self._ledger.extend(items)

    def reconnected(self) -> None:
        """The bus is back."""
        self._deeds.look_again()

    def wake(self) -> None:
        """Something outside changed: look."""
        self._wake.set()

    def _step(self) -> bool:
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
        return busy

    async def _pause(self, busy: bool) -> None:
        """Let others work, and wait until something happens or is due."""
        if busy or self._wake.is_set():
            self._wake.clear()
            await asyncio.sleep(0)
            return
        due = [self._stop_by, *(source.next_due() for source in self._sources)]
        if self._turns_allowed():
            due.append(self._wake_at)
        until = min((at for at in due if at is not None), default=None)
        wait = None if until is None else max(0.0, until - self._around.mono())
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    def _ended(self) -> bool:
        """Has it been told to stop, and is what it began finished?"""
        if not self._standing.stopping:
            return False
        mono = self._around.mono()
        self._stop_by = mono + STOP_S if self._stop_by is None else self._stop_by
        return mono >= self._stop_by or (self._offers.flight is None and self._deeds.idle)

    # What happens

    def _now(self) -> float:
        return self._around.clock.now(self._around.mono(), self._standing.fleet.time)

    def _fold_some(self) -> bool:
        for stored in self._ledger.take(FOLD_QUANTUM):
            step = self._follower.fold(stored)
            fleet = self._standing.fleet = step.folding.fleet
            commit = step.commit
            mono = self._around.mono()
            moved = self._around.clock.hear(fleet.time, mono)
            if abs(moved) > SKEW_S:
                self._log.warning("clock.corrected", by_s=moved)
            self._offers.folded(stored.seq, commit.id, commit.source)
            self._patience.heard(commit.source)
            self._around.told(step)
            if (verified := self._witness.folded(step)) is not None:
                self._crew.start(self._witness.compare(*verified), "witness")
            self._handle(
                Folded(
                    now=self._around.clock.now(mono, fleet.time),
                    mono=mono,
                    seq=stored.seq,
                    source=commit.source,
                    type=commit.type,
                    entries=commit.entries,
                    void=step.folding.void,
                    why=step.folding.why,
                )
            )
            self._around.metrics.fold_lag.set(self._now() - stored.at)
        return len(self._ledger) > 0

    def _hear_some(self) -> bool:
        folded = self._standing.fleet.seq
        more = False
        for source in self._sources:
            for arrival in source.due(folded, self._around.mono()):
                self._deliver(arrival, source.name)
            more |= source.due_now(folded, self._around.mono())
        return more

    def _deliver(self, arrival: Arrival, source: str) -> None:
        self._standing.cause = arrival.cause
        with self._around.tracing.handling(arrival, source):
            self._handle(arrival.event(now=self._now(), mono=self._around.mono()))
        self._standing.cause = None
        self._around.metrics.heard.labels(source).inc()

    def _see_copies(self) -> None:
        copies = self._standing.copies
        if copies is None or copies == self._copies:
            return
        self._copies = copies
        present, ordinal = copies
        self._hearing.cover(present, ordinal)
        event = Copies(now=self._now(), mono=self._around.mono(), present=present, ordinal=ordinal)
        self._handle(event)

    def _see_room(self) -> None:
        room = self._standing.room
        if room is None or room == self._room:
            return
        self._room = room
        used, refuse_at = room
        event = Room(now=self._now(), mono=self._around.mono(), used=used, refuse_at=refuse_at)
        self._handle(event)

    def _become_ready(self) -> None:
        if self._standing.ready or self._copies is None or not self._hearing.loaded:
            return
        self._standing.set_ready()
        self._log.info("service.ready", ledger=self._standing.fleet.ledger)
        self._deeds.open(snapshots=self._around.hears.snapshots)

    # Turns and offers

    def _may_turn(self) -> bool:
        if not self._turns_allowed():
            return False
        due = self._wake_at is not None and self._around.mono() >= self._wake_at
        return self._changed or due

    def _turns_allowed(self) -> bool:
        if not self._standing.ready or self._standing.stopping:
            return False
        return self._offers.idle and not len(self._ledger)

    def _turn(self) -> None:
        mono = self._around.mono()
        self._changed = False
        if self._wake_at is not None and mono >= self._wake_at:
            self._wake_at = None
        self._around.metrics.turns.inc()
        offers: list[Offer] = []
        with self._around.metrics.decision_seconds.time():
            self._handle(Turn(now=self._now(), mono=mono), offers)
        ripe = self._patience.sift(offers, mono)
        if ripe.again is not None:
            self._wake_by(ripe.again)
        self._offers.take(ripe.offers)

    def _advance(self) -> None:
        mono = self._around.mono()
        fleet = self._standing.fleet
        if self._standing.stopping:
            return
        for lost in self._offers.advance(fleet, now=self._now(), mono=mono):
            self._give_back(lost)

    def _settle(self) -> None:
        settled = self._offers.settle(self._standing.fleet.seq)
        if settled is None:
            return
        self._around.tracing.settled(settled)
        mono = self._around.mono()
        if isinstance(settled, Lost):
            self._around.metrics.refusals.inc()
            # What was decided with it or after it goes back too, in order: it may build on it.
            for lost in (settled, *self._offers.stale()):
                self._give_back(lost)
            return
        self._around.metrics.append_seconds.observe(mono - settled.sent_mono)
        self._handle(
            Acked(now=self._now(), mono=mono, sent_mono=settled.sent_mono, seq=settled.seq)
        )

    def _give_back(self, lost: Lost) -> None:
        again: list[Offer] = []
        event = Refused(now=self._now(), mono=self._around.mono(), offer=lost.offer)
        self._handle(event, again)
        if not lost.why:
            self._offers.take(again)
            self._changed = True
            return
        # A decision that the fold would not take is taken no sooner by repeating it at once.
        self._wake_by(self._around.mono() + ILLEGAL_RETRY_S)
        self._around.metrics.illegal.inc()
        entry = lost.offer.entries[0]
        self._log.error("offer.illegal", type=entry.TYPE, why=lost.why, entry=str(entry))

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
                self._deeds.do(effect)

    def _wake_by(self, mono: float) -> None:
        self._wake_at = mono if self._wake_at is None else min(self._wake_at, mono)

    # offers.Watcher

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent."""
        metrics = self._around.metrics
        metrics.offers.inc()
        metrics.decisions.labels(sealed.commit.type).inc(len(sealed.commit.entries))
        return self._around.tracing.sending(sealed)

    def unsettled(self, why: str) -> None:
        """An append was not answered."""
        self._around.metrics.unsettled.inc()
        self._log.warning("append.unsettled", why=why)


def _waiting(source: Source[Arrival]) -> float:
    return float(len(source))
