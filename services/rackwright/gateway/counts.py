"""What can be counted from the ledger: recoveries by rung, swaps and how long they took, plans."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.accounts import Accounts
from rackwright.core.fleet import Fleet
from rackwright.core.histograms import Histogram
from rackwright.core.measures import Measures
from rackwright.core.plan_costs import PlanCosts
from rackwright.core.recent import Recent
from rackwright.wire.entries.job import JobFailed, JobRequeued, JobStarted, JobSuspended
from rackwright.wire.entries.slice import (
    DefragPlanned,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
)
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Entry
from rackwright.wire.reasons import RungTaken

MAX_OPEN = 100_000
LOST = "lost."  # reasons of the placer for ends that a fault or a drain brought about


@dataclass(slots=True)
class Counts:
    """Totals since the first commit that was taken. `open`: when a wound that was answered by a
    new membership was first seen, until all ranks of it run. `bounded_gpu_h` are the estimates of
    the plans of which is known what none could cost less than, and `bound_gpu_h` is that.
    """

    entries: Counter[str] = field(default_factory=Counter)
    rungs: Counter[tuple[str, str]] = field(default_factory=Counter)
    swapped_nodes: int = 0
    victims: int = 0
    cost_gpu_h: float = 0.0
    benefit_gpu_h: float = 0.0
    bounded_gpu_h: float = 0.0
    bound_gpu_h: float = 0.0
    interactive_touched: int = 0
    interactive_lost: int = 0
    to_swap: Histogram = field(default_factory=Histogram)
    to_rejoin: Histogram = field(default_factory=Histogram)
    open: OrderedDict[JobId, float] = field(default_factory=OrderedDict)
    accounts: Accounts = field(default_factory=Accounts)
    measures: Measures = field(default_factory=Measures)
    recent: Recent = field(default_factory=Recent)
    plans: PlanCosts = field(default_factory=PlanCosts)

    def run(self, before: Fleet, after: Fleet) -> None:
        """One commit of whatever type, with effect or without: time has passed."""
        if not self.accounts.at and before.time:
            self.accounts.begin(before)
            self.recent.begin(before)
        self.accounts.take(before, after)
        self.recent.take(after, after.touched_racks)

    def take(self, entries: Iterable[Entry], before: Fleet, after: Fleet) -> None:
        """Entries of one commit that had effect."""
        entries = tuple(entries)
        self.measures.take(entries, before, after)
        self.plans.take(entries, before, after)
        for entry in entries:
            self.entries[entry.TYPE] += 1
            match entry:
                case SliceSwapped():
                    self.swapped_nodes += len(entry.swaps)
                    self._recovered(entry.job, entry.rungs, before, after)
                    self._touched(entry.evicted, before)
                case SliceMoved():
                    self._recovered(entry.job, entry.rungs, before, after)
                    self._touched(entry.evicted, before)
                case SliceRestarted():
                    self._recovered(entry.job, entry.rungs, before, after)
                case JobRequeued() | JobSuspended():
                    self._ended(entry)
                case JobFailed():
                    self._lost(entry, before)
                case JobStarted():
                    self._rejoined(entry.job, after)
                case DefragPlanned():
                    self._planned(entry, before)
                case _:
                    pass

    def _recovered(
        self, job: JobId, rungs: tuple[RungTaken, ...], before: Fleet, after: Fleet
    ) -> None:
        self._rungs(rungs)
        since = before.wounded.get(job)
        if since is None:
            return
        self.to_swap.add(max(0.0, after.time - since))
        self.open.setdefault(job, since)
        if len(self.open) > MAX_OPEN:
            self.open.popitem(last=False)

    def _rungs(self, rungs: tuple[RungTaken, ...]) -> None:
        """Count what was taken, with the reason why the rung above it was not."""
        above = "none"
        for one in rungs:
            if one.taken:
                self.rungs[one.rung.value, above] += 1
            else:
                above = one.reason.code

    def _ended(self, entry: JobRequeued | JobSuspended) -> None:
        if isinstance(entry, JobRequeued):
            self._rungs(entry.rungs)
        self.open.pop(entry.job, None)

    def _rejoined(self, job: JobId, after: Fleet) -> None:
        since = self.open.pop(job, None)
        if since is not None:
            self.to_rejoin.add(max(0.0, after.time - since))

    def _planned(self, entry: DefragPlanned, before: Fleet) -> None:
        self.victims += len(entry.victims)
        self.cost_gpu_h += entry.cost_gpu_h
        self.benefit_gpu_h += entry.benefit_gpu_h
        if entry.bound_gpu_h is not None:
            self.bounded_gpu_h += entry.cost_gpu_h
            self.bound_gpu_h += entry.bound_gpu_h
        self._touched([victim.job for victim in entry.victims], before)

    def _touched(self, jobs: Iterable[JobId], before: Fleet) -> None:
        for name in jobs:
            job = before.jobs.get(name)
            if job is not None and job.spec.job_class is JobClass.INTERACTIVE:
                self.interactive_touched += 1

    def _lost(self, entry: JobFailed, before: Fleet) -> None:
        """Interactive work goes only with its hardware; that is counted beside who was touched."""
        job = before.jobs.get(entry.job)
        lost = entry.reason.code.startswith(LOST)
        if lost and job is not None and job.spec.job_class is JobClass.INTERACTIVE:
            self.interactive_lost += 1

    def join(self, newer: "Counts") -> None:
        """Those of a later stretch of the ledger too."""
        self.entries.update(newer.entries)
        self.rungs.update(newer.rungs)
        self.swapped_nodes += newer.swapped_nodes
        self.victims += newer.victims
        self.cost_gpu_h += newer.cost_gpu_h
        self.benefit_gpu_h += newer.benefit_gpu_h
        self.bounded_gpu_h += newer.bounded_gpu_h
        self.bound_gpu_h += newer.bound_gpu_h
        self.interactive_touched += newer.interactive_touched
        self.interactive_lost += newer.interactive_lost
        self.to_swap.join(newer.to_swap)
        self.to_rejoin.join(newer.to_rejoin)
        self.open.update(newer.open)
        self.accounts.join(newer.accounts)
        self.measures.join(newer.measures)
        self.recent.join(newer.recent)
        self.plans.join(newer.plans)

    @property
    def optimality_gap(self) -> float | None:
        """What plans cost beyond what none could cost less than, as a share of what they cost."""
        if not self.bounded_gpu_h:
            return None
        return 1.0 - self.bound_gpu_h / self.bounded_gpu_h

    def of(self, kind: type[Entry]) -> int:
        """How many entries of one type had effect."""
        return self.entries[kind.TYPE]
