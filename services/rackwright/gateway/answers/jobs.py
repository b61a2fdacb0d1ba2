"""Jobs: the list, and all about one of them."""

import json
from collections.abc import Iterator
from dataclasses import replace

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job, JobState, Slice, Tombstone, protected
from rackwright.core.policy.spares import drain_waits
from rackwright.gateway import asked, views
from rackwright.gateway.answers.waiting import waits
from rackwright.gateway.asked import BadQuestion, not_found
from rackwright.gateway.chronicle import job_key
from rackwright.gateway.context import Context, why
from rackwright.gateway.page import fitting, newest
from rackwright.gateway.standing import checkpoint_age, is_overdue
from rackwright.gateway.tallies import size_of, spares_view
from rackwright.gateway.views.base import Numbers
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId, WorkerId
from rackwright.wire.reasons import Reason

RACKS_NAMED = 16
SLICES = 256
WOUNDS = 128
PART_BYTES = 40_000


def jobs(context: Context, question: asked.Jobs) -> views.JobsAnswer:
    """Jobs by id."""
    _check_state(question.state)
    found = sorted(_matching(context.fleet, question), key=lambda row: row.id)
    rest = [row for row in found if question.after is None or row.id > question.after]
    page, more = fitting(rest, question.limit)
    return views.JobsAnswer(
        **context.made(), jobs=page, total=len(found), next=page[-1].id if more else None
    )


def _check_state(state: str | None) -> None:
    if state is not None and state not in set(JobState):
        known = ", ".join(JobState)
        raise BadQuestion(400, f"state: {state[:40]!r} is none; known are {known}")


def _matching(fleet: Fleet, question: asked.Jobs) -> Iterator[views.JobRow]:
    for job in fleet.jobs.values():
        if question.queue is not None and job.spec.queue != question.queue:
            continue
        if _wanted(question, job.state, job.owner):
            yield row(fleet, job)
    if question.queue is not None or not (question.ended or question.state is not None):
        return
    for stone in fleet.tombstones.values():
        if _wanted(question, stone.state, stone.owner):
            yield ended_row(stone)


def _wanted(question: asked.Jobs, state: JobState, owner: str) -> bool:
    if question.state is not None and state != question.state:
        return False
    return question.owner is None or owner == question.owner


def row(fleet: Fleet, job: Job) -> views.JobRow:
    """One living job."""
    nodes, gpus = size_of(fleet, job)
    racks = dict.fromkeys(str(fleet.rack_name(part.rack)) for part in job.slices)
    waiting = job.state is JobState.QUEUED and job.blocked is not None
    return views.JobRow(
        id=job.id,
        name=job.spec.name,
        owner=job.owner,
        queue=job.spec.queue,
        job_class=job.spec.job_class,
        priority=job.spec.priority,
        state=job.state,
        nodes=nodes,
        gpus=gpus,
        slices=len(job.slices),
        racks=tuple(racks)[:RACKS_NAMED],
        membership=job.membership,
        submitted_at=job.submitted_at,
        state_at=job.state_at,
        blocked=job.blocked.code if waiting and job.blocked is not None else None,
        wounded=bool(job.wounds),
        pinned_by=job.pinned_by,
    )


def ended_row(stone: Tombstone) -> views.JobRow:
    """A job that has ended: what its tombstone says."""
    return views.JobRow(
        id=stone.id,
        name=stone.name,
        owner=stone.owner,
        queue="",
        job_class="",
        priority=0,
        state=stone.state,
        nodes=0,
        gpus=0,
        submitted_at=0.0,
        state_at=stone.ended_at,
    )


def job(context: Context, question: asked.Job) -> views.JobAnswer:
    """All about one job, also about one that has ended."""
    found = context.fleet.jobs.get(question.job)
    made = _ended(context, question) if found is None else _living(context, found, question)
    story = context.past.story(job_key(question.job))
    lines = newest(story.lines, question.story, 2 * PART_BYTES)
    dropped = story.dropped + len(story.lines) - len(lines)
    return replace(
        made,
        story=lines,
        left_out=dropped,
        complete=context.past.complete,
        since=context.past.since,
    )


def _ended(context: Context, question: asked.Job) -> views.JobAnswer:
    stone = context.fleet.tombstones.get(question.job)
    if stone is None:
        raise not_found("job", question.job)
    reason = None if stone.reason is None else why(stone.reason)
    nodes, until = _kept(context.fleet, stone.id)
    return views.JobAnswer(
        **context.made(),
        job=ended_row(stone),
        reason=reason,
        kept_nodes=nodes,
        kept_until=until,
    )


