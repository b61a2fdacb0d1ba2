"""What each owner has used of the cell, by day, so that policy may weigh it by age.

Kept by the fold in sums and products only: every copy has the same numbers to the last bit, on any
machine. How fast use is forgotten, and what lent spares count, is policy and not here.
"""

from dataclasses import dataclass
from enum import StrEnum

from immutables import Map

from rackwright.core.evolve import changer
from rackwright.core.jobs import Job, counts_as_pinned
from rackwright.wire.ids import Owner, QueueName
from rackwright.wire.jobs import JobClass
from rackwright.wire.quick import quick

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


_MORE = changer(Day, "gpu_s", "lent_s")


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
        at, newest = self.at, self.days[-1:]
        if at <= now and newest and newest[0].day == at // DAY_S == now // DAY_S:
            # Nearly always: the newest day, used some more.
            last, used_s = newest[0], now - at
            gpu_s, lent_s = last.gpu_s + used_s * self.gpus, last.lent_s + used_s * self.lent
            return (*self.days[:-1], _MORE(last, gpu_s=gpu_s, lent_s=lent_s))
        days = list(self.days)
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


class Limited(StrEnum):
    """What limits count, in GPUs: a queue, its lent and its pinned ones apart, all pinned work, and
    the interactive work of an owner."""

    QUEUE = "queue"
    QUEUE_LENT = "queue-lent"
    QUEUE_PINNED = "queue-pinned"
    PINNED = "pinned"
    INTERACTIVE = "interactive"


Counts = Map[tuple[Limited, str], int]
"""GPUs in use by what limits count and by whose they are; nothing is kept that is 0."""


def counted(counts: Counts, job: Job, gpus: int, lent: int) -> Counts:
    """The counts when a job has so many GPUs more, and so many more on lent spares."""
    queue = job.spec.queue
    counts = _more(counts, (Limited.QUEUE, queue), gpus)
    counts = _more(counts, (Limited.QUEUE_LENT, queue), lent)
    if counts_as_pinned(job.spec):
        counts = _more(counts, (Limited.QUEUE_PINNED, queue), gpus + lent)
        counts = _more(counts, (Limited.PINNED, ""), gpus + lent)
    if job.spec.job_class is JobClass.INTERACTIVE:
        counts = _more(counts, (Limited.INTERACTIVE, job.owner), gpus + lent)
    return counts


def _more(counts: Counts, of: tuple[Limited, str], gpus: int) -> Counts:
    if not gpus:
        return counts
    made = counts.get(of, 0) + gpus
    return counts.set(of, made) if made else counts.delete(of)
