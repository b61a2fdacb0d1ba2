"""Writes values into the buckets by compare, never an older one over a newer (protocol P4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from rackwright.bus.errors import BusAway, BusFull
from rackwright.bus.ports import Appended, Bus, Projection, Refused
from rackwright.core.machine import Project
from rackwright.host.commits import Author
from rackwright.host.crew import Crew
from rackwright.host.keybook import KINDS, RETRY_S, Key, KeyBook, There, Wanted
from rackwright.host.metrics import Metrics
from rackwright.wire.codec import Unreadable, decode
from rackwright.wire.ids import LedgerId

WRITERS = 8


class Projector:
    """The hands of a key book: its reads and writes, some at once.

    `wake` is called whenever one is written.
    """

    def __init__(
        self,
        bus: Bus,
        author: Author,
        crew: Crew,
        metrics: Metrics,
        *,
        now: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._buckets: dict[str, Projection] = {"assign": bus.assign, "jobs": bus.jobs}
        self._author = author
        self._crew = crew
        self._metrics = metrics
        self._now = now
        self._wake = wake
        self._log = structlog.get_logger()
        self._book = KeyBook(author.ordinal)
        self._room = asyncio.Semaphore(WRITERS)

    @property
    def idle(self) -> bool:
        """Is everything written?"""
        return self._book.idle

    def project(self, effect: Project, ledger: LedgerId, seq: int) -> None:
        """Write this soon."""
        for key in self._book.want(effect, ledger, seq):
            self._begin(key)

    def look_again(self) -> None:
        """The bus was away and may have lost what it keeps in memory: write what is missing."""
        for key in self._book.look_again():
            self._begin(key)

    def _begin(self, key: Key) -> None:
        self._crew.start(self._write(key), f"project {'/'.join(key)}")

    async def _write(self, key: Key) -> None:
        """Write until the newest wish is in, or a newer value is."""
        if self._book.patience_s:
            await asyncio.sleep(self._book.patience_s)
        left: Wanted | None = None
        while (wanted := self._book.newest(key, left)) is not None:
            left = None
            async with self._room:
                try:
                    done = await self._attempt(key, wanted)
                except (BusAway, BusFull) as error:
                    self._log.warning("project.retried", key="/".join(key), why=str(error))
                    await asyncio.sleep(RETRY_S)
                    done = False
            if not done:
                self._book.doubt(key)
                left = wanted
        self._wake()

    async def _attempt(self, key: Key, wanted: Wanted) -> bool:
        """Write, or see that it need not be; False: somebody wrote meanwhile, look again."""
        there = self._book.known(key, wanted)
        if there is None:
            there = await self._read(key)
            self._book.found(wanted, there)
        if there.settles(wanted):
            self._book.settled(key)
            return True
        return await self._put(key, wanted, there)

    async def _read(self, key: Key) -> There:
        bucket, name = key
        value = await self._buckets[bucket].get(name)
        if value is None:
            return There()
        try:
            body: Any = decode(KINDS[bucket], value.data).body
        except Unreadable as error:
            # Nobody obeys what nobody can read.
            self._log.error("project.unreadable", key="/".join(key), why=str(error))
            return There(revision=value.revision)
        return There(revision=value.revision, ledger=body.ledger, seq=body.seq, value=body)

    async def _put(self, key: Key, wanted: Wanted, there: There) -> bool:
        """One attempt; False if it must be tried again after another look."""
        bucket, name = key
        port = self._buckets[bucket]
        if wanted.value is not None:
            data = self._author.value(wanted.value, self._now())
            outcome = await port.put(name, data, revision=there.revision)
        else:
            outcome = await port.delete(name, revision=there.revision)
        match outcome:
            case Appended(seq=revision):
                self._book.wrote(key, wanted, revision)
                self._metrics.projected.labels(bucket).inc()
                return True
            case Refused():
                return False
            case _:
                raise BusAway(f"write {bucket}/{name}", f"{outcome.reason}: {outcome.detail}")
