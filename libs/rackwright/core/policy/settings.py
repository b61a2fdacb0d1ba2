"""Settings that cannot stand in this cell, though each value is one that the type allows."""

from rackwright.core.fleet import Fleet
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason


def beyond_the_cell(fleet: Fleet, policy: Policy) -> Reason | None:
    """A queue that is promised more GPUs than there are, or as many spare racks as there are racks;
    None if all can stand."""
    racks = len(fleet.racks)
    if racks and policy.spare_racks >= racks:
        why = f"leaves none of the {racks} racks of the cell to work"
        return _wrong("spare_racks", policy.spare_racks, why, f"{racks - 1} or fewer")
    most = fleet.installed_gpus
    for name in ("queue_gpus", "queue_pinned_gpus", "queue_lent_gpus"):
        for queue, gpus in sorted(getattr(policy, name).items()):
            if most and gpus > most:
                why = f"is more than the {most} GPUs of the cell"
                return _wrong(f"{name}.{queue}", gpus, why, f"{most} or fewer")
    return None


def _wrong(field: str, value: int, why: str, ask: str) -> Reason:
    numbers: dict[str, int | float | str] = {"field": field, "is": value, "why": why, "ask": ask}
    return Reason(code=f"policy.{field}", numbers=numbers)
