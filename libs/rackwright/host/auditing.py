"""Audits the ledger of a cell that lives: from its first sequence to its present end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rackwright.bus.ports import Bus
from rackwright.core.audit import Audit
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.wire.ids import CellName
from rackwright.wire.ledgered import read_commit

SMALL_CELL = 8  # racks; up to here every commit is followed by a scan of the cell
SCAN_EVERY = 64


def untold(done: int, all_: int) -> None:
    """Nobody wants to know."""


@dataclass(slots=True)
class LedgerAudit:
    """An audit that can be taken further as the ledger grows."""

    audit: Audit = field(default_factory=Audit)
    fleet: Fleet = field(default_factory=Fleet)

    async def catch_up(self, bus: Bus, told: Callable[[int, int], None] = untold) -> None:
        """Fold up to the present end and check every property of what came.

        Raises LedgerTrimmed when what would come next is not there any more, Unreadable,
        InvalidSubject, BusAway.
        """
        ends = await bus.ledger.ends()
        if ends.first > self.fleet.seq + 1:
            raise LedgerTrimmed(ends.first)
        if ends.last <= self.fleet.seq:
            return
        cell = CellName(bus.cell)
        async with bus.ledger.follow(self.fleet.seq + 1) as feed:
            while self.fleet.seq < ends.last:
                for stored in await feed.batch():
                    commit = read_commit(cell, stored.subject, stored.data)
                    folding = fold(self.fleet, stored.seq, stored.at, commit)
                    self.audit.every = 1 if len(self.fleet.racks) <= SMALL_CELL else SCAN_EVERY
                    self.audit.take(self.fleet, commit, folding)
                    self.fleet = folding.fleet
                told(self.fleet.seq, ends.last)
        self.audit.scan(self.fleet)


async def audit_ledger(bus: Bus, told: Callable[[int, int], None] = untold) -> tuple[Audit, Fleet]:
    """Fold the whole ledger and check every property. Calls `told(done, all)` now and then.

    Raises LedgerTrimmed when the beginning is not there any more, Unreadable, BusAway.
    """
    made = LedgerAudit()
    await made.catch_up(bus, told)
    return made.audit, made.fleet


class LedgerTrimmed(Exception):
    """The ledger does not begin at 1 any more: audit the archive and what is left."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the ledger begins at {first}: its beginning was archived")
        self.first = first
