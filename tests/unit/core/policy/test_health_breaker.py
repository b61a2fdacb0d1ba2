"""When the breaker trips, and when it closes by itself."""

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.policy.breaker import Breaker, breaker, breaker_open, limit_of
from rackwright.wire.policy import Policy

NOW = 10_000.0


def fleet(*ago: float, nodes: int = 2_520, policy: Policy | None = None) -> Fleet:
    """A fleet whose culprits were named so many seconds ago."""
    times = tuple(sorted(NOW - seconds for seconds in ago))
    return Fleet(culprits=times, installed_nodes=nodes, policy=policy or Policy(), time=NOW)


@pytest.mark.parametrize(
    ("nodes", "limit"), [(72, 6), (2_520, 6), (3_000, 6), (3_500, 7), (25_000, 50)]
)
def test_the_limit_grows_with_the_cell_and_has_a_least(nodes: int, limit: int) -> None:
    assert limit_of(fleet(nodes=nodes)) == limit


def test_without_culprits_it_is_closed() -> None:
    assert breaker(fleet(), NOW) == Breaker(open=False, culprits=0, limit=6, closes_at=None)


def test_it_trips_at_the_limit_and_not_below() -> None:
    assert not breaker_open(fleet(0, 1, 2, 3, 4), NOW)
    assert breaker_open(fleet(0, 1, 2, 3, 4, 5), NOW)


def test_culprits_spread_over_more_than_the_window_do_not_trip_it() -> None:
    assert not breaker_open(fleet(0, 60, 120, 180, 240, 300), NOW)
    assert breaker_open(fleet(0, 60, 120, 180, 240, 299), NOW)


def test_it_closes_a_quarter_of_an_hour_after_the_rate_fell() -> None:
    tripped = fleet(0, 1, 2, 3, 4, 5)
    closes = NOW - 5 + 300 + 900
    assert breaker(tripped, NOW) == Breaker(open=True, culprits=6, limit=6, closes_at=closes)
    assert breaker(tripped, closes - 0.1).open
    assert breaker(tripped, closes) == Breaker(open=False, culprits=0, limit=6, closes_at=None)


def test_single_culprits_do_not_keep_it_open() -> None:
    """NVSentinel PR 1852: an open breaker blocked the recovery that would have closed it."""
    still = fleet(0, 1_190, 1_191, 1_192, 1_193, 1_194, 1_195)
    assert breaker_open(still, NOW)
    assert not breaker_open(still, NOW + 6)


def test_it_knows_nothing_of_the_future() -> None:
    assert not breaker_open(fleet(0, 1, 2, 3, 4, 5), NOW - 1)


def test_its_settings_are_the_cells() -> None:
    policy = Policy(breaker_min=2, breaker_window_s=10, breaker_close_s=5)
    assert breaker_open(fleet(0, 9, nodes=72, policy=policy), NOW)
    assert not breaker_open(fleet(0, 10, nodes=72, policy=policy), NOW)
