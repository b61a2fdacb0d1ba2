"""What the gateway hears beside commits: the last status of every node."""

from rackwright.host.hearing import Hears

HEARS = Hears(status=True)
