"""The two times of a process: seconds that never jump, and an estimate of ledger time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]

DRIFT = 1e-4  # how fast a good estimate may have become wrong: more than quartz ever drifts


def boottime() -> float:
    """Seconds of CLOCK_BOOTTIME: it goes on in suspend and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LedgerClock:
    """What ledger time is now, from the times of commits as they arrive.

    Until a commit has arrived live, this machine's wall clock serves. A commit arrives later than
    it was stored, so of all estimates the highest is the best.
    """

    def __init__(self, *, mono: Clock = boottime, wall: Clock = time.time) -> None:
        self._offset = wall() - mono()
        self._heard: float | None = None

    def hear(self, ledger_time: float, mono: float, *, slow: bool = False) -> float:
        """A commit of that ledger time has just arrived; by how much that moved the estimate.

        `slow`: ledger time does not go at the pace of clocks now, so earlier estimates are void.
        """
        offset, before = ledger_time - mono, self._offset
        if self._heard is None or slow:
            self._offset = offset
        else:
            self._offset = max(offset, self._offset - DRIFT * (mono - self._heard))
        self._heard = mono
        return self._offset - before

    def now(self, mono: float, folded: float) -> float:
        """Ledger time, never behind `folded`, the time of the fold."""
        return max(folded, mono + self._offset)
