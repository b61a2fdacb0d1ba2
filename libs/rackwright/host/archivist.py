"""Does what a machine wants done with snapshots and with old parts of the ledger (protocol P1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from rackwright.bus.errors import BusDenied, BusError
from rackwright.bus.ports import Bus, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    CheckSnapshot,
    SnapshotChecked,
    SnapshotStored,
    TrimLedger,
    WriteSnapshot,
)
from rackwright.core.snapshot import dump, shape
from rackwright.host.archive import Archive, ArchiveBroken
from rackwright.host.commits import Author
from rackwright.host.crew import Crew
from rackwright.host.patience import STEP_S
from rackwright.host.reading import Arrival
from rackwright.host.refold import RefoldFailed, refold
from rackwright.host.snapshots import (
    BadSnapshot,
    Found,
    digest,
    find,
    read_bytes,
    read_manifest,
    remove,
    write,
)
from rackwright.host.sources import Arrivals

KEPT = 4
SEGMENT = 5_000


class Archivist:
    """Works beside the machine, one thing at a time, and tells it by `done` what came of it.

    Without a directory for the archive nothing is ever trimmed.
    """

    def __init__(
        self,
        bus: Bus,
        author: Author,
        crew: Crew,
        done: Arrivals,
        now: Callable[[], float],
        archive: Path | None,
    ) -> None:
        self._bus = bus
        self._author = author
        self._crew = crew
        self._done = done
        self._now = now
        self._archive = archive
        self._log = structlog.get_logger()
        self._one_at_a_time = asyncio.Lock()
        self._newest = 0
        self._may_trim = True

    def do(self, effect: WriteSnapshot | CheckSnapshot | TrimLedger, fleet: Fleet) -> None:
        """Begin with it; `fleet` is the one the machine decided on."""
        match effect:
            case WriteSnapshot(seq=seq) if seq == fleet.seq:
                self._crew.start(self._guarded(self._write(fleet), "write"), "write snapshot")
            case WriteSnapshot(seq=seq):
                self._log.error("snapshot.late", seq=seq, folded=fleet.seq)
            case CheckSnapshot():
                self._crew.start(self._guarded(self._check(effect, fleet), "check"), "check")
            case TrimLedger(to=to):
                self._crew.start(self._guarded(self._trim(to, fleet), "trim"), "trim")

    def tell_newest(self, fleet: Fleet) -> None:
        """Tell the machine of the newest snapshot that is there already."""
        self._crew.start(self._guarded(self._look_once(fleet), "find"), "find snapshot")

    async def _look_once(self, fleet: Fleet) -> None:
        await self._look(fleet)

    async def _guarded(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """One at a time; what fails is tried again when the machine asks again."""
        async with self._one_at_a_time:
            try:
                await work
            except (BusError, BadSnapshot, RefoldFailed, ArchiveBroken, OSError) as error:
                self._log.warning(f"{what}.failed", why=str(error))

    # Writing

    async def _write(self, fleet: Fleet) -> None:
        """Store a snapshot, unless a better copy has stored a newer one meanwhile."""
        await asyncio.sleep(self._author.ordinal * STEP_S)
        if self._author.ordinal > 0 and await self._look(fleet):
            return
        data = await asyncio.to_thread(dump, fleet)
        await write(self._bus, self._author, fleet, data, self._now())
        self._log.info("snapshot.stored", seq=fleet.seq, size=len(data))
        await self._tell_stored(fleet.seq, digest(data))
        await self._clear(fleet)

    async def _look(self, fleet: Fleet) -> bool:
        """Tell of the newest snapshot if the machine has not heard of it."""
        for found in await find(self._bus):
            if found.ledger != fleet.ledger or found.seq <= self._newest:
                continue
            manifest = await read_manifest(self._bus, found)
            if manifest.shape != shape():
                continue  # of a copy of another release: nothing here has those bytes
            await self._tell_stored(found.seq, manifest.sha256)
            return True
        return False

    async def _tell_stored(self, seq: int, sha256: str) -> None:
        self._newest = max(self._newest, seq)
        event = partial(SnapshotStored, seq=seq, sha256=sha256)
        await self._done.put(Arrival(event=event, name="snapshot.stored"))

    async def _clear(self, fleet: Fleet) -> None:
        """Remove what is older than the newest few and than the two newest verified ones."""
        mine = [found for found in await find(self._bus) if found.ledger == fleet.ledger]
        needed = {seq for seq, _ in fleet.verified[-2:]} | {found.seq for found in mine[:KEPT]}
        for found in mine:
            if found.seq not in needed:
                await remove(self._bus, found)

    # Checking

    async def _check(self, effect: CheckSnapshot, fleet: Fleet) -> None:
        """Fold one snapshot on to the other in another process and compare."""
        found = await self._find(fleet, effect.seq)
        _, data = await read_bytes(self._bus, found)
        commits = await self._commits(effect.seq + 1, effect.to)
        sha256 = await refold(self._bus.cell, data, commits)
        equal = sha256 == effect.sha256
        log = self._log.info if equal else self._log.critical
        log("snapshot.checked", seq=effect.seq, to=effect.to, equal=equal)
        event = partial(
            SnapshotChecked, seq=effect.seq, to=effect.to, sha256=effect.sha256, equal=equal
        )
        await self._done.put(Arrival(event=event, name="snapshot.checked"))

    async def _find(self, fleet: Fleet, seq: int) -> Found:
        for found in await find(self._bus):
            if found.ledger == fleet.ledger and found.seq == seq:
                return found
        raise BadSnapshot(f"there is none at {seq} any more")

    async def _commits(self, first: int, last: int) -> list[Stored]:
        """Those messages of the ledger. Raises LedgerGap if they have been trimmed."""
        commits: list[Stored] = []
        if last < first:
            return commits
        async with self._bus.ledger.follow(first) as feed:
            async for stored in feed:
                commits.append(stored)
                if stored.seq == last:
                    break
        return commits

    # Trimming

    async def _trim(self, to: int, fleet: Fleet) -> None:
        """Archive up to and with `to`, then remove it from the stream."""
        if self._archive is None or not self._may_trim:
            return
        archive = Archive(self._archive, fleet.ledger)
        while (kept := archive.last) < to:
            commits = await self._commits(kept + 1, min(to, kept + SEGMENT))
            await asyncio.to_thread(archive.write, commits)
        try:
            await self._bus.ledger.purge_to(to + 1)
        except BusDenied as error:
            self._may_trim = False
            self._log.warning("ledger.trim_denied", why=str(error))
            return
        self._log.info("ledger.trimmed", to=to)
