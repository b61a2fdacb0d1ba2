"""Rates from counts, with exact intervals: how sure one can be after so few failures.

Failures are a Poisson process; the interval of its mean is that of Garwood (1936). Repairs are
taken as exponential, so that the total time away over the number of repairs has the same interval.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and its 95 % interval; None: not known, or not bounded by what was seen."""

    value: float | None
    low: float | None
    high: float | None


def poisson_below(count: int, mean: float) -> float:
    """The chance of at most `count` events where `mean` are expected."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    return min(1.0, sum(exp(n * log(mean) - mean - lgamma(n + 1)) for n in range(count + 1)))


def mean_count(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Between which means a count so seen lies (Garwood). 0 events: up to 3.69."""
    tail = (1 - confidence) / 2
    high = _where(lambda mean: poisson_below(count, mean) < tail, count)
    low = _where(lambda mean: 1 - poisson_below(count - 1, mean) > tail, count) if count else 0.0
    return low, high


def _where(true: Callable[[float], bool], count: int) -> float:
    """The mean from which on `true` holds."""
    low, high = 0.0, 4.0 * count + 20.0
    for _ in range(100):
        middle = (low + high) / 2
        if true(middle):
            high = middle
        else:
            low = middle
    return high


def time_between(exposure: float, events: int) -> Estimate:
    """Time between events in so much time under observation, in its unit."""
    low_count, high_count = mean_count(events)
    return Estimate(
        value=exposure / events if events else None,
        low=exposure / high_count,
        high=exposure / low_count if low_count else None,
    )


def time_away(away: float, ended: int) -> Estimate:
    """How long an absence lasts, of which `ended` have ended; `away` is the time of all of them."""
    return time_between(away, ended) if ended else Estimate(value=None, low=None, high=None)
