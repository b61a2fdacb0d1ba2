"""What can be measured of a cell from its ledger (policy page, section 4): waits, recoveries,
blocks, faults. Give it each commit's entries with the fleet before and after, in order.

GPU-seconds by state are in `accounts`. Times are ledger time in seconds; bands are those of jobs by
GPUs.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.accounts import band
from rackwright.core.fleet import Fleet
from rackwright.core.histograms import HOUR, LONG, RATIOS, Histogram
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.cut import whole_slice
from rackwright.core.policy.prices import gpus_of
from rackwright.core.policy.triage import START_TIMEOUT
from rackwright.wire.entries.job import (
    JobPlaced,
    JobRequeued,
    JobShrunk,
    JobStarted,
    WorkerFailed,
)
from rackwright.wire.entries.node import NodeFailed, NodeRecovered, NodeUnfit
from rackwright.wire.entries.slice import (
    DefragPlanned,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
)
from rackwright.wire.ids import JobId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Rung, RungTaken

Labels = tuple[str, ...]
LEAST_RUN_S = 600.0  # of bounded slowdown: shorter runs count as so long
HELPED = frozenset({Rung.SPARE, Rung.LENT_SPARE, Rung.RESTART})
RECOVERIES = SliceSwapped | SliceMoved | SliceRestarted | JobRequeued | JobShrunk


def asked(fleet: Fleet, job: Job) -> int:
    """GPUs that a job has asked for, whether it has them or not."""
    per_node, spec = fleet.topology.gpus_per_node, job.spec
    if spec.gpus is not None:
        return spec.gpus
    groups = sum(group.nodes * group.replicas for group in spec.groups)
    return (spec.nodes or groups) * per_node


@dataclass(slots=True)
class Family:
    """Histograms of one kind by their labels."""

    bounds: tuple[float, ...] = LONG
    by: dict[Labels, Histogram] = field(default_factory=dict)

    def add(self, labels: Labels, value: float) -> None:
        """One more."""
        found = self.by.get(labels)
        if found is None:
            found = self.by[labels] = Histogram(self.bounds)
        found.add(max(0.0, value))

    def join(self, newer: "Family") -> None:
        """Those of another one too."""
        for labels, histogram in newer.by.items():
            self.by.setdefault(labels, Histogram(self.bounds)).join(histogram)


def _ratios() -> Family:
    return Family(RATIOS)


@dataclass(slots=True, kw_only=True)
class Measures:
    """Sums and histograms since the first commit that was taken.

    queue_wait: submit to first start, by band, class and queue. slowdown: (wait + run) / run of
    ended jobs by band, runs of less than ten minutes as ten. to_detect: a fault's own time to its
    entry, by signal. to_recover: the first wound to all ranks up, by rung. to_rack: first block of
    a job, or wound of a slice, to the rack it gets, by how (`natural`, `defragmented`, `moved`).
    to_repair: a node out to in service again. blocked_s, blocked_gpu_s: by cause and band.
    stalled_gpu_h: GPU-hours in which a wounded job stood still, by rung: until all its ranks are
    up, or it goes back into the queue. broke_whole: placements that broke a whole rack, by class.
    exhausted: recoveries that found no spare in the rack, free or lent. dead_spares: ranks that did
    not start in time.
    """

    queue_wait: Family = field(default_factory=Family)
    slowdown: Family = field(default_factory=_ratios)
    to_detect: Family = field(default_factory=Family)
    to_recover: Family = field(default_factory=Family)
    to_rack: Family = field(default_factory=Family)
    to_repair: Family = field(default_factory=Family)
    blocked_s: dict[Labels, float] = field(default_factory=dict)
    blocked_gpu_s: dict[Labels, float] = field(default_factory=dict)
    stalled_gpu_h: dict[Labels, float] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    broke_whole: Counter[str] = field(default_factory=Counter)
    exhausted: int = 0
    dead_spares: int = 0
    _blocked: dict[JobId, float] = field(default_factory=dict)
    _healing: dict[JobId, tuple[float, str]] = field(default_factory=dict)
    _queued: set[JobId] = field(default_factory=set)

    def take(self, entries: Iterable[Entry], before: Fleet, after: Fleet) -> None:
        """The entries of one commit; none of one that had no effect."""
        for entry in entries:
            self._entry(entry, before, after)
        for name in after.touched_jobs:
            self._follow(name, before, after)

    def _entry(self, entry: Entry, before: Fleet, after: Fleet) -> None:
        match entry:
            case JobStarted():
                self._started(before.jobs[entry.job], after)
            case JobPlaced():
                self._placed(entry, before)
            case SliceSwapped() | SliceMoved() | SliceRestarted() | JobRequeued() | JobShrunk():
                self._recovered(entry, before, after)
            case DefragPlanned():
                self._seated(before.jobs[entry.job], "defragmented", after.time)
            case NodeUnfit() | NodeFailed():
                self.faults[entry.reason.code] += 1
                if entry.observed_at > 0.0:
                    self.to_detect.add((entry.reason.code,), after.time - entry.observed_at)
            case NodeRecovered():
                node = before.node(entry.node)
                if node.faults:
                    self.to_repair.add((), after.time - node.faults[-1].at)
            case WorkerFailed():
                self.dead_spares += entry.reason.code == START_TIMEOUT
            case _:
                pass

    def _started(self, job: Job, after: Fleet) -> None:
        if job.first_started_at is None:
            size = band(asked(after, job))
            labels = (size, job.spec.job_class.value, job.spec.queue)
            self.queue_wait.add(labels, after.time - job.submitted_at)
        since, rung = self._healing.pop(job.id, (None, ""))
        if since is not None:
            self.to_recover.add((rung,), after.time - since)
            if job.id not in self._queued:
                self._stalled(after, job, rung, max(0.0, after.time - since) / HOUR)
            self._queued.discard(job.id)

    def _placed(self, entry: JobPlaced, before: Fleet) -> None:
        job = before.jobs[entry.job]
        self._seated(job, "natural", before.time)
        size = whole_slice(before.policy, before.topology)
        for part in entry.slices:
            shape = before.rack(part.rack).shape
            if shape.empty and shape.usable >= size > part.nodes.bit_count():
                self.broke_whole[job.spec.job_class.value] += 1

    def _seated(self, job: Job, how: str, now: float) -> None:
        if job.blocked_since is not None:
            self.to_rack.add((how,), now - job.blocked_since)

    def _recovered(self, entry: RECOVERIES, before: Fleet, after: Fleet) -> None:
        taken = next((one.rung for one in entry.rungs if one.taken), None)
        since = before.wounded.get(entry.job)
        if taken is None or since is None:
            return
        first = entry.job not in self._healing
        self._healing.setdefault(entry.job, (since, taken.value))
        if isinstance(entry, JobRequeued):
            hours = max(0.0, after.time - self._healing[entry.job][0]) / HOUR
            self._stalled(before, before.jobs[entry.job], taken.value, hours)
            self._queued.add(entry.job)
        if isinstance(entry, SliceMoved) and first:
            self.to_rack.add(("moved",), after.time - since)
        self.exhausted += taken not in HELPED and _no_spare(entry.rungs)

    def _stalled(self, fleet: Fleet, job: Job, rung: str, hours: float) -> None:
        """The whole job stands still: its work is synchronous."""
        _add(self.stalled_gpu_h, (rung,), hours * gpus_of(fleet, job))

    def _follow(self, name: JobId, before: Fleet, after: Fleet) -> None:
        """How long it was blocked, and by what; how it ended."""
        job, old = after.jobs.get(name), before.jobs.get(name)
        since = self._blocked.pop(name, None)
        if old is not None and old.blocked is not None and since is not None:
            labels = (old.blocked.code, band(asked(before, old)))
            passed = after.time - since
            _add(self.blocked_s, labels, passed)
            _add(self.blocked_gpu_s, labels, passed * asked(before, old))
        if job is not None and job.blocked is not None:
            self._blocked[name] = after.time
        if job is None and old is not None:
            self._healing.pop(name, None)
            self._queued.discard(name)
            self._ended(old, after)

    def _ended(self, old: Job, after: Fleet) -> None:
        stone = after.tombstones.get(old.id)
        if stone is None or stone.state is not JobState.FINISHED or old.first_started_at is None:
            return
        wait = old.first_started_at - old.submitted_at
        run = after.time - old.first_started_at
        self.slowdown.add((band(asked(after, old)),), (wait + run) / max(run, LEAST_RUN_S))

    def join(self, newer: "Measures") -> None:
        """Those of a later stretch of the ledger too."""
        for name in ("queue_wait", "slowdown", "to_detect", "to_recover", "to_rack", "to_repair"):
            getattr(self, name).join(getattr(newer, name))
        for mine, theirs in (
            (self.blocked_s, newer.blocked_s),
            (self.blocked_gpu_s, newer.blocked_gpu_s),
            (self.stalled_gpu_h, newer.stalled_gpu_h),
        ):
            for labels, seconds in theirs.items():
                _add(mine, labels, seconds)
        self.faults.update(newer.faults)
        self.broke_whole.update(newer.broke_whole)
        self.exhausted += newer.exhausted
        self.dead_spares += newer.dead_spares
        self._blocked.update(newer._blocked)
        self._healing.update(newer._healing)
        self._queued |= newer._queued


def _no_spare(rungs: tuple[RungTaken, ...]) -> bool:
    return any(one.rung is Rung.SPARE and one.reason.code.startswith("spares.") for one in rungs)


def _add(sums: dict[Labels, float], labels: Labels, more: float) -> None:
    sums[labels] = sums.get(labels, 0.0) + more
