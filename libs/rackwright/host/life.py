"""One life of a machine on one fold, on asyncio: feeds fill its sources, its mind does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from rackwright.bus.ports import Bus, Feed, Headers, Stored
from rackwright.core.fleet import Answers
from rackwright.core.machine import Deed, Machine
from rackwright.host.aside import DeadLetterBox
from rackwright.host.clock import Clock, LedgerClock
from rackwright.host.collecting import Collector
from rackwright.host.commits import Author, Sealed
from rackwright.host.crew import Crew
from rackwright.host.deeds import Deeds
from rackwright.host.flight import Lost, Settled
from rackwright.host.follower import Follower
from rackwright.host.hearing import Hearing, Hears
from rackwright.host.metrics import Metrics
from rackwright.host.mind import Mind
from rackwright.host.offers import Offers
from rackwright.host.patience import Patience
from rackwright.host.reading import Arrival
from rackwright.host.seldom import Seldom
from rackwright.host.sources import Source
from rackwright.host.standing import Standing
from rackwright.host.steps import Step
from rackwright.host.telemetry import Tracing
from rackwright.host.witness import Witness
from rackwright.wire.subjects import Subjects

S = TypeVar("S")
BATCH = 512
STOP_S = 5.0
UNTAKEN = 5  # sendings of one commit, each waited for, after which people are told
QUIET_S = 0.02  # nothing is due so soon
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
    collector: Collector


class Life(Generic[S]):
    """Runs until it is stopped, or until a task of its or the fold fails."""

    def __init__(
        self, around: Around, machine: Machine[S], follower: Follower, feed: Feed[Stored]
    ) -> None:
        author, bus, metrics = around.author, around.bus, around.metrics
        self._around = around
        self._service = machine.service
        self._follower = follower
        self._feed = feed
        self._standing = around.standing
        self._log = structlog.get_logger()
        self._seldom = Seldom(around.mono)
        self._wake = asyncio.Event()
        self._crew = Crew(self._wake.set)
        self._ledger: Source[Stored] = Source(name="ledger", wake=self._wake.set, limit=4096)
        self._box = DeadLetterBox(bus.dead, Subjects(author.cell), author.source, metrics)
        self._hearing = Hearing(
            bus,
            around.hears,
            service=machine.service,
            wake=self._wake.set,
            mono=around.mono,
            box=self._box,
            metrics=metrics,
            crew=self._crew,
        )
        self._offers = Offers(
            ledger=bus.ledger, author=author, watcher=self, changed=self._wake.set
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
            attend=self._hearing.heartbeats.attend,
        )
        self._witness = Witness(around.mono)
        self._stop_by: float | None = None
        sources = [*self._hearing.sources, self._deeds.done]
        metrics.fold_waiting.set_function(lambda: float(len(self._ledger)))
        for source in sources:
            metrics.queued.labels(source.name).set_function(partial(_waiting, source))
        self._mind = Mind(
            machine,
            self,
            standing=around.standing,
            author=author,
            clock=around.clock,
            mono=around.mono,
            offers=self._offers,
            patience=Patience(
                service=author.service, ordinal=author.ordinal, step=around.patience_s
            ),
            ledger=self._ledger,
            sources=sources,
        )

    @property
    def state(self) -> S:
        """What the machine remembers now."""
        return self._mind.state

    def _answered(self) -> Answers:
        """The wishes that this service has answered by now."""
        return self._standing.fleet.answers.get(self._around.author.service, Answers())

    # Its course

    async def run(self) -> None:
        """Live."""
        self._standing.untaken = ""
        self._crew.start(self._read_ledger(), "ledger")
        self._crew.start(self._box.run(), "dead letters")
        self._hearing.start(answered=self._answered, now=self._now())
        try:
            while not self._ended():
                self._crew.check()
                busy = self._mind.step()
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

    async def _pause(self, busy: bool) -> None:
        """Let others work, and wait until something happens or is due."""
        if busy or self._wake.is_set():
            self._wake.clear()
            self._around.collector.look(quiet=False)
            await asyncio.sleep(0)
            return
        due = (self._stop_by, self._mind.next_due())
        until = min((at for at in due if at is not None), default=None)
        wait = None if until is None else max(0.0, until - self._around.mono())
        self._around.collector.look(quiet=wait is None or wait >= QUIET_S)
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

    def _now(self) -> float:
        return self._around.clock.now(self._around.mono(), self._standing.fleet.time)

    # mind.Keeper

    def fold(self, stored: Stored) -> Step:
        """Fold the next commit of the ledger."""
        return self._follower.fold(stored)

    def folded(self, step: Step, moved: float) -> None:
        """It is folded."""
        if abs(moved) > SKEW_S:
            self._log.warning("clock.corrected", by_s=moved)
        self._around.told(step)
        if (verified := self._witness.folded(step)) is not None:
            self._crew.start(self._witness.compare(*verified), "witness")

    def handled(self, lag: float) -> None:
        """The machine has seen a commit."""
        self._around.metrics.fold_lag.set(lag)

    @contextmanager
    def handling(self, arrival: Arrival, source: str) -> Iterator[None]:
        """Something that was heard is about to be handled."""
        with self._around.tracing.handling(arrival, source):
            yield
        self._around.metrics.heard.labels(source).inc()

    def turning(self) -> AbstractContextManager[object]:
        """The machine is about to have its turn."""
        self._around.metrics.turns.inc()
        return self._around.metrics.decision_seconds.time()

    def settled(self, settled: Settled, mono: float) -> None:
        """It is known what became of an offer."""
        if self._standing.untaken:
            self._standing.untaken = ""
            self._log.info("ledger.taken")
        self._around.tracing.settled(settled)
        if isinstance(settled, Lost):
            self._around.metrics.refusals.inc()
        else:
            self._around.metrics.append_seconds.observe(mono - settled.sent_mono)

    def illegal(self, lost: Lost) -> None:
        """The fold would not have an offer."""
        self._around.metrics.illegal.inc()
        entry = lost.offer.entries[0]
        self._log.error("offer.illegal", type=entry.TYPE, why=lost.why, entry=str(entry))

    @property
    def loaded(self) -> bool:
        """Has all that was there at the start been handled?"""
        return self._hearing.loaded

    def opened(self) -> None:
        """The machine may decide from now on."""
        self._log.info("service.ready", ledger=self._standing.fleet.ledger)
        self._deeds.open(snapshots=self._around.hears.snapshots)

    def cover(self, present: int, ordinal: int) -> None:
        """Hear this copy's share."""
        self._hearing.cover(present, ordinal)

    def do(self, effect: Deed) -> None:
        """An effect that is no offer and no wake."""
        self._deeds.do(effect)

    # offers.Watcher

    def sending(self, sealed: Sealed) -> Headers:
        """A commit is about to be sent."""
        metrics = self._around.metrics
        metrics.offers.inc()
        metrics.decisions.labels(sealed.commit.type).inc(len(sealed.commit.entries))
        return self._around.tracing.sending(sealed)

    def unsettled(self, why: str, sendings: int) -> None:
        """An append was not answered. Again and again, it is the bus's own trouble."""
        self._around.metrics.unsettled.inc()
        times = self._seldom.count(why)
        if times:
            self._log.warning("append.unsettled", why=why, times=times)
        if sendings == UNTAKEN:
            self._standing.untaken = (
                f"the bus has not taken a commit for {sendings} times running ({why}): its log says"
                " why; a full disk is one cause"
            )
            self._log.error("ledger.untaken", why=self._standing.untaken)


def _waiting(source: Source[Arrival]) -> float:
    return float(len(source))
