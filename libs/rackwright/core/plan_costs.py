"""What plans cost in the end, beside what they were estimated at: from the ledger alone.

The same terms as the estimate (policy page, section 3), with the times as they came: a victim
stands still from the end of its first worker until all of its ranks run again, and the free GPUs of
the cleared racks from the plan until the job that it served has started. What the victim had to do
again is the plan's own figure: the ledger holds no checkpoints.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.wire.entries.job import JobStarted
from rackwright.wire.entries.slice import CostTerms, DefragPlanned, DefragWithdrawn
from rackwright.wire.ids import JobId, PlanId, WorkerId
from rackwright.wire.message import Entry

HOUR = 3600.0


@dataclass(slots=True, kw_only=True)
class Stopped:
    """One victim on its way. `attention` is c of the formula, `begun` when it stopped."""

    plan: PlanId
    workers: tuple[WorkerId, ...]
    cost: CostTerms
    repeat: float
    attention: float
    begun: float | None = None


@dataclass(slots=True, kw_only=True)
class Open:
    """A plan of which something is still on its way: its estimate, and what it has cost so far."""

    job: JobId
    at: float
    held_gpus: float
    estimate: float
    cost: float = 0.0
    served: bool = False
    victims: set[JobId] = field(default_factory=set)


@dataclass(slots=True)
class PlanCosts:
    """Sums in GPU-hours over the `plans` that are over: as `estimated`, and `actual`."""

    plans: int = 0
    estimated: float = 0.0
    actual: float = 0.0
    _open: dict[PlanId, Open] = field(default_factory=dict)
    _victims: dict[JobId, Stopped] = field(default_factory=dict)

    def take(self, entries: Iterable[Entry], before: Fleet, after: Fleet) -> None:
        """The entries of one commit that had effect."""
        for entry in entries:
            match entry:
                case DefragPlanned():
                    self._planned(entry, before, after)
                case DefragWithdrawn():
                    self._withdrawn(entry, after)
                case JobStarted():
                    self._started(entry.job, after.time)
                case _:
                    pass
        if self._open:
            self._look(after)

    def _planned(self, entry: DefragPlanned, before: Fleet, after: Fleet) -> None:
        policy = before.policy
        seconds = entry.notice_s + policy.defrag_drain_s
        self._open[entry.plan] = Open(
            job=entry.job,
            at=after.time,
            held_gpus=entry.hold_gpu_h * HOUR / seconds if seconds else 0.0,
            estimate=entry.cost_gpu_h,
            victims={victim.job for victim in entry.victims},
        )
        for victim in entry.victims:
            self._victims[victim.job] = Stopped(
                plan=entry.plan,
                workers=after.leaving_of.get(victim.job, ()),
                cost=victim.cost,
                repeat=policy.defrag_repeat,
                attention=policy.defrag_victim_cost_gpu_h,
            )

    def _withdrawn(self, entry: DefragWithdrawn, after: Fleet) -> None:
        """Who was spared costs nothing; who had gone is on its way all the same."""
        known = self._open.get(entry.plan)
        if known is None:
            return
        for name in entry.spared:
            self._victims.pop(name, None)
            known.victims.discard(name)
        self._served(known, after.time)
        self._close(entry.plan)

    def _started(self, name: JobId, now: float) -> None:
        victim = self._victims.pop(name, None)
        if victim is not None:
            self._back(name, victim, now)
        for plan, known in list(self._open.items()):
            if known.job == name:
                self._served(known, now)
                self._close(plan)

    def _served(self, known: Open, now: float) -> None:
        if not known.served:
            known.served = True
            known.cost += known.held_gpus * (now - known.at) / HOUR

    def _back(self, name: JobId, victim: Stopped, now: float) -> None:
        """It runs again, or has ended: what it stood still counts, by the terms of the estimate."""
        known = self._open.get(victim.plan)
        if known is None:
            return
        stood = 0.0 if victim.begun is None else (now - victim.begun) / HOUR
        terms = victim.cost
        again = 1.0 + victim.repeat * terms.repeats
        known.cost += terms.gpus * (terms.lost_h + stood) * terms.weight * again + victim.attention
        known.victims.discard(name)
        self._close(victim.plan)

    def _look(self, after: Fleet) -> None:
        """Who has stopped by now, and who ended on the way."""
        for name, victim in list(self._victims.items()):
            if victim.begun is None and any(one not in after.leaving for one in victim.workers):
                victim.begun = after.time
            if name not in after.jobs:
                del self._victims[name]
                self._back(name, victim, after.time)
        for plan, known in list(self._open.items()):
            if known.job not in after.jobs:
                self._served(known, after.time)
                self._close(plan)

    def _close(self, plan: PlanId) -> None:
        known = self._open.get(plan)
        if known is not None and known.served and not known.victims:
            del self._open[plan]
            self.plans += 1
            self.estimated += known.estimate
            self.actual += known.cost

    def join(self, newer: "PlanCosts") -> None:
        """Those of a later stretch of the ledger too; what was open when it began is not known."""
        self.plans += newer.plans
        self.estimated += newer.estimated
        self.actual += newer.actual
        self._open.update(newer._open)
        self._victims.update(newer._victims)
