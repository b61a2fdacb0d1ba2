"""Reads the ledger from a valid start to its end, then commit by commit (protocol P1).

A reader accepts exactly the next sequence, of this ledger and, right after a snapshot, with the
right predecessor. What does not fit throws the fold away; a start that shows another ledger than
before ends the process; what cannot be read stops the fold there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from rackwright.bus.errors import BusAway, LedgerGap, StreamMissing, StreamReplaced
from rackwright.bus.ports import Bus, Ends, Feed, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding, StoppedAt, fold
from rackwright.host.errors import ForeignLedger, Misread, NoValidStart, Stopped
from rackwright.host.snapshots import BadSnapshot, find, read
from rackwright.wire.codec import Unreadable, decode_commit
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.subjects import InvalidSubject, parse_entry

AWAY_RETRY_S = 0.25
BATCH = 1024
LOST = (LedgerGap, StreamReplaced, Misread)
"""Errors after which the fold is thrown away and the start tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit that was folded; `stored` carries its headers and the server's time."""

    stored: Stored
    commit: Commit[Entry]
    folding: Folding


class Follower:
    """The fold of one ledger in this process."""

    def __init__(self, bus: Bus) -> None:
        self.fleet = Fleet()  # after a start: folded up to `fleet.seq`
        self._bus = bus
        self._cell = CellName(bus.cell)
        self._log = structlog.get_logger()
        self._types: dict[str, str] = {}
        self._ledger: LedgerId | None = None
        self._snapshot: int | None = None
        self._doubted: set[int] = set()

    async def start(self) -> Feed[Stored]:
        """Fold up to where the ledger ended when this was called; return what comes after.

        An empty ledger is waited for: only an administrator creates one. Raises LedgerGap, Misread
        and StreamReplaced (try again), NoValidStart, ForeignLedger, Stopped.
        """
        ends = await self._ends()
        self.fleet = await self._valid_start(ends)
        if self.fleet.ledger:
            self._check_identity(self.fleet.seq)
        feed = self._bus.ledger.follow(self.fleet.seq + 1)
        try:
            await self._catch_up(feed, max(1, ends.last))
        except BaseException:
            await feed.aclose()
            raise
        return feed

    async def _catch_up(self, feed: Feed[Stored], end: int) -> None:
        while self.fleet.seq < end:
            for stored in await feed.batch(BATCH):
                self.fold(stored)
            await asyncio.sleep(0)  # a long replay must not make the connection look dead

    async def _ends(self) -> Ends:
        """The ledger's ends, as soon as the bus says them."""
        said = ""
        while True:
            try:
                return await self._bus.ledger.ends()
            except (BusAway, StreamMissing) as error:
                if str(error) != said:
                    said = str(error)
                    self._log.warning("ledger.awaited", why=said)
            await asyncio.sleep(AWAY_RETRY_S)

    async def _valid_start(self, ends: Ends) -> Fleet:
        """The newest good snapshot from which the ledger can be read on, else nothing folded."""
        last = await self._read_one(ends.last) if ends.first <= ends.last else None
        tried = []
        for found in await find(self._bus):
            if not ends.first - 1 <= found.seq <= ends.last or found.seq in self._doubted:
                continue
            tried.append(found.seq)
            try:
                fleet = await read(self._bus, found)
                if last is not None and found.seq == ends.last and fleet.last_id != last.id:
                    raise BadSnapshot(f"ends with {fleet.last_id}, the ledger with {last.id}")
            except BadSnapshot as error:
                self._log.error("snapshot.bad", seq=found.seq, ledger=found.ledger, why=str(error))
                continue
            self._snapshot = found.seq
            self._log.info("snapshot.loaded", seq=found.seq, ledger=found.ledger)
            return fleet
        if ends.first > 1:
            raise NoValidStart(ends.first, ends.last, tuple(tried))
        self._snapshot = None
        return Fleet()

    async def _read_one(self, seq: int) -> Commit[Entry] | None:
        """The commit at `seq`; None if it cannot be read (then the fold will stop there)."""
        async with self._bus.ledger.follow(seq) as feed:
            async for stored in feed:
                try:
                    return decode_commit(self._type(stored), stored.data)
                except (Unreadable, InvalidSubject):
                    return None
        return None

    def fold(self, stored: Stored) -> Step:
        """Fold one message. Raises Misread, ForeignLedger, Stopped."""
        expected = self.fleet.seq + 1
        if stored.seq != expected:
            raise Misread(stored.seq, f"{expected} had to come")
        try:
            commit = decode_commit(self._type(stored), stored.data)
        except (Unreadable, InvalidSubject) as error:
            raise Stopped(stored.seq, f"{stored.subject}: {error}") from error
        if self._snapshot is not None:
            self._check_predecessor(stored.seq, commit)
        try:
            folding = fold(self.fleet, stored.seq, stored.at, commit)
        except StoppedAt as error:
            raise Stopped(error.seq, error.problem) from error
        self.fleet = folding.fleet
        if stored.seq == 1:
            self._check_identity(1)
        return Step(stored=stored, commit=commit, folding=folding)

    def _type(self, stored: Stored) -> str:
        known = self._types.get(stored.subject)
        if known is None:
            known = parse_entry(self._cell, stored.subject)
            if len(self._types) < 1024:
                self._types[stored.subject] = known
        return known

    def _check_identity(self, seq: int) -> None:
        """A commit made for another ledger is merely void; a start that shows another is not."""
        if self._ledger is None:
            self._ledger = self.fleet.ledger or None
        elif self.fleet.ledger != self._ledger:
            raise ForeignLedger(self._ledger, self.fleet.ledger, seq)

    def _check_predecessor(self, seq: int, commit: Commit[Entry]) -> None:
        """The first compared commit after a snapshot proves that both are of one history."""
        if commit.ledger != self.fleet.ledger:
            why = f"made for ledger {commit.ledger}, the snapshot is of {self.fleet.ledger}"
        elif commit.prev is None:
            return
        elif commit.prev != self.fleet.last_id:
            why = f"made after {commit.prev}, the snapshot led to {self.fleet.last_id}"
        else:
            self._snapshot = None
            return
        self._doubted.add(self._snapshot or 0)
        raise Misread(seq, why)
