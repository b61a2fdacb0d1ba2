"""What the health-monitor hears, and how its copies share. Its knobs are the cell's policy.

Copies share the racks by shards and not by patience: leases need no owner, and a suspicion must not
wait for a copy that is gone (protocol P3.3).
"""

from rackwright.host.hearing import Hears

HEARS = Hears(wishes=True, signals=True, status=True, heartbeats=True)
PATIENCE_S = 0.0
