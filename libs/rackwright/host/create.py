"""Creates a cell's ledger: its first entry, with the identity it keeps for ever."""

from __future__ import annotations

import asyncio
import secrets
import time

from rackwright.bus.ports import Appended, Bus, Refused
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Offer
from rackwright.host.commits import Author
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.policy import Policy
from rackwright.wire.versions import FOLD_VERSION

RETRY_S = 0.25


async def create_ledger(bus: Bus, policy: Policy | None = None, by: str = "admin") -> bool:
    """Make the empty ledger begin; False if it had begun. Only an administrator does this.

    Repeats an append that was not answered: at most one first entry can be in. Raises BusAway,
    BusDenied, StreamMissing.
    """
    if (await bus.ledger.ends()).last > 0:
        return False
    ledger = LedgerId(f"{bus.cell}-{secrets.token_hex(8)}")
    entry = LedgerCreated(ledger=ledger, fold_version=FOLD_VERSION, policy=policy or Policy())
    author = Author(CellName(bus.cell), by, 0)
    sealed = author.seal(Fleet(ledger=ledger), Offer(entries=(entry,)), time.time())
    while True:
        outcome = await bus.ledger.append(sealed.subject, sealed.data, expected=0)
        match outcome:
            case Appended():
                return True
            case Refused():
                return False
            case _:
                await asyncio.sleep(RETRY_S)
