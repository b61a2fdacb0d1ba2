"""When garbage is collected: a little of it often, while nothing is to be done.

What a service knows is immutable and has no cycles: counting references frees it. Left to itself
the collector nevertheless looks through all that came since the last time whenever it has grown by
a quarter, in every copy of every service at the same commit, since all fold the same. In a burst
of 750 faults that held the spare-manager up for 271 ms (two cores, six processes). So it is told to
look while the process rests, every few seconds, and leaves alone what it has looked at once, but
for a look at everything each hour.
"""

import gc

from rackwright.host.clock import Clock, boottime

EVERY_S = 5.0
AT_LEAST_S = 120.0  # also while there is never nothing to be done
ALL_S = 3_600.0
YOUNG = (2_000, 10, 1_000_000)  # the oldest generation is left to `Collector`


class Collector:
    """Of this process; nothing happens before `begin`."""

    def __init__(self, mono: Clock = boottime) -> None:
        self._mono = mono
        self._at = self._all_at = float("inf")

    def begin(self) -> None:
        """The process is ready for its work: what is there now will mostly stay."""
        gc.set_threshold(*YOUNG)
        self._at = self._all_at = self._mono()
        gc.collect()
        gc.freeze()

    def look(self, *, quiet: bool) -> None:
        """Collect if it is time; `quiet`: nothing else is to be done now."""
        now = self._mono()
        if now - self._at < (EVERY_S if quiet else AT_LEAST_S):
            return
        self._at = now
        if now - self._all_at >= ALL_S:
            self._all_at = now
            gc.unfreeze()
        gc.collect()
        gc.freeze()
