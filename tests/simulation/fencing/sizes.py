"""How large a part of the protocol is explored: timers in ticks, and how often what may come."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.core.policy.leases import declare_after
from rackwright.wire.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One space. Times in ticks of a second; the rest are the most that may come in one story.

    `exits`: workers that end by themselves. `leaseless`: the job's owner lets it run without a
    lease. `late_echoes`: an echo may come a tick or more after it was sent, and twice.
    """

    name: str
    lease: int = 2
    fresh: int = 1
    kill: int = 1
    crashes: int = 0
    reboots: int = 0
    renewals: int = 0
    suspicions: int = 0
    unfit: int = 0
    swaps: int = 0
    restarts: int = 0
    exits: int = 0
    leaseless: bool = False
    late_echoes: bool = False

    @property
    def policy(self) -> Policy:
        """The settings of the cell that is explored."""
        return Policy(
            heartbeat_s=0.25,
            suspect_after_s=1.0,
            fence_after_s=float(self.lease),
            fresh_s=float(self.fresh),
            kill_s=float(self.kill),
            swap_start_s=60.0,
        )

    @property
    def remembered(self) -> int:
        """Ticks after which the age of an entry makes no difference to anybody."""
        return max(int(declare_after(self.policy)) + 2, self.fresh + 1)


AGENT_CRASH = Size(name="agent crash", crashes=1, suspicions=1, swaps=1, restarts=1)
CRASH_UNFIT = Size(name="crash and a fault", crashes=1, unfit=1, swaps=1, restarts=1)
TWO_CRASHES = Size(name="two crashes", crashes=2, restarts=1)
REBOOT = Size(name="reboot and suspicion", reboots=1, suspicions=1, swaps=1, restarts=1)
PARTITION = Size(name="partition", renewals=1, suspicions=1, swaps=1, late_echoes=True)
TWO_SUSPICIONS = Size(name="two suspicions", suspicions=2, swaps=1)
LEASELESS = Size(name="without a lease", leaseless=True, reboots=1, suspicions=1, swaps=1)

# What every run of the tests explores to the end.
SMALL = (AGENT_CRASH, TWO_CRASHES, PARTITION, TWO_SUSPICIONS, LEASELESS)

# What `make model` explores besides.
LARGE = (
    REBOOT,
    CRASH_UNFIT,
    Size(name="swaps there and back", unfit=2, swaps=2),
    Size(name="crash and reboot", crashes=1, reboots=1, unfit=1, swaps=1),
    Size(name="agent crash, longer timers", lease=4, fresh=2, crashes=1, suspicions=1, swaps=1),
    Size(
        name="partition, longer timers",
        lease=4,
        fresh=2,
        kill=2,
        renewals=2,
        suspicions=2,
        swaps=1,
        late_echoes=True,
    ),
    Size(name="two crashes and a suspicion", crashes=2, suspicions=1, swaps=1, restarts=1),
    Size(name="leaseless, renewed", leaseless=True, reboots=1, suspicions=1, renewals=1, swaps=1),
)
