"""Putting slices on nodes and taking them off, with the gates that follow from it.

Gates are derived here and nowhere else: whoever writes an entry cannot leave one out. A worker that
is taken off its node and is not known to have ended becomes `leaving`; a later worker of its rank
or of its GPUs may start only when it has ended.
"""

from collections.abc import Iterable, Set

from rackwright.core.evolve import changer, evolve
from rackwright.core.fleet import Fleet, Place
from rackwright.core.index import places
from rackwright.core.jobs import (
    ENDED,
    Job,
    JobState,
    Slice,
    Tombstone,
    Wound,
    is_movable,
    protected,
)
from rackwright.core.racks import Leaving, Rack, Tenancy, reseated, seated, vacated
from rackwright.core.shares import Usage, counted
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.ids import JobId, WorkerId, parse_worker, worker_id
from rackwright.wire.nodes import Fitness
from rackwright.wire.reasons import Reason

TOMBSTONE_S = 7 * 86_400.0

_LEAVING = changer(Rack, "leaving")
_WOUNDED = changer(Job, "wounds")


def set_rack(fleet: Fleet, rack: Rack) -> None:
    """Store a rack whose counters have not changed."""
    fleet.racks = fleet.racks.set(rack.number, rack)
    fleet.touched_racks.add(rack.number)


def put_rack(fleet: Fleet, before: Rack | None, after: Rack) -> None:
    """Store a changed rack and keep the index in step."""
    set_rack(fleet, after)
    fleet.index = fleet.index.moved(before, after)


def put_job(fleet: Fleet, job: Job) -> None:
    """Store a changed job and keep the sets of jobs by what they need in step."""
    name = job.id
    before = fleet.jobs.get(name)
    fleet.jobs = fleet.jobs.set(name, job)
    fleet.touched_jobs.add(name)
    if before is None or job.state is not before.state:
        _wait(fleet, job, before)
    starting = is_starting(job)
    if starting != (before is not None and is_starting(before)):
        sets = fleet.starting
        fleet.starting = sets.set(name, fleet.seq) if starting else sets.delete(name)
    if job.wounds:
        _note_wounds(fleet, job)
    elif before is not None and before.wounds:
        forget_wounds(fleet, name)
    had = before.slices if before is not None else ()
    if job.slices is not had:
        _use(fleet, job, had, job.slices)


def _wait(fleet: Fleet, job: Job, before: Job | None) -> None:
    """Its state has changed: does it wait in the queue now, did it before?"""
    if job.state is JobState.QUEUED:
        fleet.queued = fleet.queued.set(job.id, fleet.seq)
    elif before is not None and before.state is JobState.QUEUED:
        fleet.queued = fleet.queued.delete(job.id)


def _use(fleet: Fleet, job: Job, had: tuple[Slice, ...], has: tuple[Slice, ...]) -> None:
    """What its owner uses from now on."""
    gpus, lent = gpus_in_use(fleet, has) if has else (0, 0)
    before, lent_before = gpus_in_use(fleet, had) if had else (0, 0)
    if gpus != before or lent != lent_before:
        fleet.counts = counted(fleet.counts, job, gpus - before, lent - lent_before)
        account = (job.spec.queue, job.owner)
        known = fleet.usage.get(account, Usage())
        made = known.with_(gpus - before, lent - lent_before, fleet.time)
        usage = fleet.usage
        fleet.usage = usage.delete(account) if made.empty else usage.set(account, made)


def gpus_in_use(fleet: Fleet, slices: Iterable[Slice]) -> tuple[int, int]:
    """GPUs of these slices as their racks were defined; those on lent spares apart."""
    gpus = lent = 0
    for part in slices:
        here = part.gpus.bit_count() or part.size * fleet.racks[part.rack].spec.gpus_per_node
        if part.lent:
            lent += here
        else:
            gpus += here
    return gpus, lent


def is_starting(job: Job) -> bool:
    """Has it nodes on which not all of its ranks have been up yet?"""
    return job.started < job.membership and bool(job.slices)


def _note_wounds(fleet: Fleet, job: Job) -> None:
    if job.id not in fleet.wounded:
        fleet.wounded = fleet.wounded.set(job.id, job.wounds[0].at)
    bad = [wound.at for wound in job.wounds if wound.kind == "node"]
    if bad and job.id not in fleet.fresh_faults:
        fleet.fresh_faults = fleet.fresh_faults.set(job.id, max(bad))
    elif not bad and job.id in fleet.fresh_faults:
        fleet.fresh_faults = fleet.fresh_faults.delete(job.id)


def forget_wounds(fleet: Fleet, job: JobId) -> None:
    """The job needs no recovery any more."""
    if job in fleet.wounded:
        fleet.wounded = fleet.wounded.delete(job)
    if job in fleet.fresh_faults:
        fleet.fresh_faults = fleet.fresh_faults.delete(job)


