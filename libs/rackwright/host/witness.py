"""Compares this process's own fold with what two copies of the dispatcher agreed on (P1.8).

It finds every way in which two processes can fold differently: a bug, a rule, bad memory. A
release that keeps something else of a fleet has other bytes of it: with those nothing is compared.
"""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from rackwright.core.fleet import Fleet
from rackwright.core.snapshot import dump, shape
from rackwright.host.clock import Clock
from rackwright.host.errors import Stopped
from rackwright.host.snapshots import digest
from rackwright.host.steps import Step
from rackwright.wire.entries.cell import SnapshotVerified

KEPT = 2048  # fleets share almost everything, so that many cost some ten megabytes
EVERY_S = 600.0  # writing down a large fleet takes this process a tenth of a second


class Witness:
    """Looks at the fleet of one agreement now and then. It remembers fleets only while it waits for
    the next one: each is of some thirty objects that the collector of garbage looks through."""

    def __init__(self, mono: Clock) -> None:
        self._mono = mono
        self._log = structlog.get_logger()
        self._fleets: deque[Fleet] = deque(maxlen=KEPT)
        self._keeps = False
        self._next = mono()

    def folded(self, step: Step) -> tuple[Fleet, SnapshotVerified] | None:
        """Remember if need be; returns what is to be compared now, if something is."""
        if self._keeps:
            self._fleets.append(step.folding.fleet)
        if step.commit.type != SnapshotVerified.TYPE or step.folding.void:
            return None
        entry = step.commit.entries[-1]
        if not isinstance(entry, SnapshotVerified) or self._mono() < self._next:
            return None
        place = entry.seq - self._fleets[0].seq if self._keeps else -1
        if not 0 <= place < len(self._fleets):
            self._keeps = True  # the next one will be found
            return None
        fleet = self._fleets[place]
        self._next = self._mono() + EVERY_S
        self._keeps = False
        self._fleets.clear()
        if entry.shape != shape():
            self._log.info("fold.not_compared", seq=entry.seq, shape=entry.shape)
            return None
        return fleet, entry

    async def compare(self, fleet: Fleet, entry: SnapshotVerified) -> None:
        """Raises Stopped if this process folded to another state than was agreed on."""
        mine = digest(await asyncio.to_thread(dump, fleet))
        if mine != entry.sha256:
            why = f"this fold has diverged: {mine} at {entry.seq}, verified is {entry.sha256}"
            raise Stopped(entry.seq, why)
        self._log.info("fold.verified", seq=entry.seq)
