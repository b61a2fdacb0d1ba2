"""What ledger time is now."""

from __future__ import annotations

from rackwright.host.clock import WINDOW_S, LedgerClock


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
    assert one.now(25.0, 5001.0) == 5005.0


def test_nor_does_the_first_commit_after_a_long_silence() -> None:
    one = clock()
    one.hear(5000.0, 20.0)
    one.hear(5300.0, 320.5)
    assert one.now(320.5, 5300.0) == 5300.5
    one.hear(5301.0, 321.0)
    assert one.now(321.0, 5301.0) == 5301.0


def test_a_server_clock_that_was_set_back_while_nobody_wrote_is_followed_soon() -> None:
    """No commit was stored before its time, so the fold has nothing to slew."""
    one = clock()
    one.hear(5000.0, 20.0)
    late = [5005.0 + one_s for one_s in range(int(2 * WINDOW_S) + 2)]
    seen = []
    for at in late:
        one.hear(at, at - 4970.0)
        seen.append(round(one.now(at - 4970.0, at) - at))
    assert seen[0] == 10
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 0


def test_while_ledger_time_is_slowed_down_it_is_followed_and_not_run_ahead_of() -> None:
    one = clock()
    one.hear(5000.0, 20.0)
    one.hear(5001.0, 25.0, slow=True)
    assert one.now(25.5, 5001.0) == 5001.5
