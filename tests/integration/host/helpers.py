"""Wishing, waiting and reading back, for the host's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

from rackwright.bus.ports import (
    NO_HEADERS,
    Bus,
    Cause,
    Feed,
    Headers,
    Ledger,
    Outcome,
    Stored,
    Unsettled,
)
from rackwright.host.runner import Runner
from rackwright.wire.codec import decode_commit, encode
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.ids import CellName, JobId, Owner
from rackwright.wire.message import Commit, Entry
from rackwright.wire.subjects import Subjects, parse_entry
from rackwright.wire.wishes import Cancel

S = TypeVar("S")
PATIENCE_S = 60.0


async def until(met: Callable[[], bool]) -> None:
    """Let others work until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if met():
                return
            await asyncio.sleep(0.005)


class FaultyLedger:
    """A real ledger whose next answers are lost, before or after the append was stored."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.lose_before = 0
        self.lose_after = 0
        self.gaps = 0
        self.before_next: Callable[[], Awaitable[None]] | None = None
        self.after_next: Callable[[], Awaitable[None]] | None = None

    async def append(
        self, subject: str, data: bytes, *, expected: int | None, headers: Headers = NO_HEADERS
    ) -> Outcome:
        if self.before_next is not None:
            before, self.before_next = self.before_next, None
            await before()
        lost = Unsettled(reason=Cause.NO_ANSWER, detail="lost by the test")
        if self.lose_before:
            self.lose_before -= 1
            return lost
        outcome = await self._ledger.append(subject, data, expected=expected, headers=headers)
        if self.after_next is not None:
            after, self.after_next = self.after_next, None
            await after()
        if self.lose_after:
            self.lose_after -= 1
            return lost
        return outcome

    def follow(self, start: int) -> Feed[Stored]:
        if start == 1 and self.gaps:
            self.gaps -= 1
            return self._ledger.follow(10_000)  # which is not there: a gap
        return self._ledger.follow(start)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class FaultyBus:
    """A real bus with a faulty ledger."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.ledger = FaultyLedger(bus.ledger)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    @property
    def port(self) -> Bus:
        """This, as the type checker may see it."""
        return cast(Bus, self)


async def wish(bus: Bus, name: str, *, owner: str = "ann", **more: object) -> int:
    """Publish a wish; its sequence."""
    body = Cancel(job=JobId(name), **more)  # type: ignore[arg-type]
    subject = Subjects(CellName(bus.cell)).wish(Owner(owner), body.TYPE)
    return await bus.wishes.publish(subject, encode(body))


async def ledger(bus: Bus) -> list[Commit[Entry]]:
    """All commits, in order."""
    end = (await bus.ledger.ends()).last
    commits = []
    if end == 0:
        return []
    async with bus.ledger.follow(1) as feed:
        async for stored in feed:
            type_name = parse_entry(CellName(bus.cell), stored.subject)
            commits.append(decode_commit(type_name, stored.data))
            if stored.seq == end:
                break
    return commits


async def answers(bus: Bus) -> list[int]:
    """Sequences of the wishes that were answered, in the order of their answers."""
    return [
        entry.wish
        for commit in await ledger(bus)
        for entry in commit.entries
        if isinstance(entry, WishRefused) and entry.wish is not None
    ]


@asynccontextmanager
async def running(runner: Runner[S]) -> AsyncIterator[asyncio.Task[None]]:
    """The runner lives in a task of its own until the end of the block."""
    task = asyncio.create_task(runner.run())
    try:
        yield task
    finally:
        runner.stop()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
