"""Recovery first: who places or moves work waits while a failure has not been answered."""

from rackwright.core.fleet import Fleet


def recovery_first(fleet: Fleet, now: float) -> float | None:
    """Seconds to wait for the spare-manager, None if there is nothing to wait for.

    A failed node that still belongs to a job holds others up for `recovery_precedence_s`, no longer
    (protocol F12d): what recovery cannot answer at once must not stop the cell.
    """
    patience = fleet.policy.recovery_precedence_s
    left = [at + patience - now for at in fleet.fresh_faults.values()]
    longest = max(left, default=0.0)
    return longest if longest > 0.0 else None
