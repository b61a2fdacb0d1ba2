"""What ledger time is now."""

from __future__ import annotations

from rackwright.host.clock import DRIFT, LedgerClock


def clock(wall: float = 1000.0, mono: float = 10.0) -> LedgerClock:
    return LedgerClock(mono=lambda: mono, wall=lambda: wall)


def test_before_any_commit_the_wall_clock_serves() -> None:
    assert clock().now(15.0, 0.0) == 1005.0


def test_it_is_never_behind_the_fold() -> None:
    assert clock().now(15.0, 2000.0) == 2000.0


def test_a_commit_corrects_a_wrong_wall_clock_either_way() -> None:
    for wall in (0.0, 90_000.0):
        one = clock(wall)
        one.hear(5000.0, 20.0)
        assert one.now(21.0, 5000.0) == 5001.0


def test_a_late_commit_does_not_set_it_back() -> None:
    one = clock()
    one.hear(5000.0, 20.0)
    one.hear(5001.0, 25.0)
    assert 5005.0 - 6 * DRIFT < one.now(25.0, 5001.0) <= 5005.0


def test_while_ledger_time_is_slowed_down_it_is_followed_and_not_run_ahead_of() -> None:
    one = clock()
    one.hear(5000.0, 20.0)
    one.hear(5001.0, 25.0, slow=True)
    assert one.now(25.5, 5001.0) == 5001.5
