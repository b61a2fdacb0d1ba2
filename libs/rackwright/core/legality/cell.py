"""Legality of entries about the cell itself."""

from collections.abc import Callable
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.wire.entries.cell import (
    AutomationPaused,
    AutomationResumed,
    BreakerClosed,
    CellUpgraded,
    LedgerCreated,
)


def _created(fleet: Fleet, entry: LedgerCreated) -> str | None:
    return f"this is ledger {fleet.ledger}" if fleet.ledger else None


def _upgraded(fleet: Fleet, entry: CellUpgraded) -> str | None:
    if entry.fold_version != fleet.fold_version + 1:
        return f"fold version {entry.fold_version} does not follow {fleet.fold_version}"
    return None


def _paused(fleet: Fleet, entry: AutomationPaused) -> str | None:
    return f"a pause until {entry.until} is over" if entry.until <= fleet.time else None


def _resumed(fleet: Fleet, entry: AutomationResumed) -> str | None:
    if entry.automation not in fleet.paused:
        return f"{entry.automation} is not paused"
    return None


def _closed(fleet: Fleet, entry: BreakerClosed) -> str | None:
    return None if fleet.culprits else "no culprits are counted: the breaker is not open"


def _always(fleet: Fleet, entry: Any) -> str | None:
    return None


RULES: dict[str, Callable[[Fleet, Any], str | None]] = {
    "ledger.created": _created,
    "cell.upgraded": _upgraded,
    "ledger.ticked": _always,
    "snapshot.verified": _always,
    "policy.set": _always,
    "automation.paused": _paused,
    "automation.resumed": _resumed,
    "breaker.closed": _closed,
    "wish.refused": _always,
}
