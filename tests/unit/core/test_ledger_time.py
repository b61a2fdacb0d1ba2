"""Ledger time when the clock of the server is wrong, or is set right."""

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.machine import Offer
from rackwright.host.commits import Author
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.ids import CellName
from tests.support.fleets import cell


def ticked(fleet: Fleet, at: float) -> Fleet:
    """One commit more, stored at `at`."""
    author = Author(CellName("main"), "health-monitor", 0, f"t{fleet.seq}")
    sealed = author.seal(fleet, Offer(entries=(LedgerTicked(),), compare=False), at)
    return fold(fleet, fleet.seq + 1, at, sealed.commit).fleet


def after(fleet: Fleet, *stored: float) -> list[float]:
    """Ledger time after commits stored at these times, all as seconds from now."""
    begun = fleet.time
    fleet = ticked(fleet, begun)
    seen = []
    for at in stored:
        fleet = ticked(fleet, begun + at)
        seen.append(fleet.time - begun)
    return seen


@pytest.mark.parametrize(
    ("version", "passed"),
    [(1, [0.0, 0.0, 0.0, 0.0, 20.0]), (2, [0.0, 5.0, 5.0, 7.5, 20.0])],
)
def test_behind_a_clock_that_was_set_back_it_goes_on_at_half_the_pace(
    version: int, passed: list[float]
) -> None:
    fleet = evolve(cell(1, 4).fleet, fold_version=version)
    # Set back by 15 s; one commit is as late as the one before it.
    assert after(fleet, -15.0, -5.0, -5.0, 0.0, 20.0) == passed


def test_the_two_meet_and_go_on_together() -> None:
    fleet = cell(1, 4).fleet
    begun = fleet.time
    for second in range(-30, 60):
        fleet = ticked(fleet, begun + second)
        if second > 30:
            assert (fleet.ahead, fleet.time) == (0.0, begun + second)


def test_a_commit_takes_time_on_by_half_a_minute_at_most_while_it_is_ahead() -> None:
    assert after(cell(1, 4).fleet, -500.0, -300.0) == [0.0, 30.0]


def test_a_clock_that_was_ahead_for_a_moment_costs_no_more_than_its_minute() -> None:
    assert after(cell(1, 4).fleet, 3600.0, 1.0, 2.0) == [60.0, 60.0, 60.5]
