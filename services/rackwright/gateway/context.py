"""What an answer is made from: one fleet, what nodes said, what happened, and the time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from rackwright.core.fleet import Fleet
from rackwright.core.reasons import sentence
from rackwright.gateway.chronicle import Story
from rackwright.gateway.counts import Counts
from rackwright.gateway.machine import State
from rackwright.gateway.views import Line, Why
from rackwright.wire.reasons import Reason


class Past(Protocol):
    """What happened. `complete`: it was read back to `since`, the first sequence there is."""

    @property
    def events(self) -> Sequence[Line]:
        """The newest entries, oldest first."""
        ...

    @property
    def counts(self) -> Counts: ...

    @property
    def complete(self) -> bool: ...

    @property
    def since(self) -> int: ...

    def story(self, key: str) -> Story:
        """What is kept of one story."""
        ...


class Made(TypedDict):
    """The fields that every answer has."""

    cell: str
    ledger: str
    seq: int
    time: float
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`now` is the host's estimate of ledger time. `stopped`: where the fold stopped, and why."""

    cell: str
    fleet: Fleet
    state: State
    past: Past
    now: float
    stopped: tuple[int, str] | None = None

    def made(self) -> Made:
        """What this answer was made from."""
        fleet = self.fleet
        return Made(
            cell=self.cell,
            ledger=fleet.ledger,
            seq=fleet.seq,
            time=fleet.time,
            age_s=round(max(0.0, self.now - fleet.time), 3),
        )


def why(reason: Reason) -> Why:
    """A reason for an answer."""
    return Why(code=reason.code, text=sentence(reason), numbers=reason.numbers)
