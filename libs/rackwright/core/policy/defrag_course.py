"""What becomes of a plan in flight: carried out, or withdrawn while its victims can still stay.

Before the victims are stopped the plan is asked again. Once the notice is over they go home, and
only a plan that will not end is given up.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rackwright.core.fleet import Fleet, Plan, PlannedVictim
from rackwright.core.fold import apply
from rackwright.core.jobs import Job, JobState, Slice, WoundKind
from rackwright.core.legality import illegal
from rackwright.core.policy.placement import place
from rackwright.wire.entries.job import JobNotified
from rackwright.wire.entries.slice import DefragFinished, DefragWithdrawn
from rackwright.wire.ids import JobId, PlanId, WorkerId
from rackwright.wire.reasons import Reason

Runs = Callable[[WorkerId], bool]
"""Does this worker run, by its node's own word?"""


@dataclass(slots=True, kw_only=True)
class Asked:
    """The fleet, and who could stay, for which a plan was last found to be needed still."""

    fleet: Fleet | None = None
    keep: tuple[JobId, ...] = ()


def course(
    fleet: Fleet, plan: Plan, runs: Runs, now: float, asked: Asked
) -> DefragFinished | DefragWithdrawn | None:
    """The entry that ends this plan, if it is to end now. `asked` belongs to the plan: with it the
    same is not looked for twice."""
    served = fleet.jobs.get(plan.job)
    if served is None or served.plan != plan.id:
        return _without_its_job(fleet, plan, runs, now)
    if served.started >= plan.membership:
        return DefragFinished(plan=plan.id)
    if now >= plan.expires_at:
        if not any(_still_there(fleet, worker, runs) for worker in old_workers(plan)):
            return DefragFinished(plan=plan.id)  # all have left: the job is merely slow to start
        return withdrawn(fleet, plan, (), "expired")
    if now >= plan.notice_until:
        return None
    keep = spared(fleet, plan, runs, now)
    if asked.fleet is fleet and asked.keep == keep:
        return None
    found = _asked_again(fleet, plan, served, keep)
    if found is None:
        asked.fleet, asked.keep = fleet, keep
    return found


def _without_its_job(
    fleet: Fleet, plan: Plan, runs: Runs, now: float
) -> DefragFinished | DefragWithdrawn:
    """The job has ended, or has been taken off its nodes by somebody else."""
    stone = fleet.tombstones.get(plan.job)
    if stone is not None and stone.state is JobState.FINISHED:
        return DefragFinished(plan=plan.id)
    code = "requeued" if stone is None else str(stone.state)
    return withdrawn(fleet, plan, spared(fleet, plan, runs, now), code)


def _asked_again(
    fleet: Fleet, plan: Plan, served: Job, keep: tuple[JobId, ...]
) -> DefragWithdrawn | None:
    """Is there no need of it any more, or no use? Only while somebody can be spared by that."""
    if not keep:
        return None
    if any(wound.kind is WoundKind.NODE for wound in served.wounds):
        return withdrawn(fleet, plan, keep, "node-failed")
    made = withdrawn(fleet, plan, keep, "fits")
    after = apply(fleet, made)
    return made if place(after, after.jobs[served.id]) is not None else None


def withdrawn(fleet: Fleet, plan: Plan, keep: tuple[JobId, ...], code: str) -> DefragWithdrawn:
    """The plan is off, and these victims stay where they are."""
    numbers: dict[str, int | float | str] = {
        "job": plan.job,
        "spared": len(keep),
        "victims": len(plan.victims),
        "after_s": round(fleet.time - plan.at, 3),
    }
    reason = Reason(code=f"defrag.{code}", numbers=numbers)
    return DefragWithdrawn(plan=plan.id, spared=keep, reason=reason)


def old_workers(plan: Plan) -> Iterator[WorkerId]:
    """The workers that the plan takes off their nodes."""
    for victim in plan.victims:
        for part in victim.before:
            yield from _workers(victim.job, part)


def _workers(job: JobId, part: Slice) -> Iterator[WorkerId]:
    return (part.worker(job, part.first_rank + at) for at in range(part.size))


def _still_there(fleet: Fleet, worker: WorkerId, runs: Runs) -> bool:
    return worker in fleet.leaving and runs(worker)


def spared(fleet: Fleet, plan: Plan, runs: Runs, now: float) -> tuple[JobId, ...]:
    """Victims that could stay: not stopped yet, and nobody else has been given their nodes.

    Where another victim has its home on such nodes, both stay or neither does.
    """
    if now >= plan.notice_until:
        return ()
    able = {victim.job: victim for victim in plan.victims if _could_stay(fleet, plan, victim, runs)}
    keep = tuple(
        name
        for name, victim in able.items()
        if all(other in able for other in _on_nodes_of(fleet, plan, victim, {name}))
    )
    made = withdrawn(fleet, plan, keep, "asked")
    return keep if illegal(fleet, made) is None else ()


def _could_stay(fleet: Fleet, plan: Plan, victim: PlannedVictim, runs: Runs) -> bool:
    job = fleet.jobs.get(victim.job)
    if job is None or job.plan != plan.id or job.state not in {JobState.PLACED, JobState.RUNNING}:
        return False
    if job.membership != victim.membership:
        return False
    workers = [worker for part in victim.before for worker in _workers(victim.job, part)]
    return all(_still_there(fleet, worker, runs) for worker in workers)


def _on_nodes_of(fleet: Fleet, plan: Plan, victim: PlannedVictim, known: set[JobId]) -> set[JobId]:
    """Victims with a home on the nodes that this one had, and on theirs, and so on."""
    for other in plan.victims:
        there = fleet.jobs.get(other.job)
        if other.job in known or there is None:
            continue
        indexes = {part.index for part in other.before}
        homes = [part for part in there.slices if part.index in indexes]
        if any(_meet(old, home) for old in victim.before for home in homes):
            known.add(other.job)
            _on_nodes_of(fleet, plan, other, known)
    return known


def _meet(one: Slice, other: Slice) -> bool:
    if one.rack != other.rack or not one.mask & other.mask:
        return False
    return not one.gpus or not other.gpus or bool(one.gpus & other.gpus)


def notices(fleet: Fleet, plan: PlanId, victims: Iterable[JobId]) -> tuple[JobNotified, ...]:
    """What the victims of a plan in flight are told."""
    known = fleet.plans[plan]
    notice_s = known.notice_until - known.at
    reason = Reason(code="defrag.victim", numbers={"plan": plan, "for": known.job})
    return tuple(
        JobNotified(job=name, plan=plan, notice_s=notice_s, reason=reason)
        for name in victims
        if name in fleet.jobs
    )


def approved(fleet: Fleet, job: Job, now: float) -> bool:
    """May a plan be carried out for this job, or does it wait for an operator?"""
    return not fleet.policy.defrag_approve or now < job.approved_until
