"""What a machine hears beside the ledger: its feeds, each read by a task of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rackwright.bus.errors import LedgerGap, StreamReplaced
from rackwright.bus.ports import Bus, Feed, Ready, Stored
from rackwright.core.fleet import Answers
from rackwright.host.aside import DeadLetterBox
from rackwright.host.clock import Clock
from rackwright.host.crew import Crew
from rackwright.host.errors import HostError
from rackwright.host.heartbeats import Heartbeats
from rackwright.host.metrics import Metrics
from rackwright.host.reading import (
    Arrival,
    Read,
    SetAside,
    read_signal,
    read_status,
    read_wish,
    wishes_of_others,
)
from rackwright.host.sources import Arrivals, LastValues
from rackwright.host.talkers import Talkers
from rackwright.wire.ids import CellName

SIGNALS_BACK_S = 60.0
AHEAD_S = 5.0  # what names a ledger sequence that does not come is handled all the same
BATCH = 256
Reader: TypeAlias = Callable[[CellName, Stored, float], Read]


class WishesReplaced(HostError):
    """The wish stream is another one than the ledger's answers speak of."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the wish stream was recreated or restored ({why}), but the ledger says up to which"
            " sequence of the old one wishes are answered; restore it or start a new cell"
        )
        self.why = why


class WishesShorter(HostError):
    """The wish stream has lost its end, but nothing of what the ledger has answered."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the wish stream has lost its end ({why}), all of it unanswered; started again, this"
            " copy reads on from what is left"
        )
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Hears:
    """What a service listens to; commits it always hears. `snapshots`: the newest at the start."""

    wishes: bool = False
    signals: bool = False
    status: bool = False
    heartbeats: bool = False
    snapshots: bool = False


class Hearing:
    """The sources of one machine, filled by tasks of a crew."""

    def __init__(
        self,
        bus: Bus,
        hears: Hears,
        *,
        service: str,
        wake: Callable[[], None],
        mono: Clock,
        box: DeadLetterBox,
        metrics: Metrics,
        crew: Crew,
    ) -> None:
        self._bus = bus
        self._cell = CellName(bus.cell)
        self._hears = hears
        self._others = wishes_of_others(service)
        self._mono = mono
        self._box = box
        self._crew = crew
        self._excess = metrics.signals.labels("excess")
        self.status = LastValues(name="status", wake=wake)
        self.signals = Arrivals(name="signal", wake=wake)
        self.wishes = Arrivals(name="wishes", wake=wake)
        self.beats = Arrivals(name="heartbeats", wake=wake, limit=65_536, quantum=256)
        self.heartbeats = Heartbeats(bus, self.beats, crew, metrics)
        self.sources = [
            source
            for wanted, source in (
                (hears.status, self.status),
                (hears.signals, self.signals),
                (hears.wishes, self.wishes),
                (hears.heartbeats, self.beats),
            )
            if wanted
        ]

    def start(self, *, answered: Callable[[], Answers], now: float) -> None:
        """Begin to listen: wishes from the first unanswered one on, signals of the last minute."""
        if self._hears.status:
            feed = self._bus.status.follow()
            self._crew.start(self._read(self.status, feed, read_status), "status")
        if self._hears.signals:
            signals = self._bus.signals.follow(now - SIGNALS_BACK_S)
            heard = self._read(self.signals, signals, read_signal, Talkers())
            self._crew.start(heard, "signals")
        if self._hears.wishes:
            self._crew.start(self._read_wishes(answered), "wishes")

    def cover(self, present: int, ordinal: int) -> None:
        """Hear the heartbeats of this copy's share of the shards."""
        if self._hears.heartbeats:
            self.heartbeats.cover(present, ordinal)

    @property
    def loaded(self) -> bool:
        """Has all that was there at the start been handled?"""
        return (not self._hears.status or self.status.loaded) and (
            not self._hears.signals or self.signals.loaded
        )

    async def _read(
        self,
        source: Arrivals,
        feed: Feed[Stored | Ready],
        reader: Reader,
        talkers: Talkers | None = None,
    ) -> None:
        async with feed:
            while items := await feed.batch(BATCH):
                until = self._mono() + AHEAD_S
                for item in items:
                    if isinstance(item, Ready):
                        source.end_history()
                        continue
                    if talkers is not None and talkers.too_much(item.subject, item.at):
                        self._excess.inc()
                        continue
                    arrival = reader(self._cell, item, until)
                    if isinstance(arrival, SetAside):
                        self._box.drop(source.name, arrival)
                    else:
                        await source.put(arrival)

    async def _read_wishes(self, answered: Callable[[], Answers]) -> None:
        try:
            async with self._bus.wishes.follow(answered().floor + 1) as feed:
                while items := await feed.batch(BATCH):
                    for item in items:
                        await self.wishes.put(await self._wish(item))
        except (LedgerGap, StreamReplaced) as error:
            end = error.last if isinstance(error, StreamReplaced) else error.got - 1
            lost = end < max(answered().floor, *answered().above, 0)
            raise (WishesReplaced if lost else WishesShorter)(str(error)) from error

    async def _wish(self, stored: Stored) -> Arrival:
        arrival = read_wish(self._cell, stored, self._mono() + AHEAD_S, self._others)
        if not isinstance(arrival, SetAside):
            return arrival
        await self._box.store("wish", arrival)  # before its place in the stream is passed
        if arrival.instead is None:
            raise AssertionError("a wish that is set aside still has its sequence")
        return arrival.instead
