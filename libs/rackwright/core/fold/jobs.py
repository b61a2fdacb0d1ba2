"""How the fleet changes by entries of the noun `job`."""

from rackwright.core.evolve import changer, evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import (
    bury,
    end_job,
    ended,
    give_back,
    hurry,
    put_job,
    release,
    seat,
    take,
    vacate,
    with_wounds,
)
from rackwright.core.jobs import Job, JobState, Slice, Swapped, Tombstone, Wound, WoundKind
from rackwright.wire.entries.job import (
    JobApproved,
    JobBlocked,
    JobCancelled,
    JobFinished,
    JobFinishing,
    JobNotified,
    JobPinned,
    JobPlaced,
    JobQueued,
    JobRejected,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSuspended,
    WorkerFailed,
)
from rackwright.wire.reasons import Reason

_STATE = changer(Job, "state", "state_at")
_BLOCKED = changer(Job, "blocked", "blocked_at", "blocked_since")
_STARTED = changer(Job, "state", "state_at", "started", "started_at", "first_started_at", "slices")
_PLACED = changer(
    Job,
    "state",
    "state_at",
    "placed_at",
    "slices",
    "membership",
    "blocked",
    "blocked_since",
    "wounds",
    "reason",
)


def job_queued(fleet: Fleet, entry: JobQueued) -> None:
    """A new job waits."""
    put_job(
        fleet,
        Job(
            id=entry.job,
            owner=entry.owner,
            spec=entry.spec,
            spec_hash=entry.spec_hash,
            state=JobState.QUEUED,
            seq=fleet.seq,
            submitted_at=entry.submitted_at,
            state_at=fleet.time,
            warnings=entry.warnings,
        ),
    )


def job_rejected(fleet: Fleet, entry: JobRejected) -> None:
    """Its id is used up all the same."""
    stone = Tombstone(
        id=entry.job,
        name=entry.job,
        owner=entry.owner,
        spec_hash=entry.spec_hash,
        state=JobState.REJECTED,
        ended_at=fleet.time,
        reason=entry.reason,
    )
    bury(fleet, stone)


def job_placed(fleet: Fleet, entry: JobPlaced) -> None:
    """All slices at once."""
    job = fleet.jobs[entry.job]
    slices = tuple(seat(fleet, job, placement, entry.membership) for placement in entry.slices)
    put_job(fleet, placed(fleet, job, slices, entry.membership, entry.reason))


def placed(
    fleet: Fleet, job: Job, slices: tuple[object, ...], membership: int, reason: Reason
) -> Job:
    """The job with its nodes, its ranks not yet up."""
    return _PLACED(
        job,
        state=JobState.PLACED,
        state_at=fleet.time,
        placed_at=fleet.time,
        slices=slices,
        membership=membership,
        blocked=None,
        blocked_since=None,
        wounds=(),
        reason=reason,
    )


def job_blocked(fleet: Fleet, entry: JobBlocked) -> None:
    """Remember why, and since when without a break."""
    job = fleet.jobs[entry.job]
    same = job.blocked is not None and job.blocked.code == entry.reason.code
    since = job.blocked_since if same and job.blocked_since is not None else fleet.time
    put_job(
        fleet,
        _BLOCKED(job, blocked=entry.reason, blocked_at=fleet.time, blocked_since=since),
    )


def job_started(fleet: Fleet, entry: JobStarted) -> None:
    """All ranks are up, so every gate was open: what they waited for has ended."""
    job = fleet.jobs[entry.job]
    release(fleet, job)
    for part in job.slices:
        for _, workers in part.gates:
            ended(fleet, workers)
    first = job.first_started_at if job.first_started_at is not None else fleet.time
    put_job(
        fleet,
        _STARTED(
            job,
            state=JobState.RUNNING,
            state_at=fleet.time if job.state is not JobState.RUNNING else job.state_at,
            started=entry.membership,
            started_at=fleet.time,
            first_started_at=first,
            slices=_ungated(job.slices),
        ),
    )


def _ungated(slices: tuple[Slice, ...]) -> tuple[Slice, ...]:
    if not any(part.gates for part in slices):
        return slices
    return tuple(evolve(part, gates=()) if part.gates else part for part in slices)


def job_finishing(fleet: Fleet, entry: JobFinishing) -> None:
    """A first rank ended well."""
    job = fleet.jobs[entry.job]
    put_job(fleet, _STATE(job, state=JobState.FINISHING, state_at=fleet.time))


def job_finished(fleet: Fleet, entry: JobFinished) -> None:
    """Every rank has ended: nobody is leaving."""
    job = fleet.jobs[entry.job]
    for part in job.slices:
        give_back(fleet, job.id, part)
    end_job(fleet, job, JobState.FINISHED, None)


def job_cancelled(fleet: Fleet, entry: JobCancelled) -> None:
    """Ended by somebody; of an unknown id only the tombstone is new."""
    job = fleet.jobs.get(entry.job)
    if entry.force:
        hurry(fleet, entry.job)
    if entry.job in fleet.tombstones:
        return
    if job is None:
        stone = Tombstone(
            id=entry.job,
            name=entry.job,
            owner=entry.by,
            spec_hash="",
            state=JobState.CANCELLED,
            ended_at=fleet.time,
            reason=entry.reason,
        )
        bury(fleet, stone)
        return
    vacate(fleet, job, notice_s=0.0, grace_s=0.0 if entry.force else job.spec.grace_s)
    end_job(fleet, job, JobState.CANCELLED, entry.reason)


