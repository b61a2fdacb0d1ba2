"""What an answer is made from: one fleet, what nodes said, what happened, and the time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from rackwright.core.fleet import Fleet
from rackwright.core.policy.breaker import breaker
from rackwright.core.reasons import sentence
from rackwright.gateway.chronicle import Story
from rackwright.gateway.counts import Counts
from rackwright.gateway.machine import State
from rackwright.gateway.roster import Present
from rackwright.gateway.views import Line, Why
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Reason
from rackwright.wire.versions import FOLD_VERSION


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
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`now` is the host's estimate of ledger time. `stopped`: where the fold stopped, and why.

    `present`: the copies of services that answer. `away`: this gateway does not reach the bus.
    """

    cell: str
    fleet: Fleet
    state: State
    past: Past
    now: float
    stopped: tuple[int, str] | None = None
    present: tuple[Present, ...] = ()
    away: bool = False

    def made(self) -> Made:
        """What this answer was made from."""
        fleet = self.fleet
        age_s = max(0.0, self.now - fleet.time)
        missing = [present.missing for present in self.present if present.missing]
        if self.away:
            missing.append(f"the gateway does not reach the bus: this is of {age_s:.0f} s ago")
        return Made(
            cell=self.cell,
            ledger=fleet.ledger,
            seq=fleet.seq,
            time=fleet.time,
            age_s=round(age_s, 3),
            notices=(*missing, *notices(fleet, self.now)),
        )


def notices(fleet: Fleet, now: float) -> tuple[str, ...]:
    """What whoever looks at any part of the cell should know first."""
    told = [
        sentence(Reason(code=_paused(automation), numbers=_left(automation, until, now)))
        for automation, until in sorted(fleet.paused.items())
        if until > now
    ]
    state = breaker(fleet, now)
    if state.open and state.closes_at is not None:
        numbers: dict[str, int | float | str] = {
            "culprits": state.culprits,
            "limit": state.limit,
            "for_s": round(state.closes_at - now, 1),
        }
        told.append(sentence(Reason(code="breaker-open", numbers=numbers)))
    if fleet.fold_version < FOLD_VERSION:
        known = {"version": fleet.fold_version, "known": FOLD_VERSION}
        told.append(sentence(Reason(code="upgrade.waits", numbers={**known})))
    return tuple(told)


def _paused(automation: Automation) -> str:
    return "read-only" if automation is Automation.ALL else "paused"


def _left(automation: Automation, until: float, now: float) -> dict[str, int | float | str]:
    return {"automation": automation.value, "for_s": round(until - now, 1)}


def why(reason: Reason) -> Why:
    """A reason for an answer."""
    return Why(code=reason.code, text=sentence(reason), numbers=reason.numbers)
