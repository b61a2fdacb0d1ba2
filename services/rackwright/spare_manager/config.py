"""What the spare-manager hears beside commits: nothing. Its knobs are the cell's policy."""

from rackwright.host.hearing import Hears

HEARS = Hears()
