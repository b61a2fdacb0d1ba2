"""Whose turn it is between equals: who has used least of the cell lately, for what they deserve.

An owner's standing is decayed GPU-hours per weight. Use of a queue counts the less, the more the
queue deserves (`queue_weight`); time on lent spares counts `lent_weight`, since it may be taken
back at any moment. Half of it is forgotten in `fair_half_life_s`.
"""

from rackwright.core.fleet import Fleet
from rackwright.core.shares import DAY_S, Account, Usage
from rackwright.wire.ids import Owner
from rackwright.wire.policy import Policy

HOUR = 3600.0


def decayed(usage: Usage, policy: Policy, now: float) -> float:
    """GPU-hours, each day's halved by its age at `now`, counted from the middle of the day."""
    total = 0.0
    for day in usage.until(now).days:
        age = max(0.0, now - (day.day + 0.5) * DAY_S)
        spent = day.gpu_s + policy.lent_weight * day.lent_s
        total += spent / HOUR * 2.0 ** (-age / policy.fair_half_life_s)
    return total


def deserved(policy: Policy, account: Account) -> float:
    """The weight by which use of this queue by this owner is divided."""
    queue, owner = account
    return policy.queue_weight.get(queue, 1.0) * policy.owner_weight.get(owner, 1.0)


def standings(fleet: Fleet, now: float) -> dict[Owner, float]:
    """Decayed GPU-hours per weight of each owner that has used any; the least is first."""
    policy = fleet.policy
    found: dict[Owner, float] = {}
    for account, usage in fleet.usage.items():
        hours = decayed(usage, policy, now) / deserved(policy, account)
        found[account[1]] = found.get(account[1], 0.0) + hours
    return found
