"""Keeps one machine alive in this process: starts it on the ledger, and again when it must.

A fold that was thrown away is started anew, three times in a row at most. A fold that met what it
cannot read stays where it is: the process lives on, says so, and decides nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from rackwright.bus.errors import BusClosed
from rackwright.bus.ports import Bus, Feed, Stored
from rackwright.core.machine import Machine
from rackwright.host.clock import Clock, LedgerClock, boottime
from rackwright.host.collecting import Collector
from rackwright.host.commits import Author
from rackwright.host.errors import Stopped, TooManyStarts
from rackwright.host.follower import LOST, Follower
from rackwright.host.hearing import Hears
from rackwright.host.life import Around, Life
from rackwright.host.metrics import Metrics
from rackwright.host.patience import STEP_S
from rackwright.host.standing import Standing
from rackwright.host.steps import Step
from rackwright.host.telemetry import Tracing
from rackwright.wire.ids import CellName

S = TypeVar("S")
STARTS = 3
SETTLED_S = 60.0  # a life that lasted so long was a good start


class Runner(Generic[S]):
    """Runs `machine` on `bus`. `on_folded` hears each commit after it was folded.

    `standing` says which copy it is, and how many there are once that is known (`set_copies`);
    without one it takes itself for the only copy.
    """

    def __init__(
        self,
        machine: Machine[S],
        hears: Hears,
        bus: Bus,
        *,
        standing: Standing | None = None,
        patience_s: float = STEP_S,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        archive: Path | None = None,
        collector: Collector | None = None,
        mono: Clock = boottime,
        wall: Clock = time.time,
    ) -> None:
        self._machine = machine
        self._bus = bus
        self._log = structlog.get_logger()
        self._stop = asyncio.Event()
        self._life: Life[S] | None = None
        self._listeners: list[Callable[[Step], None]] = []
        self.metrics = metrics or Metrics()
        self.standing = standing or Standing(
            service=machine.service, ordinal=0, cell=bus.cell, copies=(1, 0)
        )
        self.author = Author(CellName(bus.cell), machine.service, self.standing.ordinal)
        self._around = Around(
            bus=bus,
            hears=hears,
            author=self.author,
            standing=self.standing,
            metrics=self.metrics,
            tracing=tracing or Tracing(),
            clock=LedgerClock(mono=mono, wall=wall),
            mono=mono,
            patience_s=patience_s,
            archive=archive,
            told=self._told,
            collector=collector or Collector(),
        )

        bus.link.on_disconnect(partial(self._connected, False))
        bus.link.on_reconnect(partial(self._connected, True))

    @property
    def state(self) -> S | None:
        """What the machine remembers now; None before its life began."""
        return None if self._life is None else self._life.state

    def on_folded(self, listener: Callable[[Step], None]) -> None:
        """Call `listener` after each commit that is folded from now on."""
        self._listeners.append(listener)

    def set_copies(self, present: int, ordinal: int) -> None:
        """So many copies are present, and this is one of them (from 0)."""
        self.standing.copies = (present, ordinal)
        self.look_around()

    def look_around(self) -> None:
        """Its standing was changed from outside."""
        if self._life is not None:
            self._life.wake()

    def stop(self) -> None:
        """Finish what is in flight, decide nothing more, end."""
        self.standing.stopping = True
        self._stop.set()
        if self._life is not None:
            self._life.wake()

    async def run(self) -> None:
        """Live until `stop`. Raises BusClosed, ForeignLedger, NoValidStart, TooManyStarts."""
        work = asyncio.create_task(self._lives(), name="lives")
        closed = asyncio.create_task(self._bus.link.closed(), name="closed")
        try:
            await asyncio.wait({work, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise BusClosed(closed.result())
            work.result()
        finally:
            for task in (work, closed):
                task.cancel()
            await asyncio.wait({work, closed})

    async def _lives(self) -> None:
        follower = Follower(self._bus)
        starts = 0
        while not self._stop.is_set():
            starts, began = starts + 1, self._around.mono()
            try:
                await self._live(follower)
            except Stopped as error:
                await self._stay_stopped(error)
            except LOST as error:
                if self._around.mono() - began > SETTLED_S:
                    starts = 1
                self.metrics.restarts.inc()
                self._log.error("fold.thrown_away", why=str(error), starts=starts)
                if starts >= STARTS:
                    raise TooManyStarts(starts, str(error)) from error

    async def _live(self, follower: Follower) -> None:
        """One life, from a start of the fold to its end."""
        self.standing.set_waiting("reading the ledger")
        feed = await self._start(follower)
        if feed is None:
            return
        self.standing.fleet = follower.fleet
        self._log.info("ledger.read", ledger=follower.fleet.ledger, voids=follower.fleet.voids)
        self.standing.set_waiting("reading last values")
        self._life = Life(self._around, self._machine, follower, feed)
        await self._life.run()

    async def _start(self, follower: Follower) -> Feed[Stored] | None:
        """The ledger's feed after a start; None if told to stop meanwhile."""
        reading = asyncio.create_task(follower.start(), name="start")
        stop = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({reading, stop}, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            self.standing.fleet = follower.fleet
            for task in (reading, stop):
                task.cancel()
            await asyncio.wait({reading, stop})

    async def _stay_stopped(self, error: Stopped) -> None:
        self.standing.set_stopped(error.seq, error.why)
        self._log.critical("fold.stopped", seq=error.seq, why=error.why)
        await self._stop.wait()

    def _connected(self, now: bool) -> None:
        self.standing.connected = now
        if now and self._life is not None:
            self._life.reconnected()
        if not self.standing.stopping:
            self._log.log(20 if now else 30, "bus.back" if now else "bus.lost")

    def _told(self, step: Step) -> None:
        self._around.tracing.folded(step)
        self.metrics.folded.inc()
        if step.folding.void:
            self.metrics.voids.labels(step.commit.source.partition("/")[0]).inc()
            # A late observation is void now and then; a decision never should be.
            self._log.log(
                20 if step.commit.prev is None else 40,
                "commit.void",
                seq=step.stored.seq,
                type=step.commit.type,
                by=step.commit.source,
                why=step.folding.why,
            )
        for listener in self._listeners:
            listener(step)
