"""How the fleet changes by entries about the cell itself."""

from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import put_rack
from rackwright.core.rackhealth import refresh_health
from rackwright.wire.entries.cell import (
    AutomationPaused,
    AutomationResumed,
    BreakerClosed,
    CellUpgraded,
    LedgerCreated,
    LedgerTicked,
    PolicySet,
    SnapshotVerified,
    WishRefused,
)

KEPT_SNAPSHOTS = 8


def ledger_created(fleet: Fleet, entry: LedgerCreated) -> None:
    """The identity of this ledger."""
    fleet.ledger = entry.ledger
    fleet.fold_version = entry.fold_version
    fleet.policy = entry.policy


def cell_upgraded(fleet: Fleet, entry: CellUpgraded) -> None:
    """Rules of that version from here on."""
    fleet.fold_version = entry.fold_version


def ledger_ticked(fleet: Fleet, entry: LedgerTicked) -> None:
    """Time has passed, nothing else."""


def snapshot_verified(fleet: Fleet, entry: SnapshotVerified) -> None:
    """Two copies agree on the fold at that sequence."""
    fleet.verified = (*fleet.verified, (entry.seq, entry.sha256))[-KEPT_SNAPSHOTS:]


def policy_set(fleet: Fleet, entry: PolicySet) -> None:
    """New settings; what racks keep as spares may change with them."""
    fleet.policy = entry.policy
    for number in sorted(fleet.racks):
        before = fleet.racks[number]
        put_rack(fleet, before, refresh_health(before, fleet.policy, fleet.time))


def automation_paused(fleet: Fleet, entry: AutomationPaused) -> None:
    """Stopped until then."""
    fleet.paused = fleet.paused.set(entry.automation, entry.until)


def automation_resumed(fleet: Fleet, entry: AutomationResumed) -> None:
    """Acts again."""
    if entry.automation in fleet.paused:
        fleet.paused = fleet.paused.delete(entry.automation)


def breaker_closed(fleet: Fleet, entry: BreakerClosed) -> None:
    """Nobody counts the culprits so far any more."""
    fleet.culprits = ()
    fleet.closed_by = entry.by
    fleet.closed_at = fleet.time


def wish_refused(fleet: Fleet, entry: WishRefused) -> None:
    """Answered with no; nothing changes."""
