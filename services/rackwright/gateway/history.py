"""Reads the past back from the ledger in the background and joins it to what is heard.

The gateway begins at a snapshot; what happened before is in the ledger, from its first sequence on.
It is folded a second time, beside everything else and a little at a time, so that the story of a
job survives a restart. Of commits that are older than the oldest snapshot it cannot be known
whether they had effect: they are told, and not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

import structlog

from rackwright.bus.errors import BusAway, LedgerGap, StreamMissing, StreamReplaced
from rackwright.bus.ports import Bus, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import StoppedAt, fold
from rackwright.gateway.chronicle import Chronicle, Story
from rackwright.gateway.counts import Counts
from rackwright.gateway.views import Line
from rackwright.host.snapshots import BadSnapshot, find, read
from rackwright.host.steps import Step
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import CellName
from rackwright.wire.ledgered import read_commit
from rackwright.wire.subjects import InvalidSubject

BATCH = 64  # commits between two looks at everything else
RETRY_S = 1.0
log = structlog.get_logger()


class History:
    """Implements `context.Past`. `heard` is to be told of each folded commit."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._cell = CellName(bus.cell)
        self._old: Chronicle | None = None
        self._new = Chronicle()
        self._fleet: Fleet | None = None
        self._begin = 0
        self._again = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    # What it says

    @property
    def complete(self) -> bool:
        """Has the past been read back?"""
        return self._old is None and self._fleet is not None

    @property
    def since(self) -> int:
        """The first sequence that is told of."""
        past = self._old.since if self._old is not None else 0
        return past or self._new.since or self._begin + 1

    @property
    def events(self) -> Sequence[Line]:
        """The newest entries, oldest first."""
        if self._old is None:
            return self._new.events
        return list(chain(self._old.events, self._new.events))

    @property
    def counts(self) -> Counts:
        """What has been counted so far."""
        if self._old is None:
            return self._new.counts
        joined = Counts()
        joined.join(self._old.counts)
        joined.join(self._new.counts)
        return joined

    def story(self, key: str) -> Story:
        """What is kept of one story."""
        if self._old is None:
            return self._new.story(key)
        joined = Story()
        joined.join(self._old.story(key))
        joined.join(self._new.story(key))
        return joined

    async def changed(self) -> None:
        """Wait until something more is known."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def tell(self) -> None:
        """Wake those who wait for something more."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # What it hears

    def begin(self, fleet: Fleet) -> None:
        """Everything up to this fleet is the past; what follows will be heard."""
        if self._fleet is None:
            self._fleet, self._begin = fleet, fleet.seq

    def heard(self, step: Step) -> None:
        """A commit was folded by the host."""
        before, after = self._fleet, step.folding.fleet
        self._fleet = after
        if before is None or before.seq + 1 != after.seq:
            self._begin, self._new = after.seq, Chronicle()
            self._again.set()
        else:
            why = step.folding.why if step.folding.void else None
            self._new.take(after.seq, step.commit, before, after, why)
        self.tell()

    # How it reads back

    async def read_back(self) -> None:
        """Read the past until it is there, and again whenever the fold was thrown away."""
        while True:
            self._again.clear()
            if await self._read():
                await self._again.wait()
            else:
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> bool:
        """One attempt; whether it succeeded."""
        end, old = self._begin, Chronicle()
        self._old = old
        try:
            ends = await self._bus.ledger.ends()
            fleet = Fleet() if ends.first == 1 else await self._snapshot(ends.first)
            if ends.first <= end:
                await self._follow(ends.first, end, fleet, old)
        except (BusAway, StreamMissing, LedgerGap, StreamReplaced) as error:
            log.warning("history.interrupted", why=str(error), upto=old.upto)
            return False
        except (Unreadable, InvalidSubject, StoppedAt) as error:
            log.error("history.unreadable", why=str(error), upto=old.upto)
        if self._again.is_set():
            return False
        old.join(self._new)
        self._new, self._old = old, None
        self.tell()
        log.info("history.read", since=self.since, upto=end)
        return True

    async def _snapshot(self, first: int) -> Fleet:
        """The oldest snapshot from which the ledger can be folded on; else nothing folded."""
        for found in reversed(await find(self._bus)):
            if found.seq >= first - 1:
                try:
                    return await read(self._bus, found)
                except BadSnapshot as error:
                    log.warning("snapshot.bad", seq=found.seq, why=str(error))
        return Fleet()

    async def _follow(self, first: int, end: int, fleet: Fleet, old: Chronicle) -> None:
        names = fleet if fleet.seq else (self._fleet or fleet)
        async with self._bus.ledger.follow(first) as feed:
            while old.upto < end and not self._again.is_set():
                for stored in await feed.batch(BATCH):
                    if stored.seq > end:
                        return
                    fleet = self._take(stored, fleet, names, old)
                await asyncio.sleep(0)

    def _take(self, stored: Stored, fleet: Fleet, names: Fleet, old: Chronicle) -> Fleet:
        """One commit of the past; the fleet after it."""
        commit = read_commit(self._cell, stored.subject, stored.data)
        if stored.seq != fleet.seq + 1:
            old.believe(stored.seq, stored.at, commit, names)
            return fleet
        folding = fold(fleet, stored.seq, stored.at, commit)
        why = folding.why if folding.void else None
        old.take(stored.seq, commit, fleet, folding.fleet, why)
        return folding.fleet
