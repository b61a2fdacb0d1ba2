"""One machine with its own view of the cell: what a live process is, on virtual time.

It is stepped by the same `host.mind`. It may be late, paused, killed at any effect and started
again, from the head of the ledger or from an older fold of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rackwright.bus.ports import Stored
from rackwright.core.machine import Deed, Machine, Project, SendEcho
from rackwright.host.clock import LedgerClock
from rackwright.host.commits import Author, Sealed
from rackwright.host.errors import Misread, Stopped
from rackwright.host.flight import Lost, Settled
from rackwright.host.hearing import Hears
from rackwright.host.mind import Mind
from rackwright.host.patience import STEP_S, Patience
from rackwright.host.reading import Arrival
from rackwright.host.sources import Arrivals, LastValues, Source
from rackwright.host.standing import Standing
from rackwright.host.steps import Step, Steps
from rackwright.sim.engine import Engine, Timer
from rackwright.sim.ledger import SimLedger
from rackwright.sim.paths import DIRECT, Path
from rackwright.sim.sending import AtOnce, PlainAuthor, Sending

S = TypeVar("S")
STEP_TAKES_S = 1e-6
MOST_HURRIES = 2_000
NOTHING = nullcontext()


class Crashed(Exception):
    """The process dies here."""


class NeverRests(AssertionError):
    """A machine that asks for turn after turn without any time going by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """A process's clocks against true time: CLOCK_BOOTTIME runs at `rate` from `booted` on, the
    wall clock is `wall_s` ahead."""

    rate: float = 1.0
    booted: float = 0.0
    wall_s: float = 0.0


TRUE_CLOCKS = Clocks()


@dataclass(slots=True)
class Count:
    """What one process did."""

    won: int = 0
    refused: int = 0
    illegal: int = 0
    turns: int = 0


