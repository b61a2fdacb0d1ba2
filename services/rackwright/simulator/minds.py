"""The machines of a simulated cell, one copy of each, stepped on the one fold of its ledger.

A live process steps a machine by `host.mind`: it reads, folds, waits for acknowledgements and for
its betters. Here a commit is in when it is offered, nobody can come between and there is only one
copy of each, so what is left of it is: hear, and have a turn. Turns are coalesced as a live host
coalesces them: all that is heard at one moment of virtual time comes before the turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Event, Folded, Machine, Offer, Refused, Turn, WakeAt
from rackwright.host.flight import legal_part
from rackwright.host.hearing import Hears
from rackwright.host.mind import ILLEGAL_RETRY_S
from rackwright.host.steps import Step
from rackwright.sim.engine import Engine, Timer
from rackwright.sim.ledger import SimLedger
from rackwright.sim.process import MOST_HURRIES, STEP_TAKES_S, NeverRests
from rackwright.sim.sending import PlainAuthor
from rackwright.wire.entries.cell import LedgerTicked


@dataclass(slots=True, kw_only=True)
class Member:
    """One machine: its state, whether anything has happened since its turn, and when it asked to be
    woken. A paused one hears everything and has no turn."""

    machine: Machine[Any]
    hears: Hears
    author: PlainAuthor
    state: Any
    changed: bool = True
    paused: bool = False
    wake_at: float = inf
    turns: int = 0


@dataclass(slots=True, kw_only=True)
class Minds:
    """All members, in the order of their turns. Listens to the ledger from its making on."""

    engine: Engine
    ledger: SimLedger
    members: list[Member] = field(default_factory=list)
    _timer: Timer | None = None
    _hurries: int = 0

    def __post_init__(self) -> None:
        self.ledger.listeners[self] = self._folded

    def __hash__(self) -> int:
        return id(self)

    def join(self, machine: Machine[Any], hears: Hears, token: str) -> Member:
        """One more machine; it knows nothing but the fleet."""
        author = PlainAuthor(self.ledger.cell, machine.service, 0, token)
        member = Member(machine=machine, hears=hears, author=author, state=machine.start(0))
        self.members.append(member)
        self._wake(self.engine.now)
        return member

    def hear_wish(self, event: Event) -> None:
        """Somebody wishes for something."""
        for member in self.members:
            if member.hears.wishes:
                self._tell(member, event)
                member.changed = True
        self._wake(self.engine.now)

    def hear_status(self, event: Event) -> None:
        """A node says what its workers do."""
        for member in self.members:
            if member.hears.status:
                self._tell(member, event)
                member.changed = True
        self._wake(self.engine.now)

    def pause(self, member: Member) -> None:
        """It has no turn from now on."""
        member.paused = True

    def resume(self, member: Member) -> None:
        """It has turns again, the first one now."""
        member.paused = False
        member.changed = True
        self._wake(self.engine.now)

    # What happens

    def _folded(self, step: Step) -> None:
        now = self.engine.now
        commit, folding = step.commit, step.folding
        event = Folded(
            now=now,
            mono=now,
            seq=step.stored.seq,
            source=commit.source,
            type=commit.type,
            entries=commit.entries,
            void=folding.void,
            why=folding.why,
        )
        for member in self.members:
            self._tell(member, event)
        if commit.type == LedgerTicked.TYPE and not folding.fleet.touched_racks:
            return  # only time has passed: who waits for that has asked to be woken
        for member in self.members:
            member.changed = True
        self._wake(now)

    def _tell(self, member: Member, event: Event) -> None:
        member.state, effects = member.machine.handle(member.state, self.ledger.fleet, event)
        for effect in effects:
            if isinstance(effect, WakeAt):
                member.wake_at = min(member.wake_at, effect.mono)

    # Turns

    def _wake(self, at: float) -> None:
        """Have turns at that time, or sooner if that was asked for."""
        timer = self._timer
        if timer is not None and timer.call is not None:
            if timer.at <= at:
                return
            timer.cancel()
        self._timer = self.engine.at(at, self._run)

    def _run(self) -> None:
        """Turns until nobody has anything left to do at this moment."""
        now = self.engine.now
        for member in self.members:
            if member.wake_at <= now:
                member.changed = True
        while waiting := [one for one in self.members if one.changed and not one.paused]:
            for member in waiting:
                while member.changed:
                    self._turn(member, now)
        if self._timer is not None:
            self._timer.cancel()
        self._rest(now)

    def _rest(self, now: float) -> None:
        """Be woken when something is due; a step takes a microsecond, as no live one takes less."""
        due = min((one.wake_at for one in self.members if not one.paused), default=inf)
        if due == inf:
            return
        self._hurries = self._hurries + 1 if due <= now + STEP_TAKES_S else 0
        if self._hurries > MOST_HURRIES:
            raise NeverRests(f"the machines at {now}: turn after turn, for nothing")
        self._wake(max(now + STEP_TAKES_S, due))

    def _turn(self, member: Member, now: float) -> None:
        if member.wake_at <= now:
            member.wake_at = inf
        member.changed = False
        member.turns += 1
        offers: list[Offer] = []
        turn = Turn(now=now, mono=now)
        member.state, effects = member.machine.handle(member.state, self.ledger.fleet, turn)
        for effect in effects:
            if isinstance(effect, Offer):
                offers.append(effect)
            elif isinstance(effect, WakeAt):
                member.wake_at = min(member.wake_at, effect.mono)
        for offer in offers:
            self._offer(member, offer, now)

    def _offer(self, member: Member, offer: Offer, now: float) -> None:
        """Commit it, or as much of it as the fold takes; the rest comes back."""
        fleet: Fleet = self.ledger.fleet
        sealed = member.author.seal(fleet, offer, now)
        if self.ledger.append_if_legal(sealed) is not None:
            return
        legal, refused = legal_part(member.author, fleet, offer, now)
        for lost in refused:
            event = Refused(now=now, mono=now, offer=lost.offer)
            member.state, _ = member.machine.handle(member.state, fleet, event)
            # What the fold would not take is taken no sooner by repeating it at once.
            member.wake_at = min(member.wake_at, now + ILLEGAL_RETRY_S)
        if legal is not None:
            self._offer(member, legal, now)
