"""Small machines for the host's tests: one that says no to every wish, one that ticks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    Acked,
    Effect,
    Event,
    Folded,
    Offer,
    Refused,
    Turn,
    Wished,
    WishSkipped,
)
from rackwright.wire.entries.cell import LedgerTicked, WishRefused
from rackwright.wire.ids import MessageId
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the machine was told, in order, and the wishes it still has to answer."""

    events: tuple[Event, ...] = ()
    open: dict[int, WishRefused] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    last: int = 0


class Refuser:
    """Answers every wish with no."""

    service = "placer"

    def start(self, copy: int) -> Seen:
        return Seen()

    def handle(self, state: Seen, fleet: Fleet, event: Event) -> tuple[Seen, list[Effect]]:
        state = replace(state, events=(*state.events, event)[-4096:])
        match event:
            case Wished():
                answer = WishRefused(
                    kind=event.wish.TYPE,
                    owner=event.owner,
                    subject="",
                    reason=Reason(code="no"),
                    wish=event.seq,
                    cause=event.id,
                )
                opened = {**state.open, event.seq: answer}
                return replace(state, open=opened, last=event.seq), []
            case WishSkipped(seq=seq):
                return replace(state, skipped=state.skipped | {seq}, last=seq), []
            case Turn():
                return self._answer(state, fleet)
            case _:
                return state, []

    def _answer(self, state: Seen, fleet: Fleet) -> tuple[Seen, list[Effect]]:
        left = {
            seq: entry for seq, entry in state.open.items() if not fleet.answered("placer", seq)
        }
        state = replace(state, open=left)
        entries = tuple(left.values())[:MAX_ENTRIES]
        if not entries:
            return state, []
        to = state.last if len(entries) == len(left) else None
        return state, [Offer(entries=entries, wishes_to=to)]


class Waverer(Refuser):
    """Hears wishes and answers none."""

    def _answer(self, state: Seen, fleet: Fleet) -> tuple[Seen, list[Effect]]:
        return state, []


class Apart(Refuser):
    """Answers two wishes in two offers of one turn, and offers again what is refused."""

    def handle(self, state: Seen, fleet: Fleet, event: Event) -> tuple[Seen, list[Effect]]:
        state, effects = super().handle(state, fleet, event)
        return state, [event.offer] if isinstance(event, Refused) else effects

    def _answer(self, state: Seen, fleet: Fleet) -> tuple[Seen, list[Effect]]:
        left = [entry for seq, entry in state.open.items() if not fleet.answered("placer", seq)]
        return state, [Offer(entries=(entry,)) for entry in left] if len(left) == 2 else []


class Anew(Refuser):
    """Answers two wishes in two offers; what is refused is decided anew at its next turn."""

    def _answer(self, state: Seen, fleet: Fleet) -> tuple[Seen, list[Effect]]:
        left = [entry for seq, entry in state.open.items() if not fleet.answered("placer", seq)]
        return state, [Offer(entries=(entry,)) for entry in left] if len(state.open) == 2 else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """How often to tick still, and what came back."""

    left: int
    events: tuple[Event, ...] = ()


class Ticker:
    """Ticks so many times, each after the one before is folded."""

    service = "health-monitor"

    def __init__(self, count: int) -> None:
        self._count = count

    def start(self, copy: int) -> Ticks:
        return Ticks(left=self._count)

    def handle(self, state: Ticks, fleet: Fleet, event: Event) -> tuple[Ticks, list[Effect]]:
        match event:
            case Turn() if state.left > 0:
                entry = LedgerTicked(cause=MessageId(f"tick.{state.left}"))
                return replace(state, left=state.left - 1), [Offer(entries=(entry,), compare=False)]
            case Acked() | Refused() | Folded():
                return replace(state, events=(*state.events, event)), []
            case _:
                return state, []
