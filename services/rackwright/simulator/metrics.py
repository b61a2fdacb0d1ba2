"""What a run has shown: counts, waits, fragmentation over time, and what happened when.

Definitions are those of the policy page, section 4; GPU-seconds by state come from `core.accounts`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.accounts import band
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.occupancy import startable
from rackwright.core.racks import Node, Rack
from rackwright.host.steps import Step
from rackwright.simulator.fragmentation import block_fragmentation
from rackwright.simulator.runs import Run
from rackwright.simulator.workload import HOUR
from rackwright.wire.entries.job import (
    JobBlocked,
    JobFailed,
    JobPlaced,
    JobRequeued,
    JobStarted,
    JobSuspended,
)
from rackwright.wire.entries.slice import (
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceSwapped,
)
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Entry

TOPOLOGY = "topology."
SHORT_S = 600.0  # of work: shorter jobs do not count as slowed down by more
MOST_HAPPENINGS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cell at `at` seconds of the run. `block_fragmentation` as Slurm counts it."""

    at: float
    queued: int
    queued_gpus: int
    blocked_gpus: int
    fragmentation: float
    block_fragmentation: int
    whole_racks: int
    used_gpus: int
    down_nodes: int
    idle_gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something for the timeline: when, what kind of entry, which job, in words."""

    at: float
    kind: str
    job: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One job that is over. Seconds; `wait_s` is from submit to its first nodes."""

    band: str
    job_class: str
    state: str
    gpus: int
    wait_s: float
    completion_s: float
    work_s: float
    lost_s: float
    racks: int
    at: float

    @property
    def slowdown(self) -> float:
        """Bounded slowdown: time in the cell over time of work, at least ten minutes of it."""
        return max(1.0, self.completion_s / max(self.work_s, SHORT_S))


