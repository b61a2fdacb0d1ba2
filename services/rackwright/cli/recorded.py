"""Audits a ledger wherever it lies: in a living cell, in an archive, or partly in each."""

from dataclasses import dataclass, field
from pathlib import Path

from rackwright.bus.ports import Bus, Stored
from rackwright.core.audit import Audit
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding
from rackwright.host.archived import read_archive
from rackwright.host.auditing import SCAN_EVERY, SMALL_CELL
from rackwright.host.ledgers import Progress, living, step
from rackwright.wire.entries.node import NodeFailed
from rackwright.wire.ids import NodeId
from rackwright.wire.message import Commit, Entry


@dataclass(slots=True)
class Record:
    """The audit of a ledger, fed with its messages in order.

    `shortest_s`: the shortest time between a suspicion and the fenced failure it led to, in ledger
    time; None: no node was fenced.
    """

    audit: Audit = field(default_factory=Audit)
    fleet: Fleet = field(default_factory=Fleet)
    fenced: int = 0
    shortest_s: float | None = None

    def take(self, stored: Stored) -> None:
        """One message. Raises CannotRead."""
        read = step(self.fleet, stored)
        before, commit, folding = read.before, read.commit, read.folding
        small = len(before.racks) <= SMALL_CELL
        self.audit.every = 1 if small else SCAN_EVERY
        self.audit.take(before, commit, folding)
        self._leases(before, commit, folding)
        self.fleet = folding.fleet

    def _leases(self, before: Fleet, commit: Commit[Entry], folding: Folding) -> None:
        """How long each lease was given before its node was declared dead."""
        if folding.void:
            return
        for entry in commit.entries:
            if isinstance(entry, NodeFailed) and entry.fenced:
                self.fenced += 1
                waited = folding.fleet.time - _suspected_at(before, entry.node)
                if self.shortest_s is None or waited < self.shortest_s:
                    self.shortest_s = waited

    def end(self) -> None:
        """Nothing more comes: look at the whole cell once more."""
        self.audit.scan(self.fleet)


def _suspected_at(fleet: Fleet, node: NodeId) -> float:
    return fleet.node(node).suspected_at


def audit_archive(path: Path) -> Record:
    """What an archive holds. Raises ArchiveBroken, CannotRead, OSError."""
    record = Record()
    for stored in read_archive(path):
        record.take(stored)
    record.end()
    return record


async def audit_cell(bus: Bus, archive: Path | None, told: Progress) -> Record:
    """The ledger of a living cell up to its present end, and before it what was archived.

    Raises LedgerTrimmed where the beginning is missing, and what the bus and the archive raise.
    """
    record = Record()
    async for stored in living(bus, archive, told):
        record.take(stored)
    record.end()
    return record
