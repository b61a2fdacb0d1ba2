"""Reads a recorded ledger commit by commit: from an archive, from a living cell, or from both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright.bus.ports import Bus, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding, StoppedAt, fold
from rackwright.host.archived import read_archive
from rackwright.host.auditing import LedgerTrimmed
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import CellName
from rackwright.wire.ledgered import read_commit
from rackwright.wire.message import Commit, Entry
from rackwright.wire.subjects import InvalidSubject

Progress = Callable[[int, int], None]


class CannotRead(Exception):
    """A commit that cannot be folded: where, and why."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"the ledger cannot be read at {seq}: {why}")
        self.seq = seq
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit folded; `before` is the fleet it met."""

    before: Fleet
    commit: Commit[Entry]
    folding: Folding


def step(fleet: Fleet, stored: Stored) -> Step:
    """Fold the next commit of a record. Raises CannotRead."""
    if stored.seq != fleet.seq + 1:
        raise CannotRead(stored.seq, f"{fleet.seq + 1} had to come")
    try:
        cell = CellName(stored.subject.partition(".")[2].partition(".")[0])
        commit = read_commit(cell, stored.subject, stored.data)
        folding = fold(fleet, stored.seq, stored.at, commit)
    except (Unreadable, InvalidSubject, StoppedAt) as error:
        raise CannotRead(stored.seq, str(error)) from error
    return Step(before=fleet, commit=commit, folding=folding)


async def living(bus: Bus, archive: Path | None, told: Progress) -> AsyncIterator[Stored]:
    """The ledger of a cell up to its present end, and before it what was archived.

    Raises LedgerTrimmed where the beginning is missing, and what the bus and the archive raise.
    """
    ends = await bus.ledger.ends()
    seq = 0
    if ends.first > 1:
        if archive is None:
            raise LedgerTrimmed(ends.first)
        for stored in read_archive(archive):
            yield stored
            seq = stored.seq
        if seq + 1 < ends.first:
            raise LedgerTrimmed(ends.first)
    async with bus.ledger.follow(seq + 1) as feed:
        while seq < ends.last:
            for stored in await feed.batch():
                yield stored
                seq = stored.seq
            told(seq, ends.last)
