"""The breaker: too many culprits at once say that the watching is wrong, not the nodes.

A pure function of the fleet, so those who act (spare-manager, placer) ask it at the moment they
act; those who observe go on observing. Open, it holds back what follows from inferred failures (a
signal, silence); confirmed ones heal all the same, or it would block the recovery that closes it.
"""

from bisect import bisect_right
from dataclasses import dataclass

from rackwright.core.fleet import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """`culprits` within the window now, `limit` from which it trips, `closes_at` ledger time."""

    open: bool
    culprits: int
    limit: int
    closes_at: float | None


def limit_of(fleet: Fleet) -> int:
    """Culprits that trip it: at least `breaker_min`, in a large cell a share of its nodes."""
    policy = fleet.policy
    return max(policy.breaker_min, int(policy.breaker_share * fleet.installed_nodes))


def breaker(fleet: Fleet, now: float) -> Breaker:
    """Its state at `now` (ledger time). It closes after `breaker_close_s` below the rate.

    At the limit it trips, not one above: six culprits in five minutes is the case whose chance the
    policy page computes (3e-7 a year for 2,520 healthy nodes).
    """
    policy, times = fleet.policy, fleet.culprits
    limit, window = limit_of(fleet), policy.breaker_window_s
    recent = bisect_right(times, now) - bisect_right(times, now - window)  # in order of time
    closes_at = None
    for last in range(len(times) - 1, limit - 2, -1):
        first = times[last - limit + 1]
        if times[last] <= now and times[last] - first < window:
            # The rate stays at the limit until the oldest of these leaves the window.
            closes_at = first + window + policy.breaker_close_s
            break
    is_open = closes_at is not None and now < closes_at
    return Breaker(
        open=is_open, culprits=recent, limit=limit, closes_at=closes_at if is_open else None
    )


def breaker_open(fleet: Fleet, now: float) -> bool:
    """Is acting on inferred failures held back at `now` (ledger time)?"""
    return bool(fleet.culprits) and breaker(fleet, now).open
