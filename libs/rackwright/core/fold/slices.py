"""How the fleet changes by entries of the nouns `slice` and `defrag`."""

from collections.abc import Iterable

from rackwright.core.evolve import changer, evolve
from rackwright.core.fleet import Fleet, Plan, PlannedVictim
from rackwright.core.fold.jobs import left, placed, recent, requeue
from rackwright.core.fold.seats import (
    earlier_workers,
    ended,
    gates_for,
    give_back,
    leave,
    put_job,
    seat,
    take,
    take_instead,
)
from rackwright.core.jobs import Job, JobState, Slice, WoundKind
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.entries.slice import (
    DefragFinished,
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
    Victim,
    VictimMove,
)
from rackwright.wire.ids import JobId
from rackwright.wire.reasons import Reason

_RESEATED = changer(Slice, "nodes", "incarnations", "mask")
_GATED = changer(Slice, "gates")
_CHANGED = changer(Job, "slices", "membership", "wounds", "state_at")
_SWAPPED = changer(Job, "swaps", "swap_count")


def _evict(fleet: Fleet, victims: Iterable[JobId], by: JobId) -> None:
    """Requeue them: work on lent spares is killed, other work may save before it ends."""
    for victim in victims:
        job = fleet.jobs[victim]
        lent = all(part.lent for part in job.slices)
        saving = min(fleet.policy.recovery_notice_s, job.spec.checkpoint.on_notice_s or 0.0)
        requeue(
            fleet,
            job,
            Reason(code="evicted", numbers={"by": by}),
            preempted=True,
            notice_s=0.0 if lent else saving,
            grace_s=fleet.policy.lent_grace_s if lent else None,
        )


def _changed(fleet: Fleet, job: Job, part: Slice, membership: int, healed: set[int]) -> Job:
    """The job with one slice changed and these ranks no longer wounded."""
    return _CHANGED(
        job,
        slices=tuple(part if old.index == part.index else old for old in job.slices),
        membership=membership,
        wounds=tuple(wound for wound in job.wounds if wound.rank not in healed),
        state_at=fleet.time,
    )


def slice_swapped(fleet: Fleet, entry: SliceSwapped) -> None:
    """Some ranks of one slice go to other nodes of the rack; the others keep their process."""
    _evict(fleet, entry.evicted, entry.job)
    job = fleet.jobs[entry.job]
    part = job.part(entry.index)
    ranks = [swap.rank for swap in entry.swaps]
    codes = {wound.rank: wound for wound in job.wounds}
    for swap in entry.swaps:
        drained = swap.rank in codes and codes[swap.rank].kind is WoundKind.DRAIN
        notice = (job.spec.checkpoint.on_notice_s or 0.0) if drained else 0.0
        grace = job.spec.grace_s if drained else 0.0
        leave(fleet, job, part, (swap.rank,), notice, grace, _after(entry))
    mask, nodes, incarnations = part.mask, list(part.nodes), list(part.incarnations)
    for swap in entry.swaps:
        mask &= ~(1 << swap.old)
        nodes[swap.rank - part.first_rank] = swap.new
        incarnations[swap.rank - part.first_rank] = entry.membership
    for swap in entry.swaps:
        mask |= 1 << swap.new
    part = _RESEATED(part, nodes=tuple(nodes), incarnations=tuple(incarnations), mask=mask)
    take_instead(fleet, job, part)
    part = _gated(fleet, job, part, ranks)
    swaps = left(fleet, job, set(ranks))
    job = _changed(fleet, job, part, entry.membership, set(ranks))
    put_job(fleet, _SWAPPED(job, swaps=swaps, swap_count=job.swap_count + len(ranks)))


def _after(entry: SliceSwapped | SliceMoved | Victim) -> int:
    """The membership at which the job must run before what leaves is told to end; 0: at once."""
    return entry.membership if entry.overlaps else 0


def _gated(fleet: Fleet, job: Job, part: Slice, ranks: Iterable[int]) -> Slice:
    """Gates of these ranks anew, those of the others as they were."""
    fresh = set(ranks)
    kept = tuple(gate for gate in part.gates if gate[0] not in fresh)
    new = gates_for(fleet, part, sorted(fresh), earlier_workers(fleet, job.id))
    return _GATED(part, gates=tuple(sorted(kept + new)))


def slice_moved(fleet: Fleet, entry: SliceMoved) -> None:
    """One slice goes to another rack and keeps its block of ranks."""
    _evict(fleet, entry.evicted, entry.job)
    job = fleet.jobs[entry.job]
    old = job.part(entry.index)
    ranks = set(_ranks(old))
    planned = all(w.kind is WoundKind.DRAIN for w in job.wounds if w.rank in ranks)
    notice = (job.spec.checkpoint.on_notice_s or 0.0) if planned else 0.0
    leave(fleet, job, old, sorted(ranks), notice, job.spec.grace_s, _after(entry))
    give_back(fleet, job.id, old)
    placement = SlicePlacement(
        index=old.index,
        group=old.group,
        replica=old.replica,
        first_rank=old.first_rank,
        rack=entry.rack,
        nodes=entry.nodes,
        gpus=entry.gpus,
        lent=entry.lent,
    )
    swaps = left(fleet, job, ranks)
    part = seat(fleet, job, placement, entry.membership)
    job = _changed(fleet, job, part, entry.membership, ranks)
    put_job(
        fleet,
        evolve(job, swaps=swaps, moved_at=fleet.time, move_count=job.move_count + 1),
    )


