"""Audits the ledger of a cell that lives: from its first sequence to its present end."""

from __future__ import annotations

from collections.abc import Callable

from rackwright.bus.ports import Bus
from rackwright.core.audit import Audit
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.wire.codec import decode_commit
from rackwright.wire.ids import CellName
from rackwright.wire.subjects import parse_entry

SMALL_CELL = 8  # racks; up to here every commit is followed by a scan of the cell
SCAN_EVERY = 64


async def audit_ledger(
    bus: Bus, told: Callable[[int, int], None] = lambda done, all_: None
) -> tuple[Audit, Fleet]:
    """Fold the whole ledger and check every property. Calls `told(done, all)` now and then.

    Raises LedgerTrimmed when the beginning is not there any more, Unreadable, BusAway.
    """
    ends = await bus.ledger.ends()
    if ends.first != 1:
        raise LedgerTrimmed(ends.first)
    audit, fleet = Audit(), Fleet()
    if ends.last == 0:
        return audit, fleet
    cell = CellName(bus.cell)
    async with bus.ledger.follow(1) as feed:
        while fleet.seq < ends.last:
            for stored in await feed.batch():
                type_name = parse_entry(cell, stored.subject)
                commit = decode_commit(type_name, stored.data)
                folding = fold(fleet, stored.seq, stored.at, commit)
                audit.every = 1 if len(fleet.racks) <= SMALL_CELL else SCAN_EVERY
                audit.take(fleet, commit, folding)
                fleet = folding.fleet
            told(fleet.seq, ends.last)
    audit.scan(fleet)
    return audit, fleet


class LedgerTrimmed(Exception):
    """The ledger does not begin at 1 any more: audit the archive and what is left."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the ledger begins at {first}: its beginning was archived")
        self.first = first
