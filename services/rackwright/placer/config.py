"""What the placer hears beside commits. Its knobs are the cell's policy."""

from rackwright.host.hearing import Hears

HEARS = Hears(wishes=True, status=True)
