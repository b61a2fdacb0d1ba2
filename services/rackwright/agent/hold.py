"""The lease of one node as its agent counts it: by echoes of its own heartbeats.

The lease runs from the *sending* of the heartbeat that an echo names, so neither a slow bus nor a
slow monitor can make it longer than the monitor reckons with. Pure; times are ns of CLOCK_BOOTTIME.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from rackwright.wire.ids import SessionId

REMEMBERED = 256
NS = 1_000_000_000


@dataclass(slots=True)
class Hold:
    """Heartbeats sent in this session, and until when the node may run work."""

    session: SessionId
    n: int = 0
    until_ns: int = 0
    head: int = 0
    sent: OrderedDict[int, int] = field(default_factory=OrderedDict)

    def sending(self, now_ns: int) -> int:
        """Number the next heartbeat and note when it goes out."""
        self.n += 1
        self.sent[self.n] = now_ns
        if len(self.sent) > REMEMBERED:
            self.sent.popitem(last=False)
        return self.n

    def echoed(self, session: SessionId, n: int, lease_s: float, head: int) -> bool:
        """Take an echo; True when it made the lease longer."""
        at = self.sent.get(n)
        if session != self.session or at is None:
            return False
        self.head = max(self.head, head)
        until = at + int(lease_s * NS)
        if until <= self.until_ns:
            return False
        self.until_ns = until
        return True
