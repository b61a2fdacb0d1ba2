"""Which entries are offered next: one type a commit, the most urgent first, none for ever last.

Everything that waits is looked at anew against the fleet; what the fleet has answered is dropped.
So a refused or void offer needs no memory: what still holds is simply offered again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.legality import illegal
from rackwright.core.machine import Effect, Event, Note, Offer, WakeAt
from rackwright.core.policy.leases import tick_after
from rackwright.core.policy.precedence import recovery_first
from rackwright.health_monitor import blame, checks, evacuation, orders, returns, silence
from rackwright.health_monitor.state import State
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.policy import Automation


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entry: where its work waits, and how to make the entry of one piece of it.

    `make` returns None for what needs no entry any more. `paused`: a pause of health stops it.
    `waits`: it can wait while a failure has not been answered; an entry without compare that came
    between a fault and its swap would make the swap be refused and offered again. `fact`: nobody
    decides anything by it, so a cell that is read only has it too.
    """

    name: str
    waiting: Callable[[State], dict[Any, Any]]
    make: Callable[[State, Fleet, Any, Event], Entry | None]
    paused: bool = True
    waits: bool = False
    fact: bool = False


KINDS = (
    Kind(name="failed", waiting=lambda s: s.condemned, make=silence.failed),
    Kind(name="unfit", waiting=lambda s: s.blamed, make=blame.out),
    Kind(name="suspected", waiting=lambda s: s.suspects, make=silence.suspected),
    Kind(
        name="cleared", waiting=lambda s: s.returned, make=silence.cleared, paused=False, fact=True
    ),
    Kind(name="joined", waiting=lambda s: s.joins, make=returns.joined, paused=False, fact=True),
    Kind(name="isolated", waiting=lambda s: s.isolate, make=silence.isolated),
    Kind(name="degraded", waiting=lambda s: s.racks, make=blame.degraded),
    Kind(
        name="cleaning",
        waiting=lambda s: s.departed,
        make=returns.cleaned,
        paused=False,
        fact=True,
        waits=True,
    ),
    Kind(name="returned", waiting=lambda s: s.returning, make=returns.returning, waits=True),
    Kind(name="moved", waiting=lambda s: s.moved, make=returns.moved),
    Kind(name="checked", waiting=lambda s: s.answers, make=checks.answered, waits=True),
    Kind(name="checks", waiting=lambda s: s.checks, make=checks.asked, waits=True),
    Kind(name="restored", waiting=lambda s: s.restores, make=returns.restored, waits=True),
    Kind(
        name="repairs",
        waiting=lambda s: s.requests,
        make=returns.requested,
        paused=False,
        waits=True,
    ),
)
ORDERS = "orders"


def next_offer(state: State, fleet: Fleet, event: Event) -> list[Effect]:
    """The next commit to offer, if any, with notes on what had to be dropped."""
    told: list[Effect] = []
    patience = recovery_first(fleet, event.now)
    for _ in range(2):
        offer = _most_urgent(state, fleet, event, told, urgent_only=patience is not None)
        if offer is not None:
            return [*told, offer]
        if not state.served:
            break
        state.served.clear()
    if patience is not None:
        return [*told, WakeAt(mono=event.mono + patience)]
    tick = _tick(state, fleet, event)
    return told if tick is None else [*told, tick]


def _most_urgent(
    state: State, fleet: Fleet, event: Event, told: list[Effect], *, urgent_only: bool
) -> Offer | None:
    """The most urgent kind that has not had its turn in this round."""
    paused = fleet.is_paused(Automation.HEALTH, event.now)
    read_only = fleet.is_paused(Automation.ALL, event.now)
    for kind in KINDS:
        if kind.name in state.served or (paused and kind.paused) or not kind.waiting(state):
            continue
        if (urgent_only and kind.waits) or (read_only and not kind.fact):
            continue
        entries = _entries(kind, state, fleet, event, told)
        if entries:
            state.served.add(kind.name)
            return Offer(entries=entries, compare=False, wishes_to=orders.answered_to(state, fleet))
    if state.wishes and ORDERS not in state.served and not urgent_only:
        offer = orders.answers(state, fleet, event)
        if offer is not None:
            state.served.add(ORDERS)
            return offer
    return None if urgent_only or paused else evacuation.evacuate(state, fleet, event)


def _entries(
    kind: Kind, state: State, fleet: Fleet, event: Event, told: list[Effect]
) -> tuple[Entry, ...]:
    """Up to a commit's worth of entries, each about something else."""
    waiting = kind.waiting(state)
    entries: list[Entry] = []
    done: list[Any] = []
    for key in waiting:
        entry = kind.make(state, fleet, key, event)
        if entry is None:
            done.append(key)
            continue
        problem = illegal(fleet, entry)
        if problem is not None:
            done.append(key)
            fields = {"type": entry.TYPE, "about": str(key), "why": problem}
            told.append(Note(level="warning", event="entry.dropped", fields=fields))
            continue
        entries.append(entry)
        if len(entries) == MAX_ENTRIES:
            break
    for key in done:
        waiting.pop(key, None)
    return tuple(entries)


def _tick(state: State, fleet: Fleet, event: Event) -> Offer | None:
    """A tick, if nothing else has proved for a while that this copy reaches a quorum."""
    proved = state.freshness.proved
    if proved is not None and event.mono < proved + tick_after(fleet.policy):
        return None
    return Offer(
        entries=(LedgerTicked(),), compare=False, wishes_to=orders.answered_to(state, fleet)
    )
