"""Settings that cannot stand in this cell, though each value is one that the type allows."""

from rackwright.core.fleet import Fleet
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason


def beyond_the_cell(fleet: Fleet, policy: Policy) -> Reason | None:
    """What of these settings cannot stand in this cell; None if all can."""
    return beyond(len(fleet.racks), fleet.installed_gpus, policy)


def beyond(racks: int, most: int, policy: Policy) -> Reason | None:
    """A queue that may have more than these GPUs, or as many spare racks as there are racks, or
    guarantees that cannot be kept; None if all can stand. 0: so many are not known yet."""
    if racks and policy.spare_racks >= racks:
        why = f"leaves none of the {racks} racks of the cell to work"
        return _wrong("spare_racks", policy.spare_racks, why, f"{racks - 1} or fewer")
    for name in ("queue_gpus", "queue_pinned_gpus", "queue_lent_gpus"):
        for queue, gpus in sorted(getattr(policy, name).items()):
            if most and gpus > most:
                why = f"is more than the {most} GPUs of the cell"
                return _wrong(f"{name}.{queue}", gpus, why, f"{most} or fewer")
    return _promises(most, policy)


def _promises(most: int, policy: Policy) -> Reason | None:
    """All guarantees together are no more than the cell, and each no more than its queue may have
    at once."""
    total = sum(policy.queue_guarantee.values())
    if most and total > most:
        why = f"is in all more than the {most} GPUs of the cell"
        return _wrong("queue_guarantee", total, why, f"{most} or fewer in all")
    for queue, gpus in sorted(policy.queue_guarantee.items()):
        limit = policy.queue_gpus.get(queue, gpus)
        if gpus > limit:
            why = f"is more than the {limit} GPUs that queue_gpus lets it have"
            return _wrong(f"queue_guarantee.{queue}", gpus, why, f"{limit} or fewer")
    return None


def _wrong(field: str, value: int, why: str, ask: str) -> Reason:
    numbers: dict[str, int | float | str] = {"field": field, "is": value, "why": why, "ask": ask}
    return Reason(code=f"policy.{field}", numbers=numbers)
