"""What each wound of a slice asks for, and whether its rack is a place to heal in at all."""

from dataclasses import dataclass

from rackwright.core.jobs import Wound, WoundKind
from rackwright.core.legality.seats import node_keeps
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.replacements import Case
from rackwright.wire.nodes import RackFitness

START_TIMEOUT = "start-timeout"
"""Reason code of `worker.failed` for a rank that did not start within `swap_start_s`, its gates
being open: its node has failed the job, whatever else is said of it."""


HANG = "progress-timeout"
"""Reason code of `worker.failed` and `job.failed` for a job of which no rank told of progress
within its `progress_timeout_s`: of the rank that pays for it. The others have HANG_PEER."""
HANG_PEER = "progress-timeout.peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """Ranks that `restart` where they are, that must `leave`, and that are `drained`: these should
    leave, but nobody is stopped for it.
    """

    restart: tuple[Wound, ...]
    leave: tuple[Wound, ...]
    drained: tuple[Wound, ...]

    @property
    def away(self) -> tuple[Wound, ...]:
        """All that are to go elsewhere, the urgent ones first."""
        return self.leave + self.drained

    @property
    def needed(self) -> int:
        """Nodes without which a swap is no help."""
        return len(self.leave) or min(1, len(self.drained))


def triage(case: Case) -> Triage:
    """Sort the wounds of a slice."""
    restart = tuple(wound for wound in case.wounds if _restarts(case, wound))
    drained = tuple(wound for wound in case.wounds if wound.kind is WoundKind.DRAIN)
    kept = {wound.rank for wound in restart + drained}
    leave = tuple(wound for wound in case.wounds if wound.rank not in kept)
    return Triage(restart=restart, leave=leave, drained=drained)


def _restarts(case: Case, wound: Wound) -> bool:
    """Is only the process gone, and its node as good as before?"""
    if wound.kind is not WoundKind.PROCESS or wound.code == START_TIMEOUT:
        return False
    return node_keeps(case.node_of(wound.rank), case.need) is None


def better_left(case: Case) -> tuple[str, bool] | None:
    """Why this rack is no place to heal in, and whether it is out of the question.

    Suspect means suspect before: the failures that made it so are still healed inside it.
    """
    rack = case.rack
    if rack.isolated:
        return "rack.isolated", True
    if rack.fitness in {RackFitness.EVACUATE, RackFitness.DOWN}:
        return f"rack.{rack.fitness}", True
    if rack.held_until > case.fleet.time:
        return "rack.held", True
    if rack.fitness is RackFitness.DEGRADED:
        since = rack.demerits[-1] if rack.demerits else 0.0
        if any(wound.at > since for wound in case.wounds):
            return "rack.degraded", False
    if _maintained(case):
        return "rack.maintenance", False
    return None


def _maintained(case: Case) -> bool:
    """Is maintenance of the rack planned before the job will have ended?"""
    end = ends_at(case.fleet.policy, case.job)
    name = case.rack.spec.rack
    return any(
        name in window.racks and window.end > case.now and (end is None or window.begin < end)
        for window in case.fleet.maintenance
    )
