"""How a command speaks to the cell: publishes a wish and waits for the entry that answers it."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rackwright.bus.jetstream import connect
from rackwright.bus.ports import Bus, Subscription
from rackwright.cli.credentials import Context
from rackwright.wire.codec import Unreadable, decode_commit, encode
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobRejected
from rackwright.wire.ids import CellName, MessageId, Owner
from rackwright.wire.message import Entry, Envelope
from rackwright.wire.subjects import ROOT, Subjects
from rackwright.wire.wishes import Wish


class Unanswered(Exception):
    """Nobody answered in time; the wish is stored and will be answered when a placer runs."""

    def __init__(self, wish: str, patience_s: float) -> None:
        super().__init__(f"{wish} is stored, but was not answered within {patience_s:g} s")
        self.wish = wish
        self.patience_s = patience_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The entry that answers a wish. `granted` False: it holds the reason why not."""

    type: str
    entry: Entry

    @property
    def granted(self) -> bool:
        """Was it done?"""
        return not isinstance(self.entry, WishRefused | JobRejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The cell, as one user reaches it."""

    bus: Bus
    user: Owner

    @property
    def subjects(self) -> Subjects:
        """Its subjects."""
        return Subjects(CellName(self.bus.cell))

    async def wish(self, wish: Wish, *, patience_s: float = 10.0) -> Answer:
        """Publish a wish and wait for its answer. Raises Unanswered and what the bus raises."""
        name = MessageId(f"{self.user}-{secrets.token_hex(8)}")
        message: Envelope[Any] = Envelope(
            id=name,
            type=wish.TYPE,
            v=wish.VERSION,
            at=time.time(),
            source=f"cli/{self.user}",
            cell=CellName(self.bus.cell),
            body=wish,
        )
        told = f"{ROOT}.{self.bus.cell}.told.>"
        async with await self.bus.core.subscribe(told) as feed:
            await self.bus.wishes.publish(self.subjects.wish(self.user, wish.TYPE), encode(message))
            try:
                async with asyncio.timeout(patience_s):
                    return await _answer(feed, name)
            except TimeoutError as error:
                raise Unanswered(wish.TYPE, patience_s) from error


async def _answer(feed: Subscription, name: MessageId) -> Answer:
    async for message in feed:
        type_name = ".".join(message.subject.split(".")[3:])
        try:
            commit = decode_commit(type_name, message.data)
        except Unreadable:
            continue
        for entry in commit.entries:
            if entry.cause == name:
                return Answer(type=type_name, entry=entry)
    raise ConnectionError("the subscription has ended")


@asynccontextmanager
async def reach(context: Context) -> AsyncIterator[Cell]:
    """A connection for one command. Raises what the bus raises."""
    bus = await connect(context.connect_options(context.user), context.cell)
    try:
        yield Cell(bus=bus, user=Owner(context.user))
    finally:
        await bus.close()
