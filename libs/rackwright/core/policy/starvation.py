"""The job that has waited too long: first of its priority, planned for, and at last kept room for.

A plan (defragmentation, or preemption of lower priority) answers starvation. Only when none has
come for as long as a plan may take are racks kept, and only ones that come free by themselves.
"""

from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job
from rackwright.core.policy.ask import ask_of
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.guarantees import owed
from rackwright.core.policy.limits import ends_at, limit
from rackwright.core.policy.quota import gpus_of
from rackwright.core.racks import Rack
from rackwright.wire.ids import JobId, QueueName


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Racks kept for one job, each with the ledger time at which its last tenant ends: from jobs of
    its priority or a lower one, or where the job waits for what its `queue` is promised, from those
    of other queues that are not owed their place.
    """

    job: JobId
    priority: int
    racks: dict[int, float]
    queue: QueueName | None = None


def starved(fleet: Fleet, now: float) -> dict[int, Job]:
    """Of each priority the queued job that waits longest, once that is `starve_after_s`."""
    found: dict[int, Job] = {}
    for name in fleet.queued:
        job = fleet.jobs[name]
        if now - job.submitted_at < fleet.policy.starve_after_s or job.not_before > now:
            continue
        known = found.get(job.spec.priority)
        if known is None or (job.submitted_at, job.id) < (known.submitted_at, known.id):
            found[job.spec.priority] = job
    return found


def is_starved(fleet: Fleet, job: Job, now: float) -> bool:
    """Is this the starved job of its priority?"""
    if now - job.submitted_at < fleet.policy.starve_after_s:
        return False
    return starved(fleet, now).get(job.spec.priority) is job


def kept_for_starved(fleet: Fleet, now: float) -> list[Kept]:
    """What is kept for starved jobs that no plan has helped, the highest priority first.

    At most `starve_racks` of the racks in all. Looks at every rack while somebody starves.
    """
    room = int(fleet.policy.starve_racks * len(fleet.racks))
    found: list[Kept] = []
    taken = 0
    for _, job in sorted(starved(fleet, now).items(), reverse=True):
        late = fleet.policy.starve_after_s + fleet.policy.defrag_expiry_s
        made = cut(job.spec, fleet.policy, fleet.topology)
        if room < 1 or now - job.submitted_at < late or not isinstance(made, Cut):
            continue
        racks = _first_free(fleet, job, made, taken, room)
        if racks:
            found.append(Kept(job=job.id, priority=job.spec.priority, racks=racks))
            taken |= sum(1 << number for number in racks)
            room -= len(racks)
    return found


def _first_free(fleet: Fleet, job: Job, made: Cut, besides: int, most: int) -> dict[int, float]:
    """The racks that take a slice of the job soonest, as many as it has slices."""
    size = max(piece.nodes for piece in made.pieces)
    ask = ask_of(fleet, job, made, besides)
    pinned = sum(racks for shape, racks in fleet.index.by_shape.items() if shape.pinned)
    ends: list[tuple[float, int]] = []
    for number in bits(ask.racks & ~pinned):
        rack = fleet.racks[number]
        fit = rack.takes_full if ask.across else rack.takes
        end = _last_end(fleet, rack) if fit.bit_count() >= size else None
        if end is not None:
            ends.append((end, number))
    wanted = min(most, len(made.pieces))
    return {number: end for end, number in sorted(ends)[:wanted]}


def _last_end(fleet: Fleet, rack: Rack) -> float | None:
    """Ledger time at which its last tenant ends; None: one has an end that is not known."""
    last = fleet.time
    for tenancy in rack.tenancies:
        end = ends_at(fleet.policy, fleet.jobs[tenancy.job])
        if end is None:
            return None
        last = max(last, end)
    return last


def kept_from(fleet: Fleet, kept: list[Kept], job: Job, now: float) -> int:
    """The racks that this job leaves alone for those that are kept any.

    It may use one that is not free before it would have ended anyway.
    """
    racks = 0
    seconds = limit(fleet.policy, job.spec)
    for one in kept:
        if one.job == job.id or not _is_kept_from(fleet, one, job):
            continue
        for number, free_at in one.racks.items():
            if seconds is None or now + seconds > free_at:
                racks |= 1 << number
    return racks


def _is_kept_from(fleet: Fleet, one: Kept, job: Job) -> bool:
    if one.queue is None:
        return one.priority >= job.spec.priority
    if job.spec.queue == one.queue:
        return False
    made = cut(job.spec, fleet.policy, fleet.topology)
    return not (isinstance(made, Cut) and owed(fleet, job, gpus_of(fleet, made)))
