"""Rules of the second tier left out one at a time; each patches the code that holds the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rackwright.agent import alone as words
from rackwright.agent.alone import Alone
from rackwright.agent.hold import NS, Hold
from rackwright.core.policy import witnesses
from rackwright.core.policy.witnesses import Cover
from rackwright.health_monitor import promises, silence
from tests.simulation.fencing.alone import NOW, AloneSize

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]

PAIR = AloneSize(name="two witnesses, cut off", alone=8, cut=True)
LONE = AloneSize(name="one witness", witnesses=1, alone=8)
LATE = AloneSize(
    name="one witness, late heartbeats", witnesses=1, lease=6, alone=12, late=5, cut=True
)
CRASH = AloneSize(name="one witness, crashes", witnesses=1, alone=8, crashes=1)


def witnesses_asked(patch: Patch) -> None:
    """The monitor waits for W and asks nobody."""
    patch.setattr(silence, "carried_by_nobody", lambda *_: True)


def majority(patch: Patch) -> None:
    """Half of the witnesses carry a lease on."""
    patch.setattr(words, "majority", lambda many: many // 2)


def half(patch: Patch) -> None:
    """Fewer than half of the witnesses confirm."""
    patch.setattr(witnesses, "half", lambda many: (many + 1) // 2 - 1)


def question(patch: Patch) -> None:
    """The lease runs from when the words are used and not from the question."""
    until = Alone.until

    def later(self: Alone, hold: Hold) -> int:
        if not until(self, hold) or self.terms is None:
            return 0
        most = hold.echoed_ns + int(self.terms.alone_s * NS)
        return min(int((NOW + self.terms.step_s) * NS), most)

    patch.setattr(Alone, "until", later)


def one_step(patch: Patch) -> None:
    """One word is good for all of the second tier, as protocol F15 has it."""
    until = Alone.until

    def sticky(self: Alone, hold: Hold) -> int:
        if not until(self, hold) or self.terms is None:
            return 0
        return hold.echoed_ns + int(self.terms.alone_s * NS)

    patch.setattr(Alone, "until", sticky)


def an_end(patch: Patch) -> None:
    """The second tier has no end."""
    until = Alone.until

    def endless(self: Alone, hold: Hold) -> int:
        return until(self, replace(hold, echoed_ns=NOW * NS))

    patch.setattr(Alone, "until", endless)


def promise(patch: Patch) -> None:
    """A witness says that the bus is away although it has promised not to yet."""
    patch.setattr(Hold, "away", lambda self, _: self.echoed_ns > 0)


def first_echo(patch: Patch) -> None:
    """An agent that has just begun says that the bus is away: it has had no echo."""
    patch.setattr(Hold, "away", lambda self, now_ns: now_ns > self.steady_ns)


def dated(patch: Patch) -> None:
    """A promise counts from when its heartbeat is heard, however long that was under way."""
    covered = witnesses.covered

    def at_once(cover: Any, mono: float, _: float, steady_s: float, policy: Any) -> Cover:
        return covered(cover, mono, mono, steady_s, policy)

    patch.setattr(promises, "covered", at_once)


def no_gap(patch: Patch) -> None:
    """What a witness said between two promises is overlooked."""
    covered = witnesses.covered

    def gapless(cover: Cover | None, mono: float, *more: Any) -> Cover:
        fresh = covered(None, mono, *more)
        return fresh if cover is None else Cover(since=cover.since, until=fresh.until)

    patch.setattr(promises, "covered", gapless)


def whole_step(patch: Patch) -> None:
    """Any moment without a majority is enough, though a word from before it counts for a step."""
    confirmed = witnesses.confirmed

    def short(terms: Any, *more: Any) -> bool:
        return confirmed(replace(terms, step_s=0.001), *more)

    patch.setattr(silence, "confirmed", short)


def longest_wait(patch: Patch) -> None:
    """Nobody waits for W2: without promises W is enough."""
    patch.setattr(silence, "declare_alone_after", lambda policy, _: policy.fence_after_s)


MUTANTS: tuple[tuple[Mutant, AloneSize], ...] = (
    (witnesses_asked, LONE),
    (majority, PAIR),
    (half, PAIR),
    (question, LONE),
    (one_step, LONE),
    (an_end, LONE),
    (promise, LONE),
    (first_echo, CRASH),
    (dated, LATE),
    (no_gap, LONE),
    (whole_step, LONE),
    (longest_wait, LONE),
)
