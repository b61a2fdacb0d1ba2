"""A small cell whose commits are told to a chronicle."""

from dataclasses import dataclass, field
from typing import Any

from rackwright.core.fold import Folding
from rackwright.core.machine import StatusSeen
from rackwright.gateway.chronicle import Chronicle
from rackwright.gateway.context import Context
from rackwright.gateway.machine import Gateway, State
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.ids import CellName, MessageId, NodeId, RackId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.policy import Policy
from rackwright.wire.signals import NodeStatus, WorkerStatus
from rackwright.wire.versions import FOLD_VERSION
from tests.support.fleets import LEDGER, Cell, hardware, rack_spec


@dataclass(slots=True, kw_only=True)
class Storied(Cell):
    """As Cell, and what happened is remembered."""

    chronicle: Chronicle = field(default_factory=Chronicle)
    state: State = field(default_factory=State)

    def add(self, *entries: Entry, source: str = "test/0", wishes_to: int | None = None) -> Folding:
        before = self.fleet
        folding = Cell.add(self, *entries, source=source, wishes_to=wishes_to)
        commit: Commit[Any] = Commit(
            id=MessageId(f"c{self.fleet.seq}"),
            type=entries[0].TYPE,
            v=1,
            at=self.fleet.time,
            source=source,
            cell=CellName("cell"),
            ledger=LEDGER,
            entries=entries,
        )
        self.chronicle.take(self.fleet.seq, commit, before, self.fleet, None)
        return folding

    def says(self, node: str, *workers: WorkerStatus) -> None:
        """A node's status as the gateway hears it."""
        known = self.fleet.node(NodeId(node))
        assert known.session is not None
        status = NodeStatus(
            node=known.name,
            rack=RackId(node.partition("-")[0]),
            session=known.session,
            boot=known.boot,
            n=1,
            hardware=hardware(node),
            workers=workers,
        )
        event = StatusSeen(
            now=self.fleet.time, mono=0.0, id=MessageId("m"), at=self.fleet.time, status=status
        )
        self.state, effects = Gateway().handle(self.state, self.fleet, event)
        assert effects == []

    def context(self, later_s: float = 0.0) -> Context:
        """What the gateway would answer from."""
        return Context(
            cell="cell",
            fleet=self.fleet,
            state=self.state,
            past=self.chronicle,
            now=self.fleet.time + later_s,
        )


def storied(racks: int = 2, nodes: int = 18, policy: Policy | None = None) -> Storied:
    """Racks r0, r1, ... all joined and fit; the chronicle begins with the ledger."""
    made = Storied(sound=False)
    made.add(LedgerCreated(ledger=LEDGER, fold_version=FOLD_VERSION, policy=policy or Policy()))
    made.define(*(rack_spec(f"r{number}", nodes) for number in range(racks)))
    made.sound = True
    return made
