"""Writes values into the buckets by compare, never an older one over a newer (protocol P4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from rackwright.bus.errors import BusAway, BusFull
from rackwright.bus.ports import Appended, Bus, Projection, Refused
from rackwright.core.machine import Project
from rackwright.host.commits import Author
from rackwright.host.crew import Crew
from rackwright.host.metrics import Metrics
from rackwright.host.patience import STEP_S
from rackwright.wire.codec import Unreadable, decode
from rackwright.wire.ids import LedgerId
from rackwright.wire.message import Body
from rackwright.wire.values import JobValue, RackAssignments

WRITERS = 8
RETRY_S = 0.25
KINDS: dict[str, type[Body]] = {"assign": RackAssignments, "jobs": JobValue}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The newest value of a key; `seq` is the ledger sequence it was made at. None: delete."""

    value: Body | None
    ledger: LedgerId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """What the bucket holds: the key's revision (0: nothing), and the fold it was made from."""

    revision: int = 0
    ledger: LedgerId = LedgerId("")
    seq: int = -1
    value: Body | None = None

    def answers(self, wanted: Wanted) -> bool:
        """Is it newer than what is wanted, or the same?"""
        if self.ledger != wanted.ledger:
            return False
        return self.seq > wanted.seq or (self.seq == wanted.seq and self.value == wanted.value)


class Projector:
    """Writes what the machine wants projected; of several wishes for a key only the newest.

    `wake` is called whenever one is written.

    A copy that has betters waits before it writes and then mostly finds their newer value; when it
    does not, they are silent and it waits no longer until it meets their values again.
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
        self._wanted: dict[tuple[str, str], Wanted] = {}
        self._busy: set[tuple[str, str]] = set()
        self._known: dict[tuple[str, str], There] = {}
        self._room = asyncio.Semaphore(WRITERS)
        self._betters_silent = False

    @property
    def idle(self) -> bool:
        """Is everything written?"""
        return not self._busy

    def project(self, effect: Project, ledger: LedgerId, seq: int) -> None:
        """Write this soon."""
        key = (effect.bucket, effect.key)
        made_at: int = getattr(effect.value, "seq", seq)
        self._wanted[key] = Wanted(value=effect.value, ledger=ledger, seq=made_at)
        self._begin(key)

    def look_again(self) -> None:
        """The bus was away and may have lost what it keeps in memory: write what is missing."""
        known, self._known = self._known, {}
        for key, there in known.items():
            if key in self._wanted:
                continue
            self._wanted[key] = Wanted(value=there.value, ledger=there.ledger, seq=there.seq)
            self._begin(key)

    def _begin(self, key: tuple[str, str]) -> None:
        if key not in self._busy:
            self._busy.add(key)
            self._crew.start(self._write(key), f"project {'/'.join(key)}")

    async def _write(self, key: tuple[str, str]) -> None:
        try:
            if not self._betters_silent and self._author.ordinal > 0:
                await asyncio.sleep(self._author.ordinal * STEP_S)
            while (wanted := self._wanted.pop(key, None)) is not None:
                async with self._room:
                    await self._settle(key, wanted)
        finally:
            self._busy.discard(key)
            self._wake()

    async def _settle(self, key: tuple[str, str], wanted: Wanted) -> None:
        """Write until it is in, or a newer one is."""
        # Most keys are new, as most jobs are: the first copy looks only when one is there already.
        looks = self._author.ordinal > 0
        while True:
            newest = self._wanted.pop(key, wanted)
            if not looks and newest.value is not None:
                self._known.setdefault(key, There())
            try:
                if await self._attempt(key, newest):
                    return
            except (BusAway, BusFull) as error:
                self._log.warning("project.retried", key="/".join(key), why=str(error))
                await asyncio.sleep(RETRY_S)
            self._known.pop(key, None)
            wanted, looks = newest, True

    async def _attempt(self, key: tuple[str, str], wanted: Wanted) -> bool:
        """Write, or see that it need not be; False: somebody wrote meanwhile, look again."""
        there = self._known.get(key)
        if there is None:
            there = await self._read(key)
            if there.answers(wanted):
                self._betters_silent = False
        if there.answers(wanted):
            return True
        if not await self._put(key, wanted, there):
            return False
        self._betters_silent = True
        return True

    async def _read(self, key: tuple[str, str]) -> There:
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

    async def _put(self, key: tuple[str, str], wanted: Wanted, there: There) -> bool:
        """One attempt; False if it must be tried again after another look."""
        bucket, name = key
        port = self._buckets[bucket]
        if wanted.value is not None:
            outcome = await port.put(
                name, self._author.said(wanted.value, self._now()), revision=there.revision
            )
        elif there.revision > 0:
            outcome = await port.delete(name, revision=there.revision)
        else:
            return True
        match outcome:
            case Appended(seq=revision):
                self._remember(key, wanted, revision)
                self._metrics.projected.labels(bucket).inc()
                return True
            case Refused():
                return False
            case _:
                raise BusAway(f"write {bucket}/{name}", f"{outcome.reason}: {outcome.detail}")

    def _remember(self, key: tuple[str, str], wanted: Wanted, revision: int) -> None:
        if wanted.value is None:
            self._known.pop(key, None)
        else:
            self._known[key] = There(
                revision=revision, ledger=wanted.ledger, seq=wanted.seq, value=wanted.value
            )
