"""Who may wish what, beyond what the bus lets a user publish."""

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import Owner
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import (
    Cancel,
    LetGo,
    Pause,
    Resume,
    SetPolicy,
    Submit,
    Swap,
    Unpause,
    Wish,
)

OWN = (Cancel, Resume, Swap, LetGo)
"""Wishes about a job that its owner may have; all others but a submit are the operators'."""


def is_operator(policy: Policy, owner: Owner) -> bool:
    """Where nobody is listed, everybody is whom the bus lets wish."""
    return not policy.operators or owner in policy.operators


def forbidden(fleet: Fleet, owner: Owner, wish: Wish) -> Reason | None:
    """Why this owner may not have this wish; None: they may."""
    policy = fleet.policy
    until = fleet.paused_until(Automation.ALL, fleet.time)
    if until is not None and not isinstance(wish, Pause | Unpause):
        return Reason(code="read-only", numbers={"for_s": round(until - fleet.time, 1)})
    if isinstance(wish, SetPolicy):
        named = wish.policy.operators
        if named and owner not in named and is_operator(policy, owner):
            return Reason(code="locks-out", numbers={"owner": owner})
    if isinstance(wish, Submit) or is_operator(policy, owner):
        return None
    if not isinstance(wish, OWN):
        return Reason(code="operators-only", numbers={"operators": ", ".join(policy.operators)})
    job = fleet.jobs.get(wish.job) or fleet.tombstones.get(wish.job)
    if job is None or job.owner == owner:
        return None
    return Reason(code="not-yours", numbers={"job": wish.job, "owner": job.owner})
