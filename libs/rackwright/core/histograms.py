"""Seconds counted by upper bound, as Prometheus has them."""

from dataclasses import dataclass, field

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)
HOUR, DAY = 3600.0, 86_400.0
SHORT = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0)
LONG = (*SHORT, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, DAY, 7 * DAY)
RATIOS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound in `bounds`; the last is infinity."""

    bounds: tuple[float, ...] = BUCKETS
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """One more."""
        last = len(self.bounds)
        place = next((i for i, most in enumerate(self.bounds) if value <= most), last)
        self.counts[place] += 1
        self.total += value

    def join(self, other: "Histogram") -> None:
        """Those of another one with the same bounds too."""
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Pairs of upper bound and how many are at most that."""
        pairs, found = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            found += count
            pairs.append((bound, float(found)))
        return pairs

    def quantile(self, share: float) -> float | None:
        """The upper bound below which at least that share lies; None without any, or if it is
        above all bounds."""
        wanted, found = share * self.number, 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            found += count
            if count and found >= wanted:
                return bound
        return None
