"""Hears the heartbeats of those shards that are this copy's share of the cell (protocol P3.3), and
of single nodes besides: witnesses of a suspected node may be in another copy's racks."""

from __future__ import annotations

import asyncio
from functools import cache

from rackwright.bus.errors import BusAway
from rackwright.bus.ports import Bus, Subscription
from rackwright.host.crew import Crew
from rackwright.host.metrics import Metrics
from rackwright.host.reading import read_heartbeat
from rackwright.host.sources import Arrivals
from rackwright.wire.ids import CellName, NodeId, RackId
from rackwright.wire.subjects import SHARDS, Subjects

RETRY_S = 0.5
BATCH = 512


@cache
def share(present: int, ordinal: int) -> tuple[str, ...]:
    """The shards of copy `ordinal` of `present`; a single copy hears all through one wildcard."""
    if present <= 1:
        return ("*",)
    return tuple(f"{shard:02d}" for shard in range(SHARDS) if shard % present == ordinal)


class Heartbeats:
    """Keeps the subscriptions in step with the share. New ones open before old ones close."""

    def __init__(self, bus: Bus, source: Arrivals, crew: Crew, metrics: Metrics) -> None:
        self._core = bus.core
        self._cell = CellName(bus.cell)
        self._subjects = Subjects(self._cell)
        self._source = source
        self._crew = crew
        self._dropped = metrics.slow_consumer.labels("heartbeats")
        self._shares: tuple[str, ...] = ()
        self._single: tuple[str, ...] = ()
        self._changed = asyncio.Event()
        self._open: dict[str, Subscription] = {}
        self._task: asyncio.Task[None] | None = None

    def cover(self, present: int, ordinal: int) -> None:
        """From now on hear this copy's share."""
        self._shares = tuple(map(self._subjects.heartbeats, share(present, ordinal)))
        self._changed.set()
        if self._task is None:
            self._task = self._crew.start(self._keep(), "heartbeats")

    def attend(self, nodes: tuple[tuple[RackId, NodeId], ...]) -> None:
        """Hear these nodes besides, and no others any more."""
        self._single = tuple(self._subjects.heartbeat(rack, node) for rack, node in nodes)
        self._changed.set()

    async def _keep(self) -> None:
        try:
            while True:
                self._changed.clear()
                if await self._subscribe():
                    await self._changed.wait()
                else:
                    await asyncio.sleep(RETRY_S)
        finally:
            for subscription in self._open.values():
                await subscription.aclose()

    async def _subscribe(self) -> bool:
        """Open what is wanted, close what is not; False if the bus is away."""
        wanted = (*self._shares, *self._single)
        for subject in wanted:
            if subject not in self._open:
                try:
                    opened = await self._core.subscribe(subject)
                except BusAway:
                    return False
                self._open[subject] = opened
                self._crew.start(self._hear(opened), f"heartbeats {subject}")
        for subject in [subject for subject in self._open if subject not in wanted]:
            await self._open.pop(subject).aclose()
        return True

    async def _hear(self, subscription: Subscription) -> None:
        dropped = 0
        while messages := await subscription.batch(BATCH):
            beats = [read_heartbeat(self._cell, message) for message in messages]
            await self._source.extend([beat for beat in beats if beat is not None])
            if subscription.dropped > dropped:
                self._dropped.inc(subscription.dropped - dropped)
                dropped = subscription.dropped