class Process(Generic[S]):
    """A living process. `do` is given every deed of the machine, echoes and projections only when
    it may decide. `reader`: its own fold, fed with bytes; None: it shares the ledger's.

    Without a path it is answered at once and nothing is written down. `point` is told of moments
    at which it may die, by raising Crashed; `died` hears of it. `settled` hears of each commit.
    `token` tells its commits from those of every other process.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: SimLedger,
        machine: Machine[S],
        hears: Hears,
        *,
        token: str,
        ordinal: int = 0,
        present: int = 1,
        patience_s: float = STEP_S,
        path: Path | None = None,
        clocks: Clocks = TRUE_CLOCKS,
        reader: Steps | None = None,
        do: Callable[[Process[S], Deed], None] = lambda _process, _deed: None,
        point: Callable[[str], None] = lambda _: None,
        settled: Callable[[Sealed, Settled], None] = lambda _sealed, _settled: None,
        died: Callable[[Process[S], str], None] | None = None,
    ) -> None:
        self.engine = engine
        self.ledger = ledger
        self.count = Count()
        self.alive = True
        self.paused = False
        self.stopped: Stopped | None = None
        self.hears = hears
        self._clocks = clocks
        self._reader = reader
        self._do = do
        self._point = point
        self._died = died
        self._steps: deque[Step] = deque()
        self._held: list[Project] = []
        self._timer: Timer | None = None
        self._running = self._again = False
        self._hurries = 0
        fleet = ledger.fleet if reader is None else reader.fleet
        self.standing = Standing(
            service=machine.service, ordinal=ordinal, cell=ledger.cell, fleet=fleet
        )
        self.standing.copies = (present, ordinal)
        self.clock = LedgerClock(mono=self.mono, wall=self.wall)
        self.status = LastValues(name="status", wake=self.wake)
        self.signals = Arrivals(name="signal", wake=self.wake)
        self.wishes = Arrivals(name="wishes", wake=self.wake)
        self.beats = Arrivals(name="heartbeats", wake=self.wake, quantum=256)
        self.done = Arrivals(name="done", wake=self.wake)
        self._commits: Source[Stored] = Source(name="ledger", wake=self.wake)
        make = PlainAuthor if path is None else Author
        author = make(ledger.cell, machine.service, ordinal, token)
        self.offers: AtOnce | Sending = (
            AtOnce(author, ledger, self.wake)
            if path is None
            else Sending(author, engine, ledger, path, wake=self.wake, point=point, settled=settled)
        )
        self._pipe = (path or DIRECT).pipe()
        self.mind = Mind(
            machine,
            self,
            standing=self.standing,
            author=author,
            clock=self.clock,
            mono=self.mono,
            offers=self.offers,
            patience=Patience(service=machine.service, ordinal=ordinal, step=patience_s),
            ledger=self._commits,
            sources=[*self._sources(hears), self.done],
        )
        ledger.listeners[self] = self._told
        self.wake()

    @property
    def name(self) -> str:
        """`<service>/<ordinal>`."""
        return self.standing.name

    @property
    def state(self) -> S:
        """What the machine remembers now."""
        return self.mind.state

    def mono(self) -> float:
        """Its CLOCK_BOOTTIME."""
        return (self.engine.now - self._clocks.booted) * self._clocks.rate

    def wall(self) -> float:
        """Its wall clock."""
        return self.engine.now + self._clocks.wall_s

    def set_wall(self, by_s: float) -> None:
        """Somebody sets its wall clock, forward or back."""
        self._clocks = replace(self._clocks, wall_s=self._clocks.wall_s + by_s)

    # What it hears

    def hear(self, source: Arrivals, arrival: Arrival) -> None:
        """Something has reached it."""
        source.items.append(arrival)
        source.heard += 1
        self.wake()

    def read(self, stored: Stored) -> None:
        """A commit, as bytes, for a process with a fold of its own."""
        self._commits.items.append(stored)
        self.wake()

    def end_history(self) -> None:
        """What was there when it started has been heard."""
        self.status.end_history()
        self.signals.end_history()

    def set_copies(self, present: int, ordinal: int) -> None:
        """So many copies are present, and this is one of them (from 0)."""
        self.standing.copies = (present, ordinal)
        self.wake()

    def _told(self, step: Step) -> None:
        self._pipe.push(self._reached, step)

    def _reached(self, step: Step) -> None:
        if not self.alive or step.stored.seq <= self.standing.fleet.seq:
            return
        if self._reader is None:
            self._steps.append(step)
        self._commits.items.append(step.stored)
        self.wake()

    def _sources(self, hears: Hears) -> list[Arrivals]:
        wanted = (
            (hears.status, self.status),
            (hears.signals, self.signals),
            (hears.wishes, self.wishes),
            (hears.heartbeats, self.beats),
        )
        return [source for want, source in wanted if want]

    # Its course

    def wake(self) -> None:
        """Something happened: look, now."""
        if self._running:
            self._again = True
            return
        if not self.alive or self.paused or self.stopped is not None:
            return
        if self._timer is not None and self._timer.call is not None:
            if self._timer.at <= self.engine.now:
                return
            self._timer.cancel()
        self._timer = self.engine.at(self.engine.now, self._run)

    def pause(self) -> None:
        """It stands still, as after SIGSTOP."""
        self.paused = True

    def resume(self) -> None:
        """It goes on and finds that time has passed."""
        self.paused = False
        self.wake()

    def kill(self) -> None:
        """It is gone; an append of it that is under way may still come in."""
        self.alive = False
        self.ledger.listeners.pop(self, None)
        self._pipe.close()
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(self.offers, Sending):
            self.offers.aclose()

    def _run(self) -> None:
        if not self.alive or self.paused:
            return
        self._running = True
        try:
            self._steps_on()
        except Stopped as error:
            self.stopped = error
            self.standing.set_stopped(error.seq, error.why)
        except (Crashed, Misread) as error:
            self.kill()
            if self._died is None:
                raise
            self._died(self, str(error))
        finally:
            self._running = False
        self._come_again()

    def _come_again(self) -> None:
        """Be woken when something is due; a step takes a microsecond, as no live one takes less."""
        due = self.mind.next_due()
        if not self.alive or self.stopped is not None or due is None:
            return
        wait = (due - self.mono()) / self._clocks.rate
        self._hurries = self._hurries + 1 if wait <= STEP_TAKES_S else 0
        if self._hurries > MOST_HURRIES:
            raise NeverRests(f"{self.name} at {self.engine.now}: turn after turn, for nothing")
        self._timer = self.engine.later(max(STEP_TAKES_S, wait), self._run)

    def _steps_on(self) -> None:
        busy = True
        while busy:
            self._again = False
            busy = self.mind.step() or self._again

    # mind.Keeper

    def fold(self, stored: Stored) -> Step:
        """Fold the next commit, or take what the ledger's own fold made of it."""
        if self._reader is not None:
            return self._reader.fold(stored)
        return self._steps.popleft()

    def folded(self, step: Step, moved: float) -> None:
        """It is folded."""
        self._point("folded")

    def handled(self, lag: float) -> None:
        """Nobody measures."""

    def handling(self, arrival: Arrival, source: str) -> AbstractContextManager[None]:
        """Nobody traces."""
        return NOTHING

    def turning(self) -> AbstractContextManager[None]:
        """Nobody measures."""
        self.count.turns += 1
        return NOTHING

    def settled(self, settled: Settled, mono: float) -> None:
        """It is known what became of an offer."""
        if isinstance(settled, Lost):
            self.count.refused += 1
        else:
            self.count.won += 1

    def illegal(self, lost: Lost) -> None:
        """The fold would not have an offer."""
        self.count.illegal += 1

    @property
    def loaded(self) -> bool:
        """Has all that was there at the start been handled?"""
        return (not self.hears.status or self.status.loaded) and (
            not self.hears.signals or self.signals.loaded
        )

    def opened(self) -> None:
        """It may decide: what had to wait is done."""
        held, self._held = self._held, []
        for project in held:
            self._do(self, project)

    def cover(self, present: int, ordinal: int) -> None:
        """Whoever delivers heartbeats asks `standing.copies`."""

    def do(self, effect: Deed) -> None:
        """Nothing is projected or echoed before the process may decide."""
        self._point(type(effect).__name__)
        if not self.standing.ready:
            if isinstance(effect, Project):
                self._held.append(effect)
            if isinstance(effect, Project | SendEcho):
                return
        self._do(self, effect)
