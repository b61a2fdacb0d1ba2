"""Why a job does not run: computed when somebody asks, by the functions that decide."""

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.defrag_course import approved
from rackwright.core.policy.pinning import Checkpoints
from rackwright.core.policy.placement import place
from rackwright.core.policy.promised import kept_for_promised, owed_and_waiting
from rackwright.core.policy.starvation import kept_for_starved, kept_from
from rackwright.gateway.context import Context
from rackwright.gateway.machine import checkpoints
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Cause, Reason


def waits(context: Context, job: Job) -> Reason | None:
    """Why it does not run now; None if it does."""
    fleet, now = context.fleet, context.now
    match job.state:
        case JobState.QUEUED:
            return _queued(fleet, job, now, checkpoints(context.state, fleet))
        case JobState.PLACED:
            return _coming_up(context, job)
        case JobState.SUSPENDED:
            return job.reason
        case _:
            return None


def _queued(fleet: Fleet, job: Job, now: float, saved: Checkpoints) -> Reason:
    until = fleet.paused_until(Automation.PLACEMENT, now)
    if until is not None:
        left = round(until - now, 1)
        numbers: dict[str, int | float | str] = {
            "automation": Automation.PLACEMENT.value,
            "for_s": left,
        }
        return Reason(code="paused", numbers=numbers)
    if now < job.not_before:
        return Reason(code="backoff", numbers={"for_s": round(job.not_before - now, 1)})
    kept = [*kept_for_promised(fleet, owed_and_waiting(fleet)), *kept_for_starved(fleet, now)]
    if place(fleet, job, kept_from(fleet, kept, job, now)) is not None:
        return Reason(code="fits")
    found = why_blocked(fleet, job, now, saved)
    if found.code == Cause.TOPOLOGY_MOVABLE and not approved(fleet, job, now):
        return Reason(code=found.code, numbers={**found.numbers, "approve": job.id})
    return found


def _coming_up(context: Context, job: Job) -> Reason:
    """Placed, and not all ranks up: gates first, then who is ready."""
    fleet = context.fleet
    closed = [
        worker
        for part in job.slices
        for _, workers in part.gates
        for worker in workers
        if worker in fleet.leaving
    ]
    if closed:
        ranks = sum(
            any(worker in fleet.leaving for worker in workers)
            for part in job.slices
            for _, workers in part.gates
        )
        return Reason(code="gates", numbers={"ranks": ranks, "first": min(closed)})
    numbers: dict[str, int | float | str] = {"ready": _ready(context, job), "ranks": job.ranks}
    return Reason(code="coming-up", numbers=numbers)


def _ready(context: Context, job: Job) -> int:
    ready = 0
    for part in job.slices:
        nodes = context.fleet.racks[part.rack].nodes
        for rank, place_ in enumerate(part.nodes, part.first_rank):
            seen = context.state.seen.get(nodes[place_].name)
            worker = None if seen is None else seen.worker(part.worker(job.id, rank))
            ready += worker is not None and worker.ready
    return ready
