"""What defragmentation would do for a job, without doing it."""

import json

from rackwright.core.jobs import JobState
from rackwright.core.policy.defrag import Outcome
from rackwright.core.policy.defrag_course import approved
from rackwright.core.policy.defrag_story import Explanation, explain
from rackwright.core.reasons import number, sentence
from rackwright.gateway import asked, views
from rackwright.gateway.asked import BadQuestion, not_found
from rackwright.gateway.context import Context
from rackwright.gateway.machine import checkpoints
from rackwright.wire.codec import to_json


def defrag(context: Context, question: asked.Defrag) -> views.DefragAnswer:
    """The plan that would be made, or why there is none."""
    fleet = context.fleet
    job = fleet.jobs.get(question.job)
    if job is None:
        raise not_found("living job", question.job)
    if job.state is not JobState.QUEUED:
        raise BadQuestion(400, f"job: {job.id} is {job.state}; only queued jobs wait for room")
    found = explain(fleet, job, checkpoints(context.state, fleet), context.now)
    return views.DefragAnswer(
        **context.made(),
        job=job.id,
        outcome=found.outcome,
        text=told(found) + _waits(found, approved(fleet, job, context.now), job.id),
        explanation=json.loads(to_json(found)),
    )


def _waits(found: Explanation, is_approved: bool, job: str) -> str:
    if found.outcome is not Outcome.GO or is_approved:
        return ""
    return f"; it waits for `rackwright approve {job}`"


def told(found: Explanation) -> str:
    """The verdict in a sentence or two."""
    said = _outcome(found)
    if found.hindered is not None:
        said += f". Nothing would be offered now: {sentence(found.hindered)}"
    return said


def _outcome(found: Explanation) -> str:
    racks = ", ".join(found.racks)
    cost = "" if found.cost is None else number(found.cost)
    gain = number(found.benefit)
    match found.outcome:
        case Outcome.GO:
            return f"clears {racks} at {cost} GPU-h, waiting costs {gain}"
        case Outcome.FITS:
            return "the job has a place now, nothing need move"
        case Outcome.NO_WAY:
            why = "" if found.reason is None else f": {sentence(found.reason)}"
            return f"no set of movable work frees what the job needs{why}"
        case Outcome.NO_HOMES if not found.failed:
            return "nobody who would have to leave has a home"
        case Outcome.NO_HOMES:
            return f"none of {len(found.failed)} sets has a home for every victim"
        case Outcome.DEAR:
            return f"clearing {racks} costs {cost} GPU-h and waiting only {gain} so far"
        case Outcome.RELEASE if found.cost is None:
            return "nothing frees what the job needs now, but what comes free in a moment will help"
        case Outcome.RELEASE:
            return f"clearing {racks} costs {cost} GPU-h, and work that ends soon frees as much"
