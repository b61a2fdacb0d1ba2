"""Reads a run back from its ledger: states over time, what happened, what it cost.

Everything in the report and the pictures comes from here, so from the ledger alone.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.trace.states import State, snapshot
from rackwright.bus.ports import Bus, Stored
from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.jobs import Job, JobState
from rackwright.host.archived import read_archive
from rackwright.wire.codec import decode_commit
from rackwright.wire.entries.job import (
    JobBlocked,
    JobPlaced,
    JobQueued,
    JobRequeued,
    JobStarted,
)
from rackwright.wire.entries.node import NodeFailed, NodeUnfit
from rackwright.wire.entries.slice import (
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceSwapped,
)
from rackwright.wire.ids import CellName, JobId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Commit, Entry
from rackwright.wire.subjects import parse_entry

TOPOLOGY = "topology."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The cell at ledger time `at`: node states by rack and place, GPUs by state, the queue."""

    at: float
    nodes: bytes
    gpus: dict[State, int]
    queued: int
    queued_gpus: int
    blocked_gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something worth a mark in a picture. `kind` is the entry's type, `racks` numbers."""

    at: float
    kind: str
    job: str = ""
    racks: tuple[int, ...] = ()
    gpus: int = 0


@dataclass(slots=True, kw_only=True)
class Life:
    """One job: when it was submitted, placed and over, in ledger time; how often it was stopped."""

    gpus: int
    job_class: JobClass
    submitted: float
    placed: float | None = None
    started: float | None = None
    ended: float | None = None
    state: str = ""
    restarts: int = 0
    blocked: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Story:
    """All of it. `episodes`: unbroken blocks by cause; `touched`: interactive jobs evicted."""

    step_s: float
    samples: list[Sample] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    lives: dict[JobId, Life] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    episodes: Counter[str] = field(default_factory=Counter)
    touched: list[str] = field(default_factory=list)
    swap_s: list[float] = field(default_factory=list)
    cost_gpu_h: float = 0.0
    benefit_gpu_h: float = 0.0
    victims: int = 0
    racks: int = 0
    places: int = 0
    begins: float = 0.0
    ends: float = 0.0

    def of_kind(self, kind: str) -> list[Happening]:
        """What happened of one kind."""
        return [one for one in self.happenings if one.kind == kind]


async def whole_ledger(bus: Bus, archive: Path) -> AsyncIterator[Stored]:
    """Every commit up to the present end: what was trimmed from the archive, then the stream."""
    ends = await bus.ledger.ends()
    seq = 0
    for stored in read_archive(archive) if ends.first > 1 else ():
        seq = stored.seq
        yield stored
    async with bus.ledger.follow(seq + 1) as feed:
        while seq < ends.last:
            for stored in await feed.batch():
                seq = stored.seq
                yield stored


async def read_story(bus: Bus, archive: Path, step_s: float) -> Story:
    """Fold the ledger from its first entry, sampling every `step_s` of ledger time."""
    story, fleet, cell = Story(step_s=step_s), Fleet(), CellName(bus.cell)
    async for stored in whole_ledger(bus, archive):
        commit = decode_commit(parse_entry(cell, stored.subject), stored.data)
        folding = fold(fleet, stored.seq, stored.at, commit)
        if story.begins:
            _sample(story, fleet, folding.fleet.time)
        if not folding.void:
            _take(story, fleet, folding.fleet, commit)
        fleet = folding.fleet
    story.racks = len(fleet.racks)
    story.places = max(len(rack.nodes) for rack in fleet.racks.values())
    return story


def _sample(story: Story, fleet: Fleet, until: float) -> None:
    """The fleet as it was at each sampling time before the next commit."""
    at = story.samples[-1].at + story.step_s if story.samples else story.begins
    if at > until:
        return
    nodes, gpus = snapshot(fleet)
    waiting = [fleet.jobs[name] for name in fleet.queued]
    blocked = [one for one in waiting if one.blocked and one.blocked.code.startswith(TOPOLOGY)]
    while at <= until:
        story.samples.append(
            Sample(
                at=at,
                nodes=nodes,
                gpus=gpus,
                queued=len(waiting),
                queued_gpus=sum(_gpus(job) for job in waiting),
                blocked_gpus=sum(_gpus(job) for job in blocked),
            )
        )
        at += story.step_s