def slice_restarted(fleet: Fleet, entry: SliceRestarted) -> None:
    """Ranks whose process is gone, or hangs and is to end, start anew where they are."""
    job = fleet.jobs[entry.job]
    part = job.part(entry.index)
    leave(fleet, job, part, entry.ranks, 0.0, job.spec.grace_s)
    incarnations = list(part.incarnations)
    for rank in entry.ranks:
        incarnations[rank - part.first_rank] = entry.membership
    part = _gated(fleet, job, evolve(part, incarnations=tuple(incarnations)), entry.ranks)
    job = _changed(fleet, job, part, entry.membership, set(entry.ranks))
    put_job(fleet, evolve(job, retries=job.retries + entry.charge))


def defrag_planned(fleet: Fleet, entry: DefragPlanned) -> None:
    """Victims to their homes, the blocked job to the nodes they leave, all gated."""
    planned = []
    for victim in entry.victims:
        job = fleet.jobs[victim.job]
        indexes = {home.index for home in victim.homes}
        queued = victim.move is VictimMove.QUEUE
        before = tuple(part for part in job.slices if queued or part.index in indexes)
        planned.append(
            PlannedVictim(
                job=job.id,
                membership=victim.membership,
                move=victim.move,
                before=before,
                state=job.state.value,
            )
        )
        if queued:
            why = Reason(code="evicted", numbers={"by": entry.job, "plan": entry.plan})
            requeue(fleet, job, why, preempted=True, notice_s=entry.notice_s)
            continue
        for part in before:
            ranks = range(part.first_rank, part.first_rank + part.size)
            notice = 0.0 if victim.overlaps else entry.notice_s
            leave(fleet, job, part, ranks, notice, job.spec.grace_s, _after(victim))
            give_back(fleet, job.id, part)
    for victim in entry.victims:
        if victim.move is not VictimMove.QUEUE:
            _settle(fleet, victim, entry)
    blocked = fleet.jobs[entry.job]
    slices = tuple(seat(fleet, blocked, one, entry.membership) for one in entry.slices)
    after = placed(fleet, blocked, slices, entry.membership, entry.reason)
    put_job(fleet, evolve(after, plan=entry.plan))
    fleet.plans = fleet.plans.set(
        entry.plan,
        Plan(
            id=entry.plan,
            seq=fleet.seq,
            at=fleet.time,
            job=entry.job,
            membership=entry.membership,
            victims=tuple(planned),
            notice_until=fleet.time + entry.notice_s,
            expires_at=entry.expires_at,
            cost_gpu_h=entry.cost_gpu_h,
            benefit_gpu_h=entry.benefit_gpu_h,
        ),
    )
    fleet.plan_times = (*recent(fleet.plan_times, fleet.time), fleet.time)


def _settle(fleet: Fleet, victim: Victim, entry: DefragPlanned) -> None:
    job = fleet.jobs[victim.job]
    homes = {home.index: seat(fleet, job, home, victim.membership) for home in victim.homes}
    healed = {rank for part in homes.values() for rank in _ranks(part)}
    whole = len(homes) == len(job.slices) and not victim.overlaps
    put_job(
        fleet,
        evolve(
            job,
            state=JobState.PLACED if whole else job.state,
            state_at=fleet.time,
            placed_at=fleet.time if whole else job.placed_at,
            slices=tuple(homes.get(part.index, part) for part in job.slices),
            membership=victim.membership,
            wounds=tuple(wound for wound in job.wounds if wound.rank not in healed),
            preempted=(*recent(job.preempted, fleet.time), fleet.time),
            moved_at=fleet.time,
            plan=entry.plan,
            reason=Reason(code="defrag.victim", numbers={"plan": entry.plan, "for": entry.job}),
        ),
    )


def _ranks(part: Slice) -> range:
    return range(part.first_rank, part.first_rank + part.size)


def defrag_withdrawn(fleet: Fleet, entry: DefragWithdrawn) -> None:
    """The spared go back to where their workers still run; the job it served waits again."""
    plan = fleet.plans[entry.plan]
    blocked = fleet.jobs.get(plan.job)
    if blocked is not None and _still_served(blocked, plan):
        requeue(fleet, blocked, entry.reason)
    spared = set(entry.spared)
    for victim in plan.victims:
        job = fleet.jobs.get(victim.job)
        if job is None:
            continue
        if victim.job in spared:
            _restore(fleet, job, victim)
        else:
            put_job(fleet, evolve(job, plan=None))
    fleet.plans = fleet.plans.delete(entry.plan)


def _still_served(job: Job, plan: Plan) -> bool:
    return job.plan == plan.id and job.state is JobState.PLACED


def _restore(fleet: Fleet, job: Job, victim: PlannedVictim) -> None:
    """Old workers are current again; the ones prepared at the home are told to end."""
    before = {part.index: part for part in victim.before}
    for part in job.slices:
        if part.index in before:
            leave(fleet, job, part, _ranks(part), 0.0, 0.0)
            give_back(fleet, job.id, part)
    for part in victim.before:
        take(fleet, job, part)
        ended(fleet, (part.worker(job.id, rank) for rank in _ranks(part)))
    put_job(
        fleet,
        evolve(
            job,
            state=JobState(victim.state),
            state_at=fleet.time,
            slices=tuple(before.get(part.index, part) for part in job.slices),
            membership=job.membership + 1,
            preempted=job.preempted[:-1],
            plan=None,
        ),
    )


def defrag_finished(fleet: Fleet, entry: DefragFinished) -> None:
    """Nothing of the plan is open any more."""
    plan = fleet.plans[entry.plan]
    for name in (plan.job, *(victim.job for victim in plan.victims)):
        job = fleet.jobs.get(name)
        if job is not None and job.plan == plan.id:
            put_job(fleet, evolve(job, plan=None))
    fleet.plans = fleet.plans.delete(entry.plan)
