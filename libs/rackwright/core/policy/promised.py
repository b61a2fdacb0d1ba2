"""Whole racks that others leave to a job which waits for what its queue is promised.

Work that has just begun is not taken back for a while. Without this, short work of other queues
would take each rack as it comes free, and a job of several slices would never get them all.
"""

from collections import Counter
from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.ask import ask_of, spare_racks
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.draft import Draft
from rackwright.core.policy.guarantees import below, guaranteed, used
from rackwright.core.policy.quota import gpus_of
from rackwright.core.policy.starvation import Kept
from rackwright.wire.ids import JobId, QueueName
from rackwright.wire.reasons import Cause

WAITS_FOR_ROOM = frozenset({Cause.CAPACITY, Cause.TOPOLOGY_MOVABLE, Cause.TOPOLOGY_PINNED})


def owed_and_waiting(fleet: Fleet) -> tuple[JobId, ...]:
    """Blocked jobs of queues that have less than they are promised, in the order of their turns, as
    far as the promise goes: those that have slices of several nodes, and no more than there are
    racks. Looks at every queued job while there is such a queue."""
    short = set(below(fleet))
    if not short:
        return ()
    queued = (fleet.jobs[name] for name in fleet.queued)
    waiting = [job for job in queued if _waits(job) and job.spec.queue in short]
    found: list[JobId] = []
    asked: Counter[QueueName] = Counter()
    for job in sorted(waiting, key=_turn):
        queue, made = job.spec.queue, cut(job.spec, fleet.policy, fleet.topology)
        gpus = gpus_of(fleet, made) if isinstance(made, Cut) else 0
        if gpus and used(fleet, queue) + asked[queue] + gpus <= guaranteed(fleet, queue):
            asked[queue] += gpus
            if isinstance(made, Cut) and _gangs(made):
                found.append(job.id)
        if len(found) == len(fleet.racks):
            break
    return tuple(found)


def kept_for_promised(fleet: Fleet, waiting: Iterable[JobId]) -> list[Kept]:
    """What is kept for these jobs, as far as they still wait: of the racks without a tenant as many
    as each has slices of several nodes."""
    found: list[Kept] = []
    left = _without_tenants(fleet) & ~spare_racks(fleet)
    for name in waiting:
        if not left:
            break
        job = fleet.jobs.get(name)
        made = cut(job.spec, fleet.policy, fleet.topology) if job is not None else None
        if job is None or not isinstance(made, Cut) or not _waits(job):
            continue
        racks = _best_of(fleet, job, made, left)
        left &= ~sum(1 << number for number in racks)
        free = dict.fromkeys(racks, fleet.time)
        kept = Kept(job=name, priority=job.spec.priority, racks=free, queue=job.spec.queue)
        found.append(kept)
    return found


def _waits(job: Job) -> bool:
    queued, why = job.state is JobState.QUEUED, job.blocked
    return queued and why is not None and why.code in WAITS_FOR_ROOM


def _turn(job: Job) -> tuple[int, float, str]:
    return -job.spec.priority, job.submitted_at, job.id


def _gangs(made: Cut) -> list[int]:
    """Nodes of the slices that have several."""
    return [piece.nodes for piece in made.pieces if piece.nodes > 1]


def _without_tenants(fleet: Fleet) -> int:
    found = 0
    for shape, racks in fleet.index.by_shape.items():
        found |= racks if shape.empty else 0
    return found


def _best_of(fleet: Fleet, job: Job, made: Cut, racks: int) -> list[int]:
    """Those of these racks that take a slice of the job, the best ones by placement's order."""
    sizes = _gangs(made)
    if not sizes:
        return []
    ask = ask_of(fleet, job, made, 0)
    offers = Draft(fleet=fleet, ask=ask, same=None).offers(max(sizes), ask.racks & racks)
    best = [number for _, having in sorted(offers.items()) for number in bits(having)]
    return best[: len(sizes)]
