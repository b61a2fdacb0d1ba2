"""Settings that cannot stand in this cell, though each value is one that the type allows."""

from rackwright.core.fleet import Fleet
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason


def beyond_the_cell(fleet: Fleet, policy: Policy) -> Reason | None:
    """A queue that is promised more GPUs than there are; None if there is none."""
    most = fleet.installed_gpus
    for name in ("queue_gpus", "queue_pinned_gpus", "queue_lent_gpus"):
        for queue, gpus in sorted(getattr(policy, name).items()):
            if most and gpus > most:
                field = f"{name}.{queue}"
                why = f"is more than the {most} GPUs of the cell"
                numbers = {"field": field, "is": gpus, "why": why, "ask": f"{most} or fewer"}
                return Reason(code=f"policy.{field}", numbers=numbers)
    return None
