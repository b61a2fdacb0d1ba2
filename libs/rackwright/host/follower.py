"""Reads the ledger from a valid start to its end, and on from there (protocol P1).

A start that shows another ledger than before ends the process; what a reader accepts after it is
in `steps`.
"""

from __future__ import annotations

import asyncio

import structlog

from rackwright.bus.errors import BusAway, LedgerGap, StreamMissing, StreamReplaced
from rackwright.bus.ports import Bus, Ends, Feed, Stored
from rackwright.core.fleet import Fleet
from rackwright.host.errors import Misread, NoValidStart
from rackwright.host.snapshots import BadSnapshot, find, read
from rackwright.host.steps import Steps
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import CellName, MessageId
from rackwright.wire.subjects import InvalidSubject

AWAY_RETRY_S = 0.25
BATCH = 1024
LOST = (LedgerGap, StreamReplaced, Misread)
"""Errors after which the fold is thrown away and the start tried again."""


class Follower(Steps):
    """The fold of one ledger in this process; after a start folded up to `fleet.seq`."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(CellName(bus.cell))
        self._bus = bus
        self._log = structlog.get_logger()

    async def start(self) -> Feed[Stored]:
        """Fold up to where the ledger ended when this was called; return what comes after.

        An empty ledger is waited for: only an administrator creates one. Raises LedgerGap, Misread
        and StreamReplaced (try again), NoValidStart, ForeignLedger, Stopped.
        """
        ends = await self._ends()
        self.begin(*await self._valid_start(ends))
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

    async def _valid_start(self, ends: Ends) -> tuple[Fleet, int | None]:
        """The newest good snapshot from which the ledger can be read on, else nothing folded.

        With the snapshot's sequence, None without one or where nothing is left to prove: the ledger
        still has the commit that the snapshot ends with. What comes after it may be no proof: a
        commit that was made for another ledger fits no snapshot.
        """
        tried = []
        for found in await find(self._bus):
            if not ends.first - 1 <= found.seq <= ends.last or found.seq in self.doubted:
                continue
            tried.append(found.seq)
            try:
                fleet = await read(self._bus, found)
                at = await self._id_at(found.seq) if found.seq >= ends.first else None
                if at is not None and fleet.last_id != at:
                    raise BadSnapshot(f"ends with {fleet.last_id}, the ledger has {at} there")
            except BadSnapshot as error:
                self._log.error("snapshot.bad", seq=found.seq, ledger=found.ledger, why=str(error))
                continue
            self._log.info("snapshot.loaded", seq=found.seq, ledger=found.ledger)
            return fleet, found.seq if at is None else None
        if ends.first > 1:
            raise NoValidStart(ends.first, ends.last, tuple(tried))
        return Fleet(), None

    async def _id_at(self, seq: int) -> MessageId | None:
        """Of the commit at `seq`; None if it is gone or cannot be read."""
        async with self._bus.ledger.follow(seq) as feed:
            try:
                async for stored in feed:
                    return self.decode(stored).id
            except (LedgerGap, Unreadable, InvalidSubject):
                return None
        return None
