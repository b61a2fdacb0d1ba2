"""How often owners may have nodes replaced that report no fault: by job and by owner, in a day."""

from rackwright.core.fleet import Fleet, WishedSwap
from rackwright.core.policy.refusing import Numbers
from rackwright.core.shares import DAY_S
from rackwright.wire.ids import JobId, Owner


def too_many(fleet: Fleet, job: JobId, owner: Owner) -> Numbers | None:
    """The first limit that has no room for one more, and in how many seconds it has; None: none."""
    policy = fleet.policy
    of_job = [one for one in fleet.wished_swaps if one.job == job]
    of_owner = [one for one in fleet.wished_swaps if one.by == owner]
    for limit, most, swaps in (
        ("swap_job_day", policy.swap_job_day, of_job),
        ("swap_owner_day", policy.swap_owner_day, of_owner),
    ):
        numbers = _over(swaps, most, fleet.time)
        if numbers is not None:
            return {"limit": limit, **numbers}
    return None


def _over(swaps: list[WishedSwap], most: int, now: float) -> Numbers | None:
    """How many there were, how many may be, and when the oldest in the way is a day old."""
    ends = [one.at + DAY_S for one in swaps if one.at + DAY_S > now]
    if len(ends) < most:
        return None
    counted: Numbers = {"swaps": len(ends), "allowed": most}
    if most:
        counted["in_s"] = round(ends[-most] - now, 1)
    return counted
