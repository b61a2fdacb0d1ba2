"""Who may wish what, beyond what the bus lets a user publish."""

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import Owner
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import Cancel, Resume, SetPolicy, Submit, Swap, Wish

OWN = (Cancel, Resume, Swap)
"""Wishes about a job that its owner may have; all others but a submit are the operators'."""


def is_operator(policy: Policy, owner: Owner) -> bool:
    """Where nobody is listed, everybody is whom the bus lets wish."""
    return not policy.operators or owner in policy.operators


def forbidden(fleet: Fleet, owner: Owner, wish: Wish) -> Reason | None:
    """Why this owner may not have this wish; None: they may."""
    policy = fleet.policy
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
