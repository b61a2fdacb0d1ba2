"""Failures by day, windows of them, and what a later stretch of the ledger adds."""

import pytest

from rackwright.core.experience import DAY, HOUR
from rackwright.core.recent import Recent, Spells
from tests.support.fleets import Cell, cell


def followed(made: Cell, recent: Recent) -> None:
    """Show it the last commit."""
    recent.take(made.fleet, made.fleet.touched_racks)


def test_a_node_that_fails_and_comes_back() -> None:
    made, recent = cell(1, nodes=4), Recent()
    recent.begin(made.fleet)
    made.wait(10 * HOUR)
    made.fail("r0-n00")
    followed(made, recent)
    made.wait(2 * HOUR)
    made.join("r0-n00")
    followed(made, recent)
    made.recover("r0-n00")
    followed(made, recent)
    found = recent.reliability(30, made.fleet.time)
    assert found.node_mtbf_days.value == pytest.approx((10 * 4 + 2 * 3) / 24, rel=0.01)
    assert found.node_mttr_hours.value == pytest.approx(2.0, rel=0.01)
    low, value = found.node_mtbf_days.low, found.node_mtbf_days.value
    assert low is not None
    assert value is not None
    assert low < value
    assert (found.rack_mtbf_days.value, found.rack_faults) == (None, 0)


def test_nothing_has_failed() -> None:
    made, recent = cell(1, nodes=4), Recent()
    recent.begin(made.fleet)
    made.wait(DAY)
    found = recent.reliability(30, made.fleet.time)
    assert (found.node_mtbf_days.value, found.node_mtbf_days.high) == (None, None)
    assert found.node_mtbf_days.low == pytest.approx(4 / 3.689, rel=0.01)


def test_days_beyond_the_window_do_not_count() -> None:
    spells = Spells()
    spells.see("a", True, 0.0)
    spells.see("a", False, 10 * DAY)
    spells.see("a", True, 11 * DAY)
    assert spells.window(90, 12 * DAY).faults == 1
    assert spells.window(90, 12 * DAY).up == 11 * DAY
    assert spells.window(30, 60 * DAY).faults == 0
    assert spells.window(30, 60 * DAY).up == 30 * DAY
    assert spells.window(30, 60 * DAY).away == 0.0


def test_a_later_stretch_goes_on_where_the_earlier_ended() -> None:
    old, new = Spells(), Spells()
    old.see("a", True, 0.0)
    new.see("a", True, 2 * DAY)
    new.see("a", False, 3 * DAY)
    old.join(new, 2 * DAY)
    found = old.window(90, 4 * DAY)
    assert (found.up, found.away, found.faults, found.repairs) == (3 * DAY, DAY, 1, 0)
