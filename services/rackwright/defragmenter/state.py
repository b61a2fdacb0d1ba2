"""What the defragmenter remembers; all of it can be found again in the fleet and the status."""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.policy.defrag import ripe_at
from rackwright.core.policy.defrag_course import Asked
from rackwright.defragmenter.seen import Seen
from rackwright.wire.entries.slice import DefragFinished, DefragPlanned, DefragWithdrawn
from rackwright.wire.ids import JobId, MessageId, PlanId

Ending = DefragFinished | DefragWithdrawn
"""What ends a plan in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A plan that is not in the ledger yet, and the ledger time it was decided at."""

    entry: DefragPlanned
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """When a blocked job was looked at last: ledger time, sequence, and the time from which the
    answer may be another one. `told` is what was said of it.
    """

    at: float
    seq: int
    again: float | None
    told: str


@dataclass(slots=True, kw_only=True)
class State:
    """It belongs to the machine, which changes it in place.

    blocked: jobs blocked by what a plan could answer, with the commit that said so.
    decided: the plan that is being offered. untold: victims who have not been told, with the
    commit of their plan. ask_at: `mono` time at which the plan in flight is asked again.
    ending: what came of that the last time. asked: for what fleet a plan was needed still.
    lowest: the lowest priority of work that may be evicted, as it was until ledger time lowest_at.
    """

    copy: int
    ready: bool = False
    seen: Seen = field(default_factory=Seen)
    blocked: dict[JobId, MessageId | None] = field(default_factory=dict)
    looks: dict[JobId, Look] = field(default_factory=dict)
    decided: Decided | None = None
    untold: dict[JobId, MessageId | None] = field(default_factory=dict)
    ask_at: float = 0.0
    ending: Ending | None = None
    asked: dict[PlanId, Asked] = field(default_factory=dict)
    lowest: int = 0
    lowest_at: float = 0.0

    def follow(self, fleet: Fleet, name: JobId) -> None:
        """A job has changed: is it one to look at?"""
        job = fleet.jobs.get(name)
        if job is None:
            self.seen.forget(name)
        if job is not None and ripe_at(fleet, job) is not None:
            self.blocked.setdefault(name, fleet.last_id)
        else:
            self.blocked.pop(name, None)
            self.looks.pop(name, None)

    def look_over(self, fleet: Fleet, now: float) -> None:
        """Look at the whole cell once. Victims are told twice rather than never."""
        for name in fleet.queued:
            self.follow(fleet, name)
        for plan in fleet.plans.values():
            if now < plan.notice_until:
                self.untold.update((victim.job, None) for victim in plan.victims)
