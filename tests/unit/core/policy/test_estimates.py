"""Intervals of rates agree with printed tables, and what a fleet's history teaches."""

import pytest

from rackwright.core.experience import Clock
from rackwright.core.policy.estimates import mean_count, poisson_below, time_away, time_between


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.390), (100, 81.364, 121.627)],
)
def test_exact_poisson_intervals(count: int, low: float, high: float) -> None:
    """Garwood's limits as tabulated (Pearson and Hartley, Biometrika Tables, table 40)."""
    found = mean_count(count)
    assert found[0] == pytest.approx(low, abs=6e-4)
    assert found[1] == pytest.approx(high, abs=6e-4)


def test_the_distribution_itself() -> None:
    assert poisson_below(0, 1.0) == pytest.approx(0.36788, abs=1e-5)
    assert poisson_below(2, 1.0) == pytest.approx(0.91970, abs=1e-5)
    assert (poisson_below(-1, 1.0), poisson_below(3, 0.0)) == (0.0, 1.0)


def test_no_failure_bounds_from_below_only() -> None:
    found = time_between(369.0, 0)
    assert (found.value, found.high) == (None, None)
    assert found.low == pytest.approx(100.0, abs=0.1)


def test_ten_failures_have_a_value_inside_their_interval() -> None:
    found = time_between(4900.0, 10)
    assert found.value == 490.0
    assert found.low is not None
    assert found.high is not None
    assert found.low < 490.0 < found.high


def test_an_absence_that_never_ended_teaches_nothing() -> None:
    found = time_away(5.0, 0)
    assert (found.value, found.low, found.high) == (None, None, None)


def test_a_clock_counts_up_away_faults_and_repairs() -> None:
    clock = Clock()
    clock.see("a", True, 0.0)
    clock.see("a", False, 10.0)
    clock.see("a", True, 13.0)
    clock.see("b", True, 13.0)
    clock.pause("b", 14.0)
    clock.end(20.0)
    assert (clock.up, clock.away, clock.faults, clock.repairs) == (18.0, 3.0, 1, 1)