def _overdue(context: Context, job: Job) -> Iterator[Reason]:
    """Its owner should know that a job that saves too seldom is moved by nobody."""
    age = checkpoint_age(context.fleet, context.state, job, context.now)
    if is_overdue(job, age):
        numbers: Numbers = {
            "age_s": round(age or 0.0),
            "interval_s": job.spec.checkpoint.interval_s or 0.0,
        }
        yield Reason(code="checkpoint.overdue", numbers=numbers)


def _kept(fleet: Fleet, name: JobId) -> tuple[tuple[str, ...], float | None]:
    """Nodes that are kept for a job that failed, and until when."""
    racks = fleet.kept.get(name, ())
    found = [
        node for number in racks for node in fleet.racks[number].nodes if node.kept_for == name
    ]
    until = max((node.kept_until for node in found), default=None)
    return tuple(str(node.name) for node in found), until


def _living(context: Context, job: Job, question: asked.Job) -> views.JobAnswer:
    fleet = context.fleet
    waiting = waits(context, job)
    ranks = fitting(_ranks(context, job, question.ranks_from), question.ranks, PART_BYTES)[0]
    return views.JobAnswer(
        **context.made(),
        job=row(fleet, job),
        spec=_spec(job) if question.spec else None,
        waits=None if waiting is None else why(waiting),
        reason=None if job.reason is None else why(job.reason),
        warnings=tuple(why(warning) for warning in (*job.warnings, *_overdue(context, job))),
        first_started_at=job.first_started_at,
        started_at=job.started_at,
        retries=job.retries,
        requeues=job.requeues,
        swaps=job.swap_count,
        moves=job.move_count,
        plan=job.plan,
        slices=tuple(slice_view(fleet, job, part, context.now) for part in job.slices[:SLICES]),
        slices_total=len(job.slices),
        ranks=ranks,
        ranks_total=job.ranks,
        wounds=tuple(_wounds(context, job)),
    )


def _wounds(context: Context, job: Job) -> Iterator[views.WoundView]:
    wounds = job.wounds[:WOUNDS]
    hurt = {job.slice_of(wound.rank).index for wound in wounds}
    waits = {index: drain_waits(context.fleet, job, index, context.now) for index in hurt}
    for wound in wounds:
        reason = waits[job.slice_of(wound.rank).index]
        yield views.WoundView(
            rank=wound.rank,
            kind=wound.kind,
            code=wound.code,
            at=wound.at,
            waits=None if reason is None else why(reason),
        )


def _spec(job: Job) -> dict[str, object]:
    """The specification as JSON has it."""
    spec: dict[str, object] = json.loads(to_json(job.spec))
    return spec


def slice_view(fleet: Fleet, job: Job, part: Slice, now: float) -> views.SliceView:
    """One slice."""
    group = job.spec.groups[part.group].name if job.spec.groups else job.spec.name
    beside = protected(job.spec, part.size) and not part.lent
    return views.SliceView(
        index=part.index,
        group=group,
        replica=part.replica,
        rack=fleet.rack_name(part.rack),
        first_rank=part.first_rank,
        size=part.size,
        gpus=tuple(bits(part.gpus)),
        lent=part.lent,
        spares=spares_view(fleet.racks[part.rack], now) if beside else None,
    )


def _ranks(context: Context, job: Job, first: int) -> Iterator[views.RankView]:
    for part in job.slices:
        end = part.first_rank + part.size
        for rank in range(max(first, part.first_rank), end):
            yield _rank(context, job.id, part, rank)


def _gate(fleet: Fleet, worker: WorkerId) -> tuple[str, float]:
    """The node of a worker that must end first, and its notice in seconds."""
    place = fleet.leaving[worker]
    rack = fleet.racks[place.rack]
    notice = next((one.notice_s for one in rack.leaving if one.worker == worker), 0.0)
    return rack.nodes[place.node].name, notice


def _rank(context: Context, name: JobId, part: Slice, rank: int) -> views.RankView:
    fleet = context.fleet
    at = rank - part.first_rank
    node = fleet.racks[part.rack].nodes[part.nodes[at]].name
    seen = context.state.seen.get(node)
    worker = None if seen is None else seen.worker(part.worker(name, rank))
    waits_for = tuple(one for one in part.gates_of(rank) if one in fleet.leaving)
    waits_on, notice_s = _gate(fleet, waits_for[0]) if waits_for else ("", 0.0)
    made = views.RankView(
        rank=rank,
        slice=part.index,
        node=node,
        incarnation=part.incarnations[at],
        waits_for=waits_for[:8],
        waits_on=waits_on,
        waits_notice_s=notice_s,
    )
    if worker is None:
        return made
    return replace(
        made,
        state=worker.state,
        ready=worker.ready,
        pid=worker.pid,
        code=worker.code,
        checkpoint_at=worker.checkpoint_at,
        progress_at=worker.progress_at,
    )