def end_job(fleet: Fleet, job: Job, state: JobState, reason: Reason | None) -> None:
    """The job is over: only its tombstone stays, for a week of ledger time."""
    assert state in ENDED
    if job.state is JobState.QUEUED and job.id in fleet.queued:
        fleet.queued = fleet.queued.delete(job.id)
    if job.id in fleet.starting:
        fleet.starting = fleet.starting.delete(job.id)
    forget_wounds(fleet, job.id)
    release(fleet, job)
    if job.id in fleet.jobs:
        _use(fleet, job, fleet.jobs[job.id].slices, ())
        fleet.jobs = fleet.jobs.delete(job.id)
    bury(
        fleet,
        Tombstone(
            id=job.id,
            name=job.spec.name,
            owner=job.owner,
            spec_hash=job.spec_hash,
            state=state,
            ended_at=fleet.time,
            reason=reason,
        ),
    )


def bury(fleet: Fleet, stone: Tombstone) -> None:
    """Keep a tombstone, and drop those that are older than a week."""
    fleet.tombstones = fleet.tombstones.set(stone.id, stone)
    fleet.touched_jobs.add(stone.id)
    fleet.ends = fleet.ends.set(fleet.ends_next, stone.id)
    fleet.ends_next += 1
    while fleet.ends_first < fleet.ends_next:
        oldest = fleet.tombstones[fleet.ends[fleet.ends_first]]
        if oldest.ended_at > fleet.time - TOMBSTONE_S:
            return
        fleet.tombstones = fleet.tombstones.delete(oldest.id)
        fleet.ends = fleet.ends.delete(fleet.ends_first)
        fleet.ends_first += 1


def seat(fleet: Fleet, job: Job, placement: SlicePlacement, membership: int) -> Slice:
    """Give a slice its nodes, every rank with a new incarnation; returns it with its gates."""
    number = fleet.rack_numbers[placement.rack]
    nodes = places(placement.nodes)
    part = Slice(
        index=placement.index,
        group=placement.group,
        replica=placement.replica,
        first_rank=placement.first_rank,
        rack=number,
        mask=placement.nodes,
        gpus=placement.gpus,
        nodes=nodes,
        incarnations=(membership,) * len(nodes),
        lent=placement.lent,
    )
    take(fleet, job, part)
    if fleet.leaving:
        earlier = earlier_workers(fleet, job.id)
        ranks = range(part.first_rank, part.first_rank + part.size)
        part = evolve(part, gates=gates_for(fleet, part, ranks, earlier))
    return part


def earlier_workers(fleet: Fleet, job: JobId) -> dict[int, list[WorkerId]]:
    """Workers of this job that are leaving, by rank; not those that serve on until others do."""
    earlier: dict[int, list[WorkerId]] = {}
    known = fleet.jobs.get(job)
    staying = serving_on(fleet, job) if known is not None and is_movable(known.spec) else ()
    for worker in fleet.leaving_of.get(job, ()):
        if worker not in staying:
            earlier.setdefault(parse_worker(worker)[1], []).append(worker)
    return earlier


def serving_on(fleet: Fleet, name: JobId) -> set[WorkerId]:
    """Its leaving workers that are not told to end before their successors run."""
    places = {fleet.leaving[worker].rack for worker in fleet.leaving_of.get(name, ())}
    return {
        one.worker
        for number in places
        for one in fleet.racks[number].leaving
        if one.after and parse_worker(one.worker)[0] == name
    }


def release(fleet: Fleet, job: Job) -> None:
    """Whatever of a movable service serves on is told to end now."""
    if not is_movable(job.spec):
        return
    _tell_anew(fleet, serving_on(fleet, job.id), after=0)


def gates_for(
    fleet: Fleet, part: Slice, ranks: Iterable[int], earlier: dict[int, list[WorkerId]]
) -> tuple[tuple[int, tuple[WorkerId, ...]], ...]:
    """By rank: leaving workers of that rank, wherever they are, and of the GPUs it will use."""
    by_node: dict[int, list[Leaving]] = {}
    for leaving in fleet.racks[part.rack].leaving:
        if part.mask >> leaving.node & 1:
            by_node.setdefault(leaving.node, []).append(leaving)
    gates = []
    for rank in ranks:
        waits = set(earlier.get(rank, ()))
        for leaving in by_node.get(part.nodes[rank - part.first_rank], ()):
            if not part.gpus or not leaving.gpus or leaving.gpus & part.gpus:
                waits.add(leaving.worker)
        if waits:
            gates.append((rank, tuple(sorted(waits))))
    return tuple(gates)


def take(fleet: Fleet, job: Job, part: Slice) -> None:
    """Record the slice as a tenant of its rack."""
    rack = fleet.racks[part.rack]
    put_rack(fleet, rack, seated(rack, fleet.policy, _tenancy(job, part)))


def take_instead(fleet: Fleet, job: Job, part: Slice) -> None:
    """The slice has these nodes of its rack now, and no more those that it had."""
    rack = fleet.racks[part.rack]
    put_rack(fleet, rack, reseated(rack, fleet.policy, _tenancy(job, part)))


