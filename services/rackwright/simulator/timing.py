"""How long things take that no machine decides: starts, swaps, what is noticed when."""

from dataclasses import dataclass

from rackwright.core.policy.leases import declare_after
from rackwright.wire.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. A process is there after `process_s` and ready when its start is over.

    The stalls are those of the policy page, section 1.10: a swap 1.5 minutes, a move 3, a restart
    of the job as the job says (10 minutes unless told otherwise). `reload_s` is added where ranks
    that stay must read the checkpoint again; `keep`: they keep their state instead.
    """

    first_start_s: float = 10.0
    process_s: float = 5.0
    swap_s: float = 90.0
    move_s: float = 180.0
    again_s: float = 30.0
    reload_s: float = 180.0
    keep: bool = False
    stop_s: float = 1.0
    notice_of_fault_s: float = 0.3

    def silence_s(self, policy: Policy) -> tuple[float, float]:
        """From the last heartbeat to the suspicion, and on to the declared failure."""
        return policy.suspect_after_s, declare_after(policy)
