"""Which copy acts: work that lies unanswered goes to the next copy after a while (protocol P3).

Safety never depends on it. Copy k takes only work that it has wanted to answer for k times `step`
seconds; when it had to, its betters are silent and its patience is nought until their next entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

from rackwright.core.machine import Offer
from rackwright.wire.message import Entry

STEP_S = 0.25
Key: TypeAlias = tuple[object, ...]

# What makes two decisions of one type answers to the same work.
NAMES = ("job", "membership", "rank", "worker", "node", "session", "rack", "plan", "wish", "seq")


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    fields = kind.__dataclass_fields__
    return tuple(name for name in NAMES if name in fields)


def key_of(entry: Entry) -> Key:
    """The work that an entry answers."""
    kind: Any = type(entry)  # a class is hashable, whatever its metaclass promises
    return (kind.TYPE, *(getattr(entry, name) for name in _names_of(kind)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ripe:
    """What may be offered now, and the `mono` time at which more may be (None: nothing waits)."""

    offers: tuple[Offer, ...]
    again: float | None = None


@dataclass(slots=True, kw_only=True)
class Patience:
    """The patience of copy `ordinal` of a service; `step` in seconds, 0 for none."""

    service: str
    ordinal: int
    step: float = STEP_S
    betters_silent: bool = False
    _since: dict[Key, float] = field(default_factory=dict)

    @property
    def wait(self) -> float:
        """How long work is left to the betters, in seconds."""
        return 0.0 if self.betters_silent else self.ordinal * self.step

    def heard(self, source: str) -> None:
        """Somebody's commit was folded."""
        service, _, ordinal = source.partition("/")
        if service == self.service and ordinal.isdigit() and int(ordinal) < self.ordinal:
            self.betters_silent = False

    def sift(self, offers: Sequence[Offer], mono: float) -> Ripe:
        """Hold back what is still the betters' to answer.

        `offers` is all that this copy would answer now: other work is answered and forgotten.
        """
        keys = {key_of(entry) for offer in offers for entry in offer.entries}
        self._since = {key: self._since.get(key, mono) for key in keys}
        # One sum everywhere: a difference rounded otherwise would ask to be woken in the past.
        wait = self.wait
        ripe_at = {key: since + wait for key, since in self._since.items()}
        if all(at <= mono for at in ripe_at.values()):
            if keys and self.wait > 0:
                self.betters_silent = True
            return Ripe(offers=tuple(offers))
        ripe = [kept for offer in offers if (kept := _keep(offer, ripe_at, mono)) is not None]
        again = min(at for at in ripe_at.values() if at > mono)
        if ripe:
            # They left this to us: what we would answer next is ours at once.
            self.betters_silent = True
            again = mono
        return Ripe(offers=tuple(ripe), again=again)


def _keep(offer: Offer, ripe_at: dict[Key, float], mono: float) -> Offer | None:
    entries = tuple(entry for entry in offer.entries if ripe_at[key_of(entry)] <= mono)
    if not entries:
        return None
    # Something is held back, so not every wish is answered.
    return replace(offer, entries=entries, wishes_to=None)