def _gpus(job: Job) -> int:
    return (job.spec.nodes or 0) * 4 or job.spec.gpus or 0


def _take(story: Story, before: Fleet, after: Fleet, commit: Commit[Entry]) -> None:
    for entry in commit.entries:
        story.counts[entry.TYPE] += 1
        _life(story, before, after, entry)
        _trouble(story, before, after, entry)


def _life(story: Story, before: Fleet, after: Fleet, entry: Entry) -> None:
    """What an entry means for the job it speaks of."""
    at, lives = after.time, story.lives
    match entry:
        case JobQueued():
            job = after.jobs[entry.job]
            story.begins = story.begins or at
            lives[job.id] = Life(
                gpus=_gpus(job), job_class=job.spec.job_class, submitted=entry.submitted_at
            )
        case JobPlaced():
            lives[entry.job].placed = lives[entry.job].placed or at
        case JobStarted():
            lives[entry.job].started = lives[entry.job].started or at
        case JobRequeued():
            lives[entry.job].restarts += 1
        case JobBlocked():
            _blocked(story, before, entry)
        case _:
            pass
    for name in after.touched_jobs:
        stone = after.tombstones.get(name)
        if stone is not None and name in lives and lives[name].ended is None:
            lives[name].ended, lives[name].state = stone.ended_at, stone.state.value
            story.ends = max(story.ends, stone.ended_at)


def _blocked(story: Story, before: Fleet, entry: JobBlocked) -> None:
    job, code = before.jobs[entry.job], entry.reason.code
    if job.blocked is None or job.blocked.code != code:
        story.episodes[code] += 1
        story.lives[job.id].blocked.append(code)
        if code.startswith(TOPOLOGY):
            story.happenings.append(
                Happening(at=before.time, kind="blocked", job=job.id, gpus=_gpus(job))
            )


def _trouble(story: Story, before: Fleet, after: Fleet, entry: Entry) -> None:
    match entry:
        case SliceSwapped() | SliceMoved():
            _recovered(story, before, after, entry)
        case DefragPlanned():
            names = tuple(victim.job for victim in entry.victims)
            _evicted(story, before, names)
            story.cost_gpu_h += entry.cost_gpu_h
            story.benefit_gpu_h += entry.benefit_gpu_h
            story.victims += len(names)
            emptied = tuple(_emptied(before, names))
            _happened(story, after, entry, entry.job, emptied, _gpus(before.jobs[entry.job]))
        case DefragWithdrawn():
            _happened(story, after, entry, before.plans[entry.plan].job, (), 0)
        case NodeUnfit() | NodeFailed():
            _happened(story, after, entry, "", (after.places[entry.node].rack,), 0)
        case JobRequeued():
            job = before.jobs[entry.job]
            left = tuple(part.rack for part in job.slices)
            _happened(story, after, entry, job.id, left, _gpus(job))
        case _:
            pass


def _recovered(story: Story, before: Fleet, after: Fleet, entry: SliceSwapped | SliceMoved) -> None:
    job = before.jobs[entry.job]
    racks = [job.slices[entry.index].rack]
    if isinstance(entry, SliceMoved):
        racks.append(after.rack_numbers[entry.rack])
    story.swap_s.append(after.time - before.wounded.get(job.id, after.time))
    _evicted(story, before, entry.evicted)
    _happened(story, after, entry, job.id, tuple(racks), _gpus(job))


def _happened(
    story: Story, fleet: Fleet, entry: Entry, job: str, racks: tuple[int, ...], gpus: int
) -> None:
    story.happenings.append(
        Happening(at=fleet.time, kind=entry.TYPE, job=job, racks=racks, gpus=gpus)
    )


def _emptied(fleet: Fleet, victims: Iterable[JobId]) -> Iterator[int]:
    seen = set()
    for name in victims:
        for part in fleet.jobs[name].slices:
            if part.rack not in seen:
                seen.add(part.rack)
                yield part.rack


def _evicted(story: Story, fleet: Fleet, names: Iterable[JobId]) -> None:
    for name in names:
        if fleet.jobs[name].spec.job_class is JobClass.INTERACTIVE:
            story.touched.append(name)


def ended_well(story: Story) -> int:
    """How many jobs finished."""
    return sum(1 for life in story.lives.values() if life.state == JobState.FINISHED)
