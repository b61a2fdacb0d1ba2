"""How other schedulers heal, reduced to their rule, as machines beside the cell's own placer.

They are stand-ins of ours and not those schedulers: what they share with them is the rule named.
"""

from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.jobs import Job, WoundKind
from rackwright.core.machine import Effect, Event, Offer, Refused, Turn
from rackwright.core.policy.spares import heal, to_heal, urgency
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.slice import SliceRestarted, SliceSwapped
from rackwright.wire.message import MAX_ENTRIES, Entry
from rackwright.wire.reasons import Reason

WHOLE_JOB = Reason(code="requeue", numbers={"rule": "whole job"})
SECOND = Reason(code="requeue", numbers={"rule": "second failure"})


@dataclass(frozen=True, slots=True)
class State:
    """They remember nothing: the fleet says all."""

    copy: int


class WholeJobRequeue:
    """A job that has lost a node or a process is stopped and queued again, as a whole.

    Without a hot swap there is nothing else: so do Slurm's requeue and most batch schedulers.
    """

    service = "spare-manager"

    def start(self, copy: int) -> State:
        """Nothing to know."""
        return State(copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        if not isinstance(event, Turn | Refused) or not fleet.wounded:
            return state, []
        if isinstance(event, Refused):
            return state, []
        made: list[Effect] = []
        trial = fleet
        for job in sorted(_wounded(fleet), key=lambda one: urgency(fleet, one)):
            found = self.heal(trial, trial.jobs[job.id], event.now)
            for entry in found:
                made.append(Offer(entries=(entry,)))
                trial = apply(trial, entry)
            if len(made) >= MAX_ENTRIES:
                break
        return state, made

    def heal(self, fleet: Fleet, job: Job, now: float) -> list[Entry]:
        """The entries for one wounded job."""
        if not to_heal(fleet, job, now):
            return []
        return [JobRequeued(job=job.id, reason=WHOLE_JOB)]


class SingleSwap(WholeJobRequeue):
    """One node of a placement is replaced within its rack, a second one costs the whole placement.

    The rule by which Kueue's topology-aware scheduling replaces a failed node: one at a time, in
    the same domain, else the workload is evicted and queued again.
    """

    def heal(self, fleet: Fleet, job: Job, now: float) -> list[Entry]:
        """The entries for one wounded job."""
        wounds = to_heal(fleet, job, now)
        if not wounds:
            return []
        if all(wound.kind is WoundKind.PROCESS for wound in wounds):
            return [
                entry for entry in heal(fleet, job, now)[0] if isinstance(entry, SliceRestarted)
            ]
        if len(wounds) == 1 and not self._swapped_before(job):
            made = heal(fleet, job, now)[0]
            if len(made) == 1 and isinstance(made[0], SliceSwapped) and not made[0].evicted:
                return list(made)
        return [JobRequeued(job=job.id, reason=SECOND)]

    @staticmethod
    def _swapped_before(job: Job) -> bool:
        """Since it was placed last."""
        placed = job.placed_at or 0.0
        return any(swap.at >= placed for swap in job.swaps)


def _wounded(fleet: Fleet) -> list[Job]:
    return [fleet.jobs[name] for name in fleet.wounded]
