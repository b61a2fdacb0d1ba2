"""What somebody else's commit has overtaken is offered again as it is, where nothing has changed
that it was decided with: the same is kept as if each decision were judged anew."""

import random
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.fold import refuses
from rackwright.core.machine import Offer, Refused, Turn
from rackwright.spare_manager import refused
from rackwright.spare_manager.machine import SpareManager
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.ids import Owner
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash, drain

RACKS = 8
CALM = Policy(breaker_min=100, rack_event_nodes=100)
MACHINE = SpareManager()


def wounded(policy: Policy = CALM) -> Cell:
    """A job in each of eight racks, six of them wounded, one of them in two slices; one rack is
    free."""
    made = cell(RACKS + 2, policy=policy)
    for number in range(RACKS - 1):
        made.sit(f"j{number}", f"r{number}", range(16), retry_budget=1)
    made.spread("wide", [("r7", range(16)), ("r8", range(16))])
    for number in range(4):
        made.unfit(f"r{number}-n03")
    crash(made, "j4", 5)
    drain(made, "r5-n01")
    return made


def decided(made: Cell) -> tuple[tuple[Entry, ...], ...]:
    """What it offers now."""
    turn = Turn(now=made.fleet.time, mono=10.0)
    effects = MACHINE.handle(MACHINE.start(0), made.fleet, turn)[1]
    return tuple(one.entries for one in effects if isinstance(one, Offer))


def small(made: Cell) -> None:
    made.sit("new", "r9", [17])


def spare_taken(made: Cell) -> None:
    made.sit("new", "r0", [16, 17])


def spare_lost(made: Cell) -> None:
    made.suspect("r1-n16")


def second_fault(made: Cell) -> None:
    made.unfit("r2-n04")


def far_fault(made: Cell) -> None:
    made.unfit("r9-n00")


def ended(made: Cell) -> None:
    made.finish("j3")


def both_slices(made: Cell) -> None:
    made.unfit("r7-n02")
    made.unfit("r8-n02")


def breaker_opens(made: Cell) -> None:
    made.add(PolicySet(policy=replace(CALM, breaker_min=2), by=Owner("op")))


COMES_BETWEEN: tuple[Callable[[Cell], None], ...] = (
    small,
    spare_taken,
    spare_lost,
    second_fault,
    far_fault,
    ended,
    both_slices,
    breaker_opens,
)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_kept_as_if_all_were_judged_anew(seed: int) -> None:
    rng = random.Random(seed)
    made = wounded()
    if rng.random() < 0.3:
        both_slices(made)
    before, offered = made.fleet, decided(made)
    came = rng.sample(COMES_BETWEEN, rng.randrange(1, 4))
    print(seed, [one.__name__ for one in came])
    for one in came:
        if one is not both_slices or not made.job("wide").wounds:
            one(made)
    for entries in offered:
        kept = refused.still_holding(before, made.fleet, entries, made.fleet.time)
        assert kept == refused.still_holding(None, made.fleet, entries, made.fleet.time)
        if kept:
            assert refuses(made.fleet, made.fleet.time, made.commit(*kept)) is None


def judged_anew(made: Cell, came: Callable[[Cell], None]) -> list[str]:
    """The jobs about which a refusal makes it think, after this came between."""
    state, effects = MACHINE.handle(
        MACHINE.start(0), made.fleet, Turn(now=made.fleet.time, mono=10.0)
    )
    came(made)
    thought: list[str] = []

    def holds(fleet: Fleet, entry: Entry, now: float) -> bool:
        thought.append(entry.job)  # type: ignore[attr-defined]
        return False

    with patch.object(refused, "holds", holds):
        for one in effects:
            if isinstance(one, Offer):
                event = Refused(now=made.fleet.time, mono=10.0, offer=one)
                MACHINE.handle(state, made.fleet, event)
    return thought


@pytest.mark.parametrize(
    ("came", "jobs"),
    [
        (small, []),
        (far_fault, []),
        (spare_taken, ["j0"]),
        (spare_lost, ["j1"]),
        (second_fault, ["j2"]),
        (ended, []),  # dropped: there is nothing to think about
    ],
)
def test_only_what_has_changed_is_thought_about(
    came: Callable[[Cell], None], jobs: list[str]
) -> None:
    assert judged_anew(wounded(), came) == jobs


def test_everything_is_when_the_ground_has_changed() -> None:
    assert len(judged_anew(wounded(), breaker_opens)) == 6
