"""The two times of a process: seconds that never jump, and an estimate of ledger time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]

WINDOW_S = 10.0  # for how long at least an estimate is good, and at most for twice that


def boottime() -> float:
    """Seconds of CLOCK_BOOTTIME: it goes on in suspend and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LedgerClock:
    """What ledger time is now, from the times of commits as they arrive.

    Until a commit has arrived live, this machine's wall clock serves. A commit arrives later than
    it was stored, so of all recent estimates the highest is the best. Of recent ones only: the
    server's clock may have been set back while nobody wrote, and no commit tells.
    """

    def __init__(self, *, mono: Clock = boottime, wall: Clock = time.time) -> None:
        self._offset = wall() - mono()
        self._best = self._earlier = self._offset  # of this window, and of the one before
        self._since: float | None = None

    def hear(self, ledger_time: float, mono: float, *, slow: bool = False) -> float:
        """A commit of that ledger time has just arrived; by how much that moved the estimate.

        `slow`: ledger time does not go at the pace of clocks now, so earlier estimates are void.
        """
        offset, before = ledger_time - mono, self._offset
        if self._since is None or slow:
            self._best = self._earlier = offset
            self._since = mono
        elif mono - self._since < WINDOW_S:
            self._best = max(self._best, offset)
        else:
            self._earlier, self._best, self._since = self._best, offset, mono
        self._offset = max(self._best, self._earlier)
        return self._offset - before

    def now(self, mono: float, folded: float) -> float:
        """Ledger time, never behind `folded`, the time of the fold."""
        return max(folded, mono + self._offset)
