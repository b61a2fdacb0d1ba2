"""A ledger as a tree: each entry that was ever appended, and the fleet that is folded from it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.invariants import check
from rackwright.core.racks import Node
from rackwright.wire.ids import CellName, JobId, MessageId, NodeId, WorkerId
from rackwright.wire.jobs import OnLostLease
from rackwright.wire.message import Commit, Entry
from tests.simulation.fencing.sizes import Size
from tests.support.fleets import EPOCH, LEDGER, cell, node_name

BAD, GOOD = node_name("r0", 0), node_name("r0", 1)
JOB = JobId("j")
ROOT = 0


class Ledger:
    """Positions are numbers; `ROOT` is a cell of two nodes with a worker on the bad one."""

    def __init__(self, size: Size) -> None:
        made = cell(racks=1, nodes=2, policy=size.policy)
        lost = OnLostLease.RUN if size.leaseless else OnLostLease.STOP
        made.sit("j", "r0", [0], grace_s=0.0, on_lost_lease=lost)
        self.fleets: list[Fleet] = [made.fleet]
        self.parents: list[int] = [ROOT]
        self.types: list[str] = ["ledger.created"]
        self.counts: list[Counter[str]] = [Counter()]
        self.chains: list[tuple[int, ...]] = [(ROOT,)]
        self._children: dict[tuple[int, str], int] = {}

    def node(self, at: int, name: NodeId = BAD) -> Node:
        """A node as the fleet has it there."""
        return self.fleets[at].node(name)

    def append(self, at: int, entry: Entry) -> int:
        """Where the ledger is with this entry behind `at`; a void one changes nothing."""
        key = (at, repr(entry))
        found = self._children.get(key)
        if found is None:
            self._children[key] = found = self._append(at, entry)
        return found

    def _append(self, at: int, entry: Entry) -> int:
        fleet = self.fleets[at]
        commit: Commit[Any] = Commit(
            id=MessageId(f"c{fleet.seq + 1}"),
            type=entry.TYPE,
            v=1,
            at=EPOCH,
            source="model/0",
            cell=CellName("cell"),
            ledger=LEDGER,
            prev=fleet.last_id,
            entries=(entry,),
        )
        folding = fold(fleet, fleet.seq + 1, EPOCH, commit)
        if folding.void:
            return at
        check(folding.fleet)
        self.fleets.append(folding.fleet)
        self.parents.append(at)
        self.types.append(entry.TYPE)
        self.counts.append(self.counts[at] + Counter({entry.TYPE: 1}))
        self.chains.append((*self.chains[at], len(self.fleets) - 1))
        return len(self.fleets) - 1

    def moves_lease(self, at: int) -> bool:
        """Did the last entry there change which session of the bad node may be echoed?"""
        before, after = self.node(self.parents[at]), self.node(at)
        return (before.session, before.suspected) != (after.session, after.suspected)

    def is_over(self, at: int, worker: WorkerId) -> bool:
        """Has this worker ended, by the ledger?"""
        fleet = self.fleets[at]
        if worker in fleet.leaving:
            return False
        job = fleet.jobs.get(JOB)
        if job is None or job.worker(0) != worker:
            return True
        return any(wound.rank == 0 and wound.ended for wound in job.wounds)