@dataclass(slots=True, kw_only=True)
class Metrics:
    """Watches one run from `warm_s` on; what was before is not counted, except in `samples`."""

    start: float
    warm_s: float = 0.0
    runs: dict[JobId, Run] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    blocked: dict[JobId, float] = field(default_factory=dict)
    causes: Counter[str] = field(default_factory=Counter)
    to_rack: dict[str, list[float]] = field(default_factory=dict)
    touched: int = 0
    preempted: int = 0
    cost_gpu_h: float = 0.0
    victims: dict[JobId, float] = field(default_factory=dict)
    victims_lost_gpu_h: float = 0.0
    commits: int = 0
    voids: int = 0
    _down: dict[int, tuple[tuple[Node, ...], int]] = field(default_factory=dict)

    def watch(self, before: Fleet, step: Step) -> None:
        """One commit."""
        self.commits += 1
        self.voids += step.folding.void
        after = step.folding.fleet
        if step.folding.void or after.time < self.start + self.warm_s:
            return
        self.counts[step.commit.type] += len(step.commit.entries)
        for entry in step.commit.entries:
            self._entry(before, after, entry)

    def _entry(self, before: Fleet, after: Fleet, entry: Entry) -> None:
        match entry:
            case JobBlocked():
                self._blocked(before, after, entry)
            case JobPlaced():
                self._to_rack(entry.job, after.time, "natural")
            case JobStarted():
                self._victim_up(entry.job)
            case SliceSwapped() | SliceMoved():
                self._evicted(before, entry.evicted)
                self._happened(after, entry, entry.job, "")
            case DefragPlanned():
                names = tuple(victim.job for victim in entry.victims)
                self._evicted(before, names)
                self._to_rack(entry.job, after.time, "defragmented")
                self.cost_gpu_h += entry.cost_gpu_h
                for name in names:
                    if name in self.runs:
                        self.victims[name] = self.runs[name].lost_s
                self._happened(after, entry, entry.job, f"moves {', '.join(names)}")
            case DefragWithdrawn():
                self._happened(after, entry, "", entry.reason.code)
            case JobRequeued() | JobFailed() | JobSuspended():
                self._happened(after, entry, entry.job, entry.reason.code)
            case _:
                pass

    def _blocked(self, before: Fleet, after: Fleet, entry: JobBlocked) -> None:
        job = before.jobs[entry.job]
        code = entry.reason.code
        if job.blocked is None or job.blocked.code != code:
            self.causes[str(code)] += 1
        if code.startswith(TOPOLOGY) and entry.job not in self.blocked:
            self.blocked[entry.job] = after.time
            self._happened(after, entry, entry.job, f"blocked: {code}")

    def _to_rack(self, name: JobId, at: float, how: str) -> None:
        since = self.blocked.pop(name, None)
        if since is not None:
            self.to_rack.setdefault(how, []).append(at - since)

    def _evicted(self, fleet: Fleet, names: Iterable[JobId]) -> None:
        for name in names:
            self.preempted += 1
            if fleet.jobs[name].spec.job_class is JobClass.INTERACTIVE:
                self.touched += 1

    def _victim_up(self, name: JobId) -> None:
        lost = self.victims.pop(name, None)
        run = self.runs.get(name)
        if lost is not None and run is not None:
            self.victims_lost_gpu_h += (run.lost_s - lost) * run.job.gpus / HOUR

    def _happened(self, fleet: Fleet, entry: Entry, job: str, text: str) -> None:
        if len(self.happenings) < MOST_HAPPENINGS:
            at = fleet.time - self.start
            self.happenings.append(Happening(at=at, kind=entry.TYPE, job=job, text=text))

    def over(self, run: Run, state: str, now: float) -> None:
        """A job has ended."""
        if run.submitted < self.start + self.warm_s:
            return
        placed = run.first_placed if run.first_placed is not None else now
        self.ended.append(
            Ended(
                band=band(run.job.gpus),
                job_class=run.job.job_class.value,
                state=state,
                gpus=run.job.gpus,
                wait_s=max(0.0, placed - run.submitted),
                completion_s=now - run.submitted,
                work_s=run.job.work_s,
                lost_s=run.lost_s,
                racks=run.racks,
                at=now - self.start,
            )
        )

    def sample(self, fleet: Fleet, now: float) -> None:
        """The cell as it is."""
        waiting: list[Job] = [fleet.jobs[name] for name in fleet.queued]
        blocked = [job for job in waiting if job.blocked and job.blocked.code.startswith(TOPOLOGY)]
        room = startable(fleet)
        self.samples.append(
            Sample(
                at=now - self.start,
                queued=len(waiting),
                queued_gpus=sum(asked_gpus(fleet, job) for job in waiting),
                blocked_gpus=sum(asked_gpus(fleet, job) for job in blocked),
                fragmentation=room.fragmentation,
                block_fragmentation=slurm_metric(fleet),
                whole_racks=room.whole,
                used_gpus=sum(use.gpus + use.lent for use in fleet.usage.values()),
                idle_gpus=idle_gpus(fleet),
                down_nodes=sum(self._down_in(rack) for rack in fleet.racks.values()),
            )
        )

    def _down_in(self, rack: Rack) -> int:
        """Nodes that take no work; counted anew when one has changed."""
        known = self._down.get(rack.number)
        if known is None or known[0] is not rack.nodes:
            down = sum(not node.schedulable for node in rack.nodes)
            known = self._down[rack.number] = (rack.nodes, down)
        return known[1]


def idle_gpus(fleet: Fleet) -> int:
    """GPUs without a tenant on nodes that take work."""
    idle = 0
    for rack in fleet.racks.values():
        per_node = rack.spec.gpus_per_node
        idle += (rack.free & rack.takes_one).bit_count() * per_node
        idle += sum(
            per_node - taken.bit_count()
            for place, taken in rack.partial
            if rack.takes_one >> place & 1
        )
    return idle


def asked_gpus(fleet: Fleet, job: Job) -> int:
    """GPUs that a job asks for."""
    return job.spec.gpus or (job.spec.nodes or 0) * fleet.topology.gpus_per_node


def slurm_metric(fleet: Fleet) -> int:
    """Slurm's metric with a rack as the base block, and blocks of 2, 4 and 8 racks."""
    unavailable: list[bool] = []
    size = 0
    for number in sorted(fleet.racks):
        rack = fleet.racks[number]
        size = size or len(rack.nodes)
        usable = rack.usable
        unavailable += [not usable >> place & 1 for place in range(len(rack.nodes))]
    return block_fragmentation(unavailable, [size, 2 * size, 4 * size, 8 * size]) if size else 0
