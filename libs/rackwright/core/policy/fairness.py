"""Whose turn it is between equals: who has used least of the cell lately, for what they deserve.

An owner's standing is decayed GPU-hours per weight. Use of a queue counts the less, the more the
queue deserves (`queue_weight`); time on lent spares counts `lent_weight`, since it may be taken
back at any moment. Half of it is forgotten in `fair_half_life_s`.
"""

from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.shares import DAY_S, Account, Usage
from rackwright.wire.ids import Owner
from rackwright.wire.policy import Policy

HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What an account used before `day`, in decayed GPU-hours at the beginning of that day. Holds
    for as long as the account's `usage` and the `policy` are these."""

    usage: Usage
    policy: Policy
    day: int
    hours: float


Memory = dict[Account, Past]
"""What was found of the days that are over: they are many, and only a job that starts or ends
changes what is known of them."""


def decayed(usage: Usage, policy: Policy, now: float, past: Past | None = None) -> float:
    """GPU-hours, each day's halved by its age at `now`, counted from the middle of the day."""
    today = int(now // DAY_S)
    if past is None or past.usage is not usage or past.policy is not policy or past.day != today:
        past = past_of(usage, policy, today)
    hours = past.hours * _left(policy, now - today * DAY_S)
    spent = _running(usage, policy, today, now)
    for day in reversed(usage.days):
        if day.day < today:
            break
        spent += day.gpu_s + policy.lent_weight * day.lent_s
    return hours + spent / HOUR * _left(policy, now - (today + 0.5) * DAY_S)


def past_of(usage: Usage, policy: Policy, today: int) -> Past:
    """The days before this one."""
    begin = today * DAY_S
    hours = sum(
        (day.gpu_s + policy.lent_weight * day.lent_s)
        * _left(policy, begin - (day.day + 0.5) * DAY_S)
        for day in usage.days
        if day.day < today
    )
    if usage.gpus or usage.lent:
        for number in range(int(usage.at // DAY_S), today):
            spent = _running(usage, policy, number, begin)
            hours += spent * _left(policy, begin - (number + 0.5) * DAY_S)
    return Past(usage=usage, policy=policy, day=today, hours=hours / HOUR)


def _running(usage: Usage, policy: Policy, day: int, until: float) -> float:
    """GPU-seconds of this day, up to `until`, on what is in use since `usage.at`."""
    begin, end = max(usage.at, day * DAY_S), min(until, (day + 1) * DAY_S)
    return max(0.0, end - begin) * (usage.gpus + policy.lent_weight * usage.lent)


def _left(policy: Policy, age: float) -> float:
    """The share that is not forgotten yet."""
    return 1.0 if age <= 0.0 else 2.0 ** (-age / policy.fair_half_life_s)


def deserved(policy: Policy, account: Account) -> float:
    """The weight by which use of this queue by this owner is divided."""
    queue, owner = account
    return policy.queue_weight.get(queue, 1.0) * policy.owner_weight.get(owner, 1.0)


def standings(fleet: Fleet, now: float, memory: Memory | None = None) -> dict[Owner, float]:
    """Decayed GPU-hours per weight of each owner that has used any; the least is first.

    `memory` is kept by whoever asks again and again.
    """
    policy = fleet.policy
    today = int(now // DAY_S)
    found: dict[Owner, float] = {}
    for account, usage in fleet.usage.items():
        past = None if memory is None else memory.get(account)
        if (
            past is None
            or past.usage is not usage
            or past.policy is not policy
            or past.day != today
        ):
            past = past_of(usage, policy, today)
            if memory is not None:
                memory[account] = past
        hours = decayed(usage, policy, now, past) / deserved(policy, account)
        found[account[1]] = found.get(account[1], 0.0) + hours
    if memory is not None and len(memory) > 2 * len(fleet.usage):
        for account in [one for one in memory if one not in fleet.usage]:
            del memory[account]
    return found
