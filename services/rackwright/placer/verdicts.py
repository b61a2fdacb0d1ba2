"""What becomes of placed jobs, by what nodes say of their workers.

An exit other than 0 waits for a node fault of the same job (`exit_verdict_s`), and for as long as
the node that tells of it is in doubt: it may be the end of the node, of its agent or of their
container, and not of the job. With a fault it is a symptom and costs the owner nothing. Without one
the first exit is charged and those that came with it are symptoms; a job that has no tries left, or
cannot be restarted, has failed. A job that fails before all its ranks were up goes back to the
queue and waits longer each time, so that it does not keep others from their turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import ASSIGNED, Job, JobState, WoundKind
from rackwright.core.legality.jobs import too_hurt_to_start
from rackwright.core.machine import Event, Folded
from rackwright.core.policy.triage import START_TIMEOUT
from rackwright.placer.reports import Exit, Reports, Tally, is_done, is_up
from rackwright.placer.state import Blame, State
from rackwright.wire.entries.job import (
    JobFailed,
    JobFinished,
    JobFinishing,
    JobRequeued,
    JobStarted,
    WorkerFailed,
)
from rackwright.wire.ids import parse_worker
from rackwright.wire.message import Entry
from rackwright.wire.policy import Policy
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import WorkerState, WorkerStatus


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Entries about one job; `again` seconds until it has to be judged anew, None: when told."""

    entries: tuple[Entry, ...] = ()
    again: float | None = None


NOTHING = Verdict()
BLAMED = "exit."  # and the code: an exit that the owner answers for


def judge(state: State, fleet: Fleet, job: Job, event: Event) -> Verdict:
    """What is to be said of a job now."""
    tally = state.reports.tallies.get(job.id)
    if job.state not in ASSIGNED or not job.slices:
        return NOTHING
    lost = _lost(state.reports, fleet, job, event)
    if lost is not None:
        return lost
    if tally is None:
        return NOTHING
    if tally.done >= job.ranks and all(is_done(one) for one in _statuses(state.reports, job)):
        return Verdict(entries=(JobFinished(job=job.id),))
    if tally.bad:
        found = _exits(state, fleet, job, tally, event)
        if found is not NOTHING:
            return found
    if _is_finishing(state.reports, job, tally):
        return Verdict(entries=(JobFinishing(job=job.id),))
    if not too_hurt_to_start(fleet, job) and _has_started(state.reports, job, tally):
        return Verdict(entries=(JobStarted(job=job.id, membership=job.membership),))
    return NOTHING


def _statuses(reports: Reports, job: Job) -> Iterator[WorkerStatus | None]:
    for part in job.slices:
        for rank in range(part.first_rank, part.first_rank + part.size):
            yield reports.status_of(part.worker(job.id, rank))


def _is_finishing(reports: Reports, job: Job, tally: Tally) -> bool:
    """A first rank ended well. A wounded job is healed first: it could not end otherwise."""
    if not tally.done or job.state is JobState.FINISHING or job.wounds:
        return False
    return any(is_done(one) for one in _statuses(reports, job))


def _has_started(reports: Reports, job: Job, tally: Tally) -> bool:
    """Every rank of this membership is up."""
    if job.state is JobState.FINISHING or job.started == job.membership:
        return False
    return tally.up >= job.ranks and all(is_up(one) for one in _statuses(reports, job))


def _lost(reports: Reports, fleet: Fleet, job: Job, event: Event) -> Verdict | None:
    """Ranks without a place that nobody will give another one: the job cannot be healed."""
    if not job.wounds or (job.spec.restartable and job.state is not JobState.FINISHING):
        return None
    open_ = [
        wound for wound in job.wounds if not is_done(reports.status_of(job.worker(wound.rank)))
    ]
    if not open_:
        return None
    first = min(open_, key=lambda wound: (wound.at, wound.rank))
    left = first.at + fleet.policy.exit_verdict_s - event.now
    if job.state is JobState.FINISHING and left > 0:
        return Verdict(again=left)
    code = "lost.finishing" if job.state is JobState.FINISHING else f"lost.{first.kind}"
    reason = Reason(code=code, numbers={"rank": first.rank, "signal": first.code})
    return Verdict(entries=(JobFailed(job=job.id, reason=reason),))


def _exits(state: State, fleet: Fleet, job: Job, tally: Tally, event: Event) -> Verdict:
    wounded = {wound.rank for wound in job.wounds if wound.kind is not WoundKind.DRAIN}
    ends = sorted(
        (
            end
            for end in tally.bad.values()
            if job.has_rank(end.rank)
            and end.rank not in wounded
            and job.worker(end.rank) == end.worker
            and _is_trusted(fleet, job, end)
        ),
        key=lambda end: (end.at, end.rank),
    )
    told = [end for end in ends if not _is_by_itself(end.status)]
    if told:
        return _stopped(job, told)
    if not ends:
        return NOTHING
    wait = fleet.policy.exit_verdict_s
    first = ends[0]
    if not _explained(job, first, wait):
        with_it = [end for end in ends if _with_the_blamed(state, job, end, event, wait)]
        if with_it:
            return Verdict(entries=tuple(_worker_failed(job, end, "symptom") for end in with_it))
        left = first.at + wait - event.now
        return Verdict(again=left) if left > 0 else _charge(state, fleet, job, ends, event)
    if not job.spec.restartable or job.state is JobState.FINISHING:
        return Verdict(entries=(_failed(job, first, "exit"),))
    return Verdict(entries=tuple(_worker_failed(job, end, "symptom") for end in ends))