def job_requeued(fleet: Fleet, entry: JobRequeued) -> None:
    """Back into the queue with its first submit time."""
    job = fleet.jobs[entry.job]
    requeue(fleet, job, entry.reason, not_before=entry.not_before, charge=entry.charge)


def requeue(
    fleet: Fleet,
    job: Job,
    reason: Reason,
    *,
    not_before: float = 0.0,
    charge: bool = False,
    preempted: bool = False,
    notice_s: float = 0.0,
    grace_s: float | None = None,
) -> None:
    """Take the job off its nodes and queue it again."""
    grace = job.spec.grace_s if grace_s is None else grace_s
    swaps = left(fleet, job, {wound.rank for wound in job.wounds})
    vacate(fleet, job, notice_s=notice_s, grace_s=grace)
    put_job(
        fleet,
        evolve(
            job,
            state=JobState.QUEUED,
            state_at=fleet.time,
            slices=(),
            shed=(),
            wounds=(),
            previous=_previous(job),
            reason=reason,
            not_before=not_before,
            retries=job.retries + charge,
            requeues=job.requeues + 1,
            swaps=swaps,
            preempted=recent(job.preempted, fleet.time) + ((fleet.time,) if preempted else ()),
            blocked=None,
            blocked_since=None,
            plan=None,
            started_at=None,
        ),
    )


def _previous(job: Job) -> tuple[tuple[int, int], ...]:
    if not job.spec.prefer_previous:
        return ()
    return tuple((part.rack, part.mask) for part in job.slices)


def left(fleet: Fleet, job: Job, ranks: set[int]) -> tuple[Swapped, ...]:
    """The nodes its wounds have driven the job from, now those of these ranks too.

    A process that ended by itself is no fault of its node.
    """
    kept = tuple(one for one in job.swaps if one.at > fleet.time - fleet.policy.poison_window_s)
    fresh = []
    for wound in job.wounds:
        if wound.rank in ranks and (wound.kind is WoundKind.NODE or not wound.ended):
            part = job.slice_of(wound.rank)
            node = fleet.node_at(part.rack, part.nodes[wound.rank - part.first_rank])
            fresh.append(Swapped(at=fleet.time, node=node.name, code=wound.code))
    return (*kept, *fresh)[-64:]


def recent(times: tuple[float, ...], now: float) -> tuple[float, ...]:
    """Those of the last 24 hours."""
    return tuple(at for at in times if at > now - 86_400.0)


def job_suspended(fleet: Fleet, entry: JobSuspended) -> None:
    """Off its nodes until somebody resumes it."""
    job = fleet.jobs[entry.job]
    vacate(fleet, job, notice_s=0.0, grace_s=job.spec.grace_s)
    put_job(
        fleet,
        evolve(
            job,
            state=JobState.SUSPENDED,
            state_at=fleet.time,
            slices=(),
            shed=(),
            wounds=(),
            reason=entry.reason,
            plan=None,
        ),
    )


def job_resumed(fleet: Fleet, entry: JobResumed) -> None:
    """Queued again, and no longer suspect: its past swaps do not count."""
    job = fleet.jobs[entry.job]
    put_job(
        fleet,
        evolve(job, state=JobState.QUEUED, state_at=fleet.time, swaps=(), not_before=0.0),
    )


def job_notified(fleet: Fleet, entry: JobNotified) -> None:
    """It has been told; what stops it is another entry. Maintenance and idle GPUs are noted."""
    if entry.idle_s is not None:
        put_job(fleet, evolve(fleet.jobs[entry.job], idle_told=fleet.time))
    if entry.window is not None:
        told = (entry.job, entry.notice_s)
        fleet.maintenance = tuple(
            evolve(one, told=(*one.told, told)) if one.seq == entry.window else one
            for one in fleet.maintenance
        )


def job_pinned(fleet: Fleet, entry: JobPinned) -> None:
    """An operator's pin; its tenancies say so too."""
    job = evolve(fleet.jobs[entry.job], pinned_by=entry.by if entry.pinned else "")
    for part in job.slices:
        give_back(fleet, job.id, part)
    put_job(fleet, job)
    for part in job.slices:
        take(fleet, job, part)


def job_approved(fleet: Fleet, entry: JobApproved) -> None:
    """A plan may be carried out for it."""
    put_job(fleet, evolve(fleet.jobs[entry.job], approved_until=entry.until))


def worker_failed(fleet: Fleet, entry: WorkerFailed) -> None:
    """The rank has no process any more; without an exit code it may still have one that must end.

    A worker that hangs or has not started in time is only known to be useless, not to be gone.
    """
    job = fleet.jobs[entry.job]
    wound = Wound(
        rank=entry.rank,
        kind=WoundKind.PROCESS,
        code=entry.reason.code,
        at=fleet.time,
        charge=_is_charged(entry),
        ended=entry.code is not None,
    )
    put_job(fleet, with_wounds(job, (wound,)))


def _is_charged(entry: WorkerFailed) -> bool:
    """Does the owner pay for it: an exit by itself, or the rank that is blamed for a hang?"""
    if entry.code is None:
        return entry.reason.code == "progress-timeout"
    return entry.reason.code.startswith("exit.")
