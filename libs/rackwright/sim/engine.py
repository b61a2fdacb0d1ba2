"""Virtual time: a heap of calls, each at its moment, and the only source of chance.

Calls of one moment come in the order in which they were asked for, so a run is a function of its
seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

EPOCH = 1_000_000.0


class Timer:
    """A call that is to come; `cancel` takes it back."""

    __slots__ = ("args", "at", "call")

    def __init__(self, at: float, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.at = at
        self.call: Callable[..., object] | None = call
        self.args = args

    def cancel(self) -> None:
        """It does not come any more."""
        self.call = None
        self.args = ()


class Engine:
    """Time in seconds from `start` on. `handled` counts the calls that were made."""

    def __init__(self, seed: int, start: float = EPOCH) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now = start
        self.handled = 0
        self._halted = False
        self._heap: list[tuple[float, int, Timer]] = []
        self._asked = 0

    def at(self, time: float, call: Callable[..., object], *args: Any) -> Timer:
        """Call at that time, or next if it is past."""
        timer = Timer(max(time, self.now), call, args)
        self._asked += 1
        heappush(self._heap, (timer.at, self._asked, timer))
        return timer

    def later(self, delay: float, call: Callable[..., object], *args: Any) -> Timer:
        """Call after so many seconds."""
        return self.at(self.now + delay, call, *args)

    def next_at(self) -> float | None:
        """When the next call is due; None: nothing is to happen."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heappop(heap)
        return heap[0][0] if heap else None

    def one(self) -> bool:
        """Make the next call; False if there is none."""
        heap = self._heap
        while heap:
            at, _, timer = heappop(heap)
            call = timer.call
            if call is None:
                continue
            self.now = at
            self.handled += 1
            timer.call = None
            call(*timer.args)
            return True
        return False

    def run(self, until: float) -> None:
        """Make all calls due up to `until`; then it is `until`, unless it was halted before."""
        while not self._halted and (at := self.next_at()) is not None and at <= until:
            self.one()
        if not self._halted:
            self.now = max(self.now, until)

    def halt(self) -> None:
        """Make no further call; that of this moment is made whole."""
        self._halted = True

    def chance(self, odds: float) -> bool:
        """Does it happen? Draws nothing for what never does."""
        return odds > 0.0 and self.random.random() < odds