def _stopped(job: Job, ends: list[Exit]) -> Verdict:
    """A lost lease or their agent ended them, or their supervisor is gone: nobody's fault."""
    if not job.spec.restartable or job.state is JobState.FINISHING:
        return Verdict(entries=(_failed(job, ends[0], _how(ends[0].status)),))
    return Verdict(entries=tuple(_worker_failed(job, end, _how(end.status)) for end in ends))


def _is_by_itself(status: WorkerStatus) -> bool:
    """Did it end without being told to, under the eyes of its supervisor?"""
    return status.state is WorkerState.EXITED and status.code is not None


def _how(status: WorkerStatus) -> str:
    """Why a worker ended that did not end by itself. What never ran was failed by its node."""
    if status.state is not WorkerState.EXITED:
        return status.state.value
    return START_TIMEOUT if status.pid is None else "supervisor.lost"


def _is_trusted(fleet: Fleet, job: Job, end: Exit) -> bool:
    """Was this said in the session that the fleet knows, and is that one not in doubt?

    Another session has to join first: its join says which workers went with the one before.
    """
    part = job.slice_of(end.rank)
    node = fleet.node_at(part.rack, part.nodes[end.rank - part.first_rank])
    return node.session == end.session and not node.suspected


def _explained(job: Job, end: Exit, wait: float) -> bool:
    """Did a node of this job fail, or was one replaced, about when the worker ended?"""
    if any(wound.kind is WoundKind.NODE for wound in job.wounds):
        return True
    since = end.at - wait
    moved = job.moved_at is not None and job.moved_at >= since
    return moved or any(swap.at >= since for swap in job.swaps)


def note_blame(state: State, fleet: Fleet, event: Folded) -> None:
    """Remember whom a commit blames for an exit: what was only offered has blamed nobody."""
    for entry in event.entries:
        if isinstance(entry, WorkerFailed) and entry.reason.code.startswith(BLAMED):
            membership = fleet.jobs[entry.job].membership
            state.charged[entry.job] = Blame(at=event.now, membership=membership)


def _with_the_blamed(state: State, job: Job, end: Exit, event: Event, wait: float) -> bool:
    """Was the job blamed a moment ago for the exit of a peer of this worker? Then this one is a
    symptom of that; of a worker started since then it is another one.
    """
    blame = state.charged.get(job.id)
    if blame is None or event.now - blame.at >= wait:
        return False
    return parse_worker(end.worker)[2] <= blame.membership


def _charge(state: State, fleet: Fleet, job: Job, ends: list[Exit], event: Event) -> Verdict:
    first, *others = ends
    code = f"{BLAMED}{first.status.code}"
    if not job.spec.restartable or job.state is JobState.FINISHING:
        return Verdict(entries=(_failed(job, first, code),))
    if job.retries >= job.spec.retry_budget:
        return Verdict(entries=(_failed(job, first, code),))
    if job.state is JobState.PLACED and job.swap_count + job.move_count == 0:
        wait = back_off(fleet.policy, job.retries)
        numbers: dict[str, int | float | str] = {
            "rank": first.rank,
            "exit": code,
            "retry": job.retries + 1,
            "budget": job.spec.retry_budget,
            "wait_s": wait,
        }
        reason = Reason(code="start-failed", numbers=numbers)
        entry = JobRequeued(job=job.id, reason=reason, charge=True, not_before=event.now + wait)
        return Verdict(entries=(entry,))
    symptoms = (_worker_failed(job, end, "symptom") for end in others)
    return Verdict(entries=(_worker_failed(job, first, code), *symptoms))


def back_off(policy: Policy, retries: int) -> float:
    """Seconds before the next try: doubled each time, up to a limit."""
    return min(policy.retry_backoff_max_s, policy.retry_backoff_s * 2.0 ** min(retries, 32))


def _worker_failed(job: Job, end: Exit, code: str) -> WorkerFailed:
    code_ = end.status.code
    numbers: dict[str, int | float | str] = {} if code_ is None else {"exit": code_}
    return WorkerFailed(
        job=job.id,
        rank=end.rank,
        worker=end.worker,
        code=code_,
        reason=Reason(code=code, numbers=numbers),
    )


def _failed(job: Job, end: Exit, code: str) -> JobFailed:
    numbers: dict[str, int | float | str] = {
        "rank": end.rank,
        "retries": job.retries,
        "budget": job.spec.retry_budget,
    }
    if end.status.code is not None:
        numbers["exit"] = end.status.code
    return JobFailed(job=job.id, reason=Reason(code=code, numbers=numbers))
