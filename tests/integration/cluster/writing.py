"""One writer at a ledger of three copies, and what became of what it was told is in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from rackwright.bus.errors import BusAway, BusFull, LedgerGap, RequestFailed, StreamReplaced
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.ports import Appended, Outcome
from rackwright.bus.streams import Kind
from tests.support.network import Lab, Server

PLACED = "rackwright.lab.ledger.job.placed"
PAUSE_S = 0.02  # between two tries while there is no answer
WITHIN_S = 200.0  # an append must be taken by then: a test that hangs says nothing


@dataclass(slots=True)
class Writer:
    """Appends by compare behind `first`, one at a time, and reads what is there, until cancelled.

    A refusal is no proof that something is in, and of a leader without a quorum it is not even one
    that something else is: only what was read counts besides what was acknowledged. `acked`: the
    numbers of appends that the bus has said are in; `times`: when, on the monotonic clock.
    `found`: those that had no answer and were read.
    """

    bus: JetStreamBus
    first: int
    acked: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    read: int = 0
    found: int = 0
    more: asyncio.Event = field(default_factory=asyncio.Event)
    last: str = ""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Until it is cancelled."""
        n = self.first
        while True:
            outcome: Outcome | None = None
            try:
                outcome = await self.bus.ledger.append(PLACED, b"%d" % n, expected=n)
                self.last = f"{n}: {outcome}"
            except BusFull as error:  # so says a server that has no leader, too
                self.last = f"{n}: {error}"
            if outcome == Appended(seq=n + 1):
                self.acked.append(n)
                self.times.append(time.monotonic())
                self.more.set()
                n += 1
            elif self.read > n:
                self.found += 1
                n += 1
            else:
                await asyncio.sleep(PAUSE_S)

    async def follow(self) -> None:
        """Read on, until it is cancelled.

        A server that was cut off may answer with an end of before; a service starts anew then.
        """
        while True:
            with suppress(LedgerGap, StreamReplaced):
                async with self.bus.ledger.follow(self.first + 1) as feed:
                    while True:
                        self.read = max([self.read, *(one.seq for one in await feed.batch())])
            await asyncio.sleep(PAUSE_S)

    def longest_wait(self, since: int) -> float:
        """Seconds between two acknowledgements one after the other, from the one at `since` on."""
        return max(after - before for before, after in pairwise(self.times[since:]))

    async def several(self, count: int) -> None:
        """Until so many more are in. Fails with what is known when that takes too long."""
        until = len(self.acked) + count
        try:
            async with asyncio.timeout(WITHIN_S):
                while len(self.acked) < until:
                    for task in self.tasks:
                        if task.done():
                            task.result()  # what ended it is what went wrong
                    self.more.clear()
                    await self.more.wait()
        except TimeoutError:
            link = f"connected {self.bus.link.connected}, reconnects {self.bus.link.reconnects}"
            known = f"{len(self.acked)} acknowledged of {until}, read to {self.read}"
            pytest.fail(f"{known}; {link}; last append {self.last}")

    async def lost(self) -> int:
        """How many acknowledged appends are not where they were said to be."""
        there: dict[int, bytes] = {}
        async with self.bus.ledger.follow(self.first + 1) as feed, asyncio.timeout(60):
            while self.acked and self.acked[-1] + 1 not in there:
                there |= {one.seq: one.data for one in await feed.batch()}
        return sum(there.get(n + 1) != b"%d" % n for n in self.acked)


async def open_bus(servers: list[Server], identity: str) -> JetStreamBus:
    """A connection to any of these, as the product makes one."""
    urls = tuple(server.url for server in servers)
    options = ConnectOptions(servers=urls, identity=identity)
    return await connect(options, "lab", replicas=3)


async def ready(bus: JetStreamBus) -> None:
    """The servers have elected, and the streams are there."""
    async with asyncio.timeout(60):
        while True:
            try:
                await bus.ensure()
                return
            except (BusAway, RequestFailed):
                await asyncio.sleep(PAUSE_S)


async def leader(lab: Lab, bus: JetStreamBus) -> Server:
    """Whom at least two servers take for the leader of the ledger; one alone may be mistaken."""
    name = bus.specs[Kind.LEDGER].name
    async with asyncio.timeout(120):
        while True:
            said = await asyncio.to_thread(lambda: [one.leader_of(name) for one in lab.servers])
            for found in lab.servers:
                if said.count(found.name) >= 2:
                    return found
            await asyncio.sleep(PAUSE_S)


@asynccontextmanager
async def writing(bus: JetStreamBus) -> AsyncIterator[Writer]:
    """A writer at work; it is at rest afterwards."""
    writer = Writer(bus=bus, first=(await bus.ledger.ends()).last)
    tasks = {asyncio.create_task(writer.run()), asyncio.create_task(writer.follow())}
    for task in tasks:
        task.add_done_callback(lambda _: writer.more.set())
    writer.tasks = tasks
    try:
        await writer.several(20)
        yield writer
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
