"""What a copy wants its buckets to hold, and what it knows of them: the rules of protocol P4.

No clock and no I/O: the host's projector and the simulation's both act by this book.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.core.machine import Project
from rackwright.host.patience import STEP_S
from rackwright.wire.ids import LedgerId
from rackwright.wire.message import Body
from rackwright.wire.values import JobValue, RackAssignments

RETRY_S = 0.25
KINDS: dict[str, type[Body]] = {"assign": RackAssignments, "jobs": JobValue}

Key = tuple[str, str]
"""A bucket's name and a key in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The newest value of a key; `seq` is the ledger sequence it was made at. None: delete."""

    value: Body | None
    ledger: LedgerId
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """What the bucket holds: the key's revision (0: nothing), and the fold it was made from."""

    revision: int = 0
    ledger: LedgerId = LedgerId("")
    seq: int = -1
    value: Body | None = None

    def answers(self, wanted: Wanted) -> bool:
        """Is it newer than what is wanted, or the same?"""
        if self.ledger != wanted.ledger:
            return False
        return self.seq > wanted.seq or (self.seq == wanted.seq and self.value == wanted.value)

    def settles(self, wanted: Wanted) -> bool:
        """Need nothing be written?"""
        return self.answers(wanted) or (wanted.value is None and self.revision == 0)


class KeyBook:
    """Of several wishes for a key only the newest counts, and one writer is at work for each.

    A copy that has betters waits before it writes and then mostly finds their newer value; when it
    does not, they are silent and it waits no longer until it meets their values again.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._wanted: dict[Key, Wanted] = {}
        self._busy: set[Key] = set()
        self._known: dict[Key, There] = {}
        self._doubted: set[Key] = set()
        self._betters_silent = False

    @property
    def idle(self) -> bool:
        """Is everything written?"""
        return not self._busy

    @property
    def patience_s(self) -> float:
        """How long a writer waits for its betters before it begins."""
        return 0.0 if self._betters_silent else self._ordinal * STEP_S

    def want(self, effect: Project, ledger: LedgerId, seq: int) -> Iterator[Key]:
        """Take a wish; the key that needs a writer, if it has none."""
        key = (effect.bucket, effect.key)
        made_at: int = getattr(effect.value, "seq", seq)
        self._wanted[key] = Wanted(value=effect.value, ledger=ledger, seq=made_at)
        return self._begun(key)

    def look_again(self) -> Iterator[Key]:
        """The bus was away and may have lost what it keeps in memory: all of it is wanted again;
        the keys that need a writer."""
        known, self._known = self._known, {}
        for key, there in known.items():
            if key not in self._wanted:
                self._wanted[key] = Wanted(value=there.value, ledger=there.ledger, seq=there.seq)
                yield from self._begun(key)

    def _begun(self, key: Key) -> Iterator[Key]:
        if key not in self._busy:
            self._busy.add(key)
            yield key

    def newest(self, key: Key, before: Wanted | None = None) -> Wanted | None:
        """What its writer has to write now: the newest wish, else the one `before`.

        None: it is done, and the next wish needs a new writer.
        """
        wanted = self._wanted.pop(key, before)
        if wanted is None:
            self._busy.discard(key)
        return wanted

    def known(self, key: Key, wanted: Wanted) -> There | None:
        """What the bucket holds under this key; None: it must be read.

        Most keys are new, as most jobs are: the first copy looks only when one is there already.
        """
        there = self._known.get(key)
        hopes = self._ordinal == 0 and wanted.value is not None and key not in self._doubted
        return There() if there is None and hopes else there

    def found(self, wanted: Wanted, there: There) -> None:
        """It was read."""
        if there.answers(wanted):
            self._betters_silent = False

    def settled(self, key: Key) -> None:
        """Nothing had to be written."""
        self._doubted.discard(key)

    def wrote(self, key: Key, wanted: Wanted, revision: int) -> None:
        """It is in, at this revision of the key."""
        self._betters_silent = True
        self._doubted.discard(key)
        if wanted.value is None:
            self._known.pop(key, None)
        else:
            self._known[key] = There(
                revision=revision, ledger=wanted.ledger, seq=wanted.seq, value=wanted.value
            )

    def doubt(self, key: Key) -> None:
        """Somebody else wrote, or nobody knows: read before the next attempt."""
        self._known.pop(key, None)
        self._doubted.add(key)
