"""What the defragmenter hears beside commits: nodes' status. Its knobs are the cell's policy."""

from rackwright.host.hearing import Hears

HEARS = Hears(status=True)