def _tenancy(job: Job, part: Slice) -> Tenancy:
    return Tenancy(
        job=job.id,
        slice=part.index,
        mask=part.mask,
        gpus=part.gpus,
        protected=protected(job.spec, part.size) and not part.lent,
        pinned=job.pinned,
        lent=part.lent,
    )


def give_back(fleet: Fleet, job: JobId, part: Slice) -> None:
    """The slice is no tenant any more."""
    rack = fleet.racks[part.rack]
    put_rack(fleet, rack, vacated(rack, fleet.policy, job, part.index))


def ended_ranks(fleet: Fleet, job: Job) -> set[int]:
    """Ranks whose current worker is known to have ended."""
    return {wound.rank for wound in job.wounds if wound.ended}


def leave(
    fleet: Fleet,
    job: Job,
    part: Slice,
    ranks: Iterable[int],
    notice_s: float,
    grace_s: float,
    after: int = 0,
) -> None:
    """The current workers of these ranks are to end, unless they are known to have ended.

    On a node that is unfit there is neither notice nor grace (P2, F2). `after`: they serve on until
    the job runs at this membership.
    """
    over = ended_ranks(fleet, job)
    rack = fleet.racks[part.rack]
    made = []
    for rank in ranks:
        if rank in over:
            continue
        place = part.nodes[rank - part.first_rank]
        node = rack.nodes[place]
        useful = node.session is not None and node.fitness is not Fitness.NONE
        healthy = useful and not node.suspected
        worker = worker_id(job.id, rank, part.incarnations[rank - part.first_rank])
        made.append(
            Leaving(
                worker=worker,
                node=place,
                gpus=part.gpus,
                notice_s=notice_s if healthy else 0.0,
                grace_s=grace_s if healthy else 0.0,
                after=after,
            )
        )
        fleet.leaving = fleet.leaving.set(worker, Place(rack=part.rack, node=place))
    if made:
        set_rack(fleet, _LEAVING(rack, leaving=(*rack.leaving, *made)))
        mine = (*fleet.leaving_of.get(job.id, ()), *(one.worker for one in made))
        fleet.leaving_of = fleet.leaving_of.set(job.id, mine)


def vacate(fleet: Fleet, job: Job, *, notice_s: float, grace_s: float) -> None:
    """Take all slices of a job off their nodes; their workers are leaving."""
    for part in job.slices:
        ranks = range(part.first_rank, part.first_rank + part.size)
        leave(fleet, job, part, ranks, notice_s, grace_s)
        give_back(fleet, job.id, part)
    release(fleet, job)


def hurry(fleet: Fleet, name: JobId) -> None:
    """Its leaving workers have neither notice nor grace any more."""
    mine = set(fleet.leaving_of.get(name, ()))
    _tell_anew(fleet, mine, notice_s=0.0, grace_s=0.0, after=0)


def _tell_anew(fleet: Fleet, mine: Set[WorkerId], **changes: float) -> None:
    """Change how these leaving workers are told to end."""
    for number in sorted({fleet.leaving[worker].rack for worker in mine}):
        rack = fleet.racks[number]
        made = (evolve(one, **changes) if one.worker in mine else one for one in rack.leaving)
        set_rack(fleet, evolve(rack, leaving=tuple(made)))


def ended(fleet: Fleet, workers: Iterable[WorkerId]) -> None:
    """These workers have ended for good: nothing waits for them any more."""
    by_rack: dict[int, set[WorkerId]] = {}
    by_job: dict[JobId, set[WorkerId]] = {}
    for worker in workers:
        place = fleet.leaving.get(worker)
        if place is not None:
            fleet.leaving = fleet.leaving.delete(worker)
            by_rack.setdefault(place.rack, set()).add(worker)
            by_job.setdefault(parse_worker(worker)[0], set()).add(worker)
    for job, gone in by_job.items():
        left = tuple(one for one in fleet.leaving_of[job] if one not in gone)
        of = fleet.leaving_of
        fleet.leaving_of = of.set(job, left) if left else of.delete(job)
    for number, gone in by_rack.items():
        rack = fleet.racks[number]
        rest = tuple(one for one in rack.leaving if one.worker not in gone)
        set_rack(fleet, _LEAVING(rack, leaving=rest))


def with_wounds(job: Job, wounds: Iterable[Wound]) -> Job:
    """The job with these wounds added; a rank has one wound, the gravest, node before process."""
    by_rank = {wound.rank: wound for wound in job.wounds}
    order = {"node": 2, "process": 1, "drain": 0}
    for wound in wounds:
        old = by_rank.get(wound.rank)
        kept = wound if old is None or order[wound.kind] > order[old.kind] else old
        over = wound.ended or (old is not None and old.ended)
        by_rank[wound.rank] = kept if kept.ended == over else evolve(kept, ended=over)
    return _WOUNDED(job, wounds=tuple(by_rank[rank] for rank in sorted(by_rank)))
