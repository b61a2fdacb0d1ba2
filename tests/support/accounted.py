"""A small cell whose commits are told to an accumulator over the fold."""

from dataclasses import dataclass, field

from rackwright.core.accounts import Accounts
from rackwright.core.fold import Folding
from rackwright.core.occupancy import GpuState
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.versions import FOLD_VERSION
from tests.support.fleets import LEDGER, Cell, rack_spec


@dataclass(slots=True, kw_only=True)
class Accounted(Cell):
    """As Cell, and every GPU-second is counted."""

    accounts: Accounts = field(default_factory=Accounts)

    def add(self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None) -> Folding:
        before = self.fleet
        folding = Cell.add(self, *entries, source=source, wishes_to=wishes_to)
        self.accounts.take(before, self.fleet)
        return folding

    def wait(self, seconds: float) -> None:
        end = self.fleet.time + seconds
        while self.fleet.time < end:
            before = self.fleet
            Cell.wait(self, min(60.0, end - self.fleet.time))
            self.accounts.take(before, self.fleet)

    def hours(self) -> dict[str, float]:
        """GPU-hours by state, those that are none left out."""
        found = {state.value: s / 3600 for state, s in self.accounts.seconds.items()}
        return {state: round(hours, 6) for state, hours in found.items() if abs(hours) > 1e-9}

    def useful(self) -> float:
        """Useful GPU-hours."""
        return self.accounts.seconds[GpuState.USEFUL] / 3600


def accounted(racks: int = 2, nodes: int = 18, policy: Policy | None = None) -> Accounted:
    """Racks r0, r1, ... all joined and fit; counted from the beginning of the ledger."""
    made = Accounted(sound=False)
    made.add(LedgerCreated(ledger=LEDGER, fold_version=FOLD_VERSION, policy=policy or Policy()))
    made.define(*(rack_spec(f"r{number}", nodes) for number in range(racks)))
    made.sound = True
    return made
