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
    """Heartbeats sent in this session, and until when the node may run work.

    `echoed_ns`: the sending of the newest heartbeat that was echoed, 0 if none was. `steady_ns`:
    until then the node has promised to tell no neighbour that the bus is away; a promise outlives
    the session it was made in.
    """

    session: SessionId
    n: int = 0
    until_ns: int = 0
    head: int = 0
    sent: OrderedDict[int, int] = field(default_factory=OrderedDict)
    echoed_ns: int = 0
    steady_ns: int = 0

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
        self.echoed_ns = max(self.echoed_ns, at)
        self.steady_ns = max(self.steady_ns, at + int(lease_s * NS / 2))
        return self.carried(at + int(lease_s * NS))

    def carried(self, until_ns: int) -> bool:
        """The lease runs until then at least; True when that made it longer."""
        if until_ns <= self.until_ns:
            return False
        self.until_ns = until_ns
        return True

    def away(self, now_ns: int) -> bool:
        """Is the last echo of this session older than half a lease, and no promise runs?"""
        return self.echoed_ns > 0 and now_ns > self.steady_ns

    def steady_s(self, now_ns: int) -> float:
        """For how long from now on the node will not say that the bus is away."""
        return max(0, self.steady_ns - now_ns) / NS
