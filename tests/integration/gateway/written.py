"""A small cell whose commits are put into a real ledger."""

from dataclasses import dataclass, field
from typing import Any

from rackwright.bus.ports import Appended, Bus
from rackwright.core.fold import Folding
from rackwright.wire.codec import encode
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.ids import CellName, MessageId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.policy import Policy
from rackwright.wire.subjects import Subjects
from rackwright.wire.versions import FOLD_VERSION
from tests.integration.bus.harness import CELL
from tests.support.fleets import LEDGER, Cell, rack_spec


@dataclass(slots=True, kw_only=True)
class Written(Cell):
    """As Cell; `commits` have not been written yet."""

    commits: list[Commit[Any]] = field(default_factory=list)

    def add(self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None) -> Folding:
        prev = self.fleet.last_id
        folding = Cell.add(self, *entries, source=source, wishes_to=wishes_to)
        self.commits.append(
            Commit(
                id=MessageId(f"c{self.fleet.seq}"),
                type=entries[0].TYPE,
                v=1,
                at=self.fleet.time,
                source=source,
                cell=CellName(CELL),
                ledger=LEDGER,
                prev=prev,
                entries=entries,
            )
        )
        return folding

    async def write(self, bus: Bus) -> None:
        """Append what was added since."""
        for commit in self.commits:
            await append(bus, commit)
        self.commits.clear()


async def append(bus: Bus, commit: Commit[Any]) -> None:
    """One commit, whatever the fold makes of it."""
    subject = Subjects(CellName(CELL)).entry(commit.type)
    outcome = await bus.ledger.append(subject, encode(commit), expected=None)
    assert isinstance(outcome, Appended)


def written(nodes: int = 4) -> Written:
    """One rack r0, its nodes joined."""
    made = Written(sound=False)
    made.add(LedgerCreated(ledger=LEDGER, fold_version=FOLD_VERSION, policy=Policy()))
    made.define(rack_spec("r0", nodes))
    return made
