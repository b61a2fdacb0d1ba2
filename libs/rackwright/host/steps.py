"""The fold of one ledger, commit by commit: what a reader accepts as the next one (protocol P1).

A reader accepts exactly the next sequence, of this ledger and, right after a snapshot, with the
right predecessor. What does not fit throws the fold away; what cannot be read stops it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.bus.ports import Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding, StoppedAt, fold
from rackwright.host.errors import ForeignLedger, Misread, Stopped
from rackwright.wire.codec import Unreadable, decode_commit
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.ledgered import STRAY, read_commit
from rackwright.wire.message import Commit, Entry
from rackwright.wire.quick import quick
from rackwright.wire.subjects import InvalidSubject, parse_entry


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit that was folded; `stored` carries its headers and the server's time."""

    stored: Stored
    commit: Commit[Entry]
    folding: Folding


class Steps:
    """Folds `fleet` on. `doubted`: snapshots that turned out to be of another history."""

    def __init__(self, cell: CellName) -> None:
        self.fleet = Fleet()
        self.doubted: set[int] = set()
        self._cell = cell
        self._types: dict[str, str] = {}
        self._ledger: LedgerId | None = None
        self._snapshot: int | None = None

    def begin(self, fleet: Fleet, snapshot: int | None) -> None:
        """Start anew, from nothing or from the snapshot at that sequence. Raises ForeignLedger."""
        self.fleet = fleet
        self._snapshot = snapshot
        if fleet.ledger:
            self._check_identity(fleet.seq)

    def decode(self, stored: Stored) -> Commit[Entry]:
        """The commit in a message. Raises Unreadable, InvalidSubject."""
        try:
            return decode_commit(self._type(stored), stored.data)
        except (Unreadable, InvalidSubject):
            return read_commit(self._cell, stored.subject, stored.data)

    def fold(self, stored: Stored) -> Step:
        """Fold one message. Raises Misread, ForeignLedger, Stopped."""
        expected = self.fleet.seq + 1
        if stored.seq != expected:
            raise Misread(stored.seq, f"{expected} had to come")
        try:
            commit = self.decode(stored)
        except (Unreadable, InvalidSubject) as error:
            raise Stopped(stored.seq, f"{stored.subject}: {error}") from error
        if self._snapshot is not None:
            self._check_predecessor(stored.seq, commit)
        try:
            folding = fold(self.fleet, stored.seq, stored.at, commit)
        except StoppedAt as error:
            raise Stopped(error.seq, error.problem) from error
        self.fleet = folding.fleet
        if stored.seq == 1:
            self._check_identity(1)
        return Step(stored=stored, commit=commit, folding=folding)

    def _type(self, stored: Stored) -> str:
        known = self._types.get(stored.subject)
        if known is None:
            known = parse_entry(self._cell, stored.subject)
            if len(self._types) < 1024:
                self._types[stored.subject] = known
        return known

    def _check_identity(self, seq: int) -> None:
        """A commit made for another ledger is merely void; a start that shows another is not."""
        if self._ledger is None:
            self._ledger = self.fleet.ledger or None
        elif self.fleet.ledger != self._ledger:
            raise ForeignLedger(self._ledger, self.fleet.ledger, seq)

    def _check_predecessor(self, seq: int, commit: Commit[Entry]) -> None:
        """The first compared commit after a snapshot proves that both are of one history."""
        if commit.type == STRAY:
            return
        if commit.ledger != self.fleet.ledger:
            why = f"made for ledger {commit.ledger}, the snapshot is of {self.fleet.ledger}"
        elif commit.prev is None:
            return
        elif commit.prev != self.fleet.last_id:
            why = f"made after {commit.prev}, the snapshot led to {self.fleet.last_id}"
        else:
            self._snapshot = None
            return
        self.doubted.add(self._snapshot or 0)
        raise Misread(seq, why)
