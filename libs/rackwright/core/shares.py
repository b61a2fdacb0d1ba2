"""What each owner has used of the cell, by day, so that policy may weigh it by age.

Kept by the fold in sums and products only: every copy has the same numbers to the last bit, on any
machine. How fast use is forgotten, and what lent spares count, is policy and not here.
"""

from dataclasses import dataclass

from rackwright.core.evolve import quick
from rackwright.wire.ids import Owner, QueueName

DAY_S = 86_400.0
KEPT_DAYS = 64

Account = tuple[QueueName, Owner]
"""Use is counted by queue and owner."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """GPU-seconds of one day of ledger time, counted from the epoch; those on lent spares apart."""

    day: int
    gpu_s: float = 0.0
    lent_s: float = 0.0


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Use up to ledger time `at`, and the GPUs that are in use since then. Newest day last."""

    at: float = 0.0
    gpus: int = 0
    lent: int = 0
    days: tuple[Day, ...] = ()

    def until(self, now: float) -> "Usage":
        """The same with all that was used up to `now`."""
        return self.with_(0, 0, now)

    def with_(self, gpus: int, lent: int, now: float) -> "Usage":
        """So many GPUs more (or fewer) are in use from `now` on."""
        return Usage(
            at=max(now, self.at),
            gpus=self.gpus + gpus,
            lent=self.lent + lent,
            days=self._days(now) if self.gpus or self.lent else self.days,
        )

    def _days(self, now: float) -> tuple[Day, ...]:
        """The days up to `now`, with what is in use since `at`."""
        days = list(self.days)
        at = self.at
        while at < now:
            day = int(at // DAY_S)
            end = min(now, (day + 1) * DAY_S)
            used, lent = (end - at) * self.gpus, (end - at) * self.lent
            if days and days[-1].day == day:
                last = days[-1]
                days[-1] = Day(day=day, gpu_s=last.gpu_s + used, lent_s=last.lent_s + lent)
            else:
                days.append(Day(day=day, gpu_s=used, lent_s=lent))
            at = end
        return tuple(days[-KEPT_DAYS:])

    @property
    def empty(self) -> bool:
        """Is there nothing to remember?"""
        return not (self.gpus or self.lent or self.days)
