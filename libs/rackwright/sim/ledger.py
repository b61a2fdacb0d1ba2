"""The ledger of a simulated cell: compare and append, and one fold that all processes may share.

Every process that keeps up folds the same commits to the same fleet, which the fold tests, the
snapshots and the processes that start from one prove; so it is folded once, and whoever reads gets
the step when the commit reaches it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from rackwright.bus.memory_store import MemoryStore
from rackwright.bus.ports import NO_HEADERS, Appended, Refused, Stored
from rackwright.bus.streams import Kind
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding, fold
from rackwright.core.machine import Offer
from rackwright.host.commits import Author, Sealed
from rackwright.host.steps import Step
from rackwright.sim.engine import Engine
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries.cell import LedgerCreated
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.policy import Policy
from rackwright.wire.versions import FOLD_VERSION

Listener: TypeAlias = Callable[[Step], None]
Observer: TypeAlias = Callable[[Fleet, Step], None]


@dataclass(slots=True, kw_only=True)
class SimLedger:
    """`fleet` is the fold of all of it. With a `store` commits are kept there as bytes and folded
    as they are read back; without one they are folded as they are and kept by nobody.

    `observers` see each commit with the fleet before it, before anybody else hears of it.
    """

    engine: Engine
    cell: CellName
    store: MemoryStore | None = None
    fleet: Fleet = field(default_factory=Fleet)
    observers: list[Observer] = field(default_factory=list)
    listeners: dict[object, Listener] = field(default_factory=dict)

    def create(self, policy: Policy | None = None) -> None:
        """Entry 1, as an administrator writes it."""
        ledger = LedgerId(f"{self.cell}-{self.engine.seed:016x}")
        entry = LedgerCreated(ledger=ledger, fold_version=FOLD_VERSION, policy=policy or Policy())
        author = Author(self.cell, "admin", 0, token="a")
        sealed = author.seal(Fleet(ledger=ledger), Offer(entries=(entry,)), self.engine.now)
        self.append(sealed)

    def append(self, sealed: Sealed) -> Appended | Refused:
        """Take a commit if its compare holds; whether it has an effect, the fold says."""
        stored, refused = self._stored(sealed)
        if stored is None:
            return refused
        commit = sealed.commit
        if self.store is not None:
            commit = decode_commit(commit.type, stored.data)
        before = self.fleet
        self._take(before, stored, commit, fold(before, stored.seq, stored.at, commit))
        return Appended(seq=stored.seq)

    def append_if_legal(self, sealed: Sealed) -> Appended | None:
        """Take a commit decided on the fleet as it is, unless the fold would not have it.

        Saves the trial fold that precedes an append: nobody can come between. Only without a store.
        """
        before = self.fleet
        folding = fold(before, before.seq + 1, self.engine.now, sealed.commit)
        if folding.void:
            return None
        stored = self._bare(sealed)
        self._take(before, stored, sealed.commit, folding)
        return Appended(seq=stored.seq)

    def _stored(self, sealed: Sealed) -> tuple[Stored | None, Refused]:
        if self.store is None:
            refused = Refused(last_seq=self.fleet.seq)
            met = sealed.expected is None or sealed.expected == self.fleet.seq
            return (self._bare(sealed) if met else None), refused
        answer = self.store.append(
            Kind.LEDGER, sealed.subject, sealed.data, expected=sealed.expected
        )
        if isinstance(answer, Refused):
            return None, answer
        stored = self.store.last_on(Kind.LEDGER, sealed.subject)
        return stored, Refused(last_seq=0)

    def _bare(self, sealed: Sealed) -> Stored:
        return Stored(
            seq=self.fleet.seq + 1,
            subject=sealed.subject,
            at=self.engine.now,
            headers=NO_HEADERS,
            data=b"",
        )

    def _take(self, before: Fleet, stored: Stored, commit: Commit[Entry], made: Folding) -> None:
        self.fleet = made.fleet
        step = Step(stored=stored, commit=commit, folding=made)
        for observe in self.observers:
            observe(before, step)
        for listener in list(self.listeners.values()):
            listener(step)
