"""Answers to questions: pure functions from a context and a question to a view."""

from collections.abc import Callable, Mapping
from typing import Any

from rackwright.gateway.answers import cell, defrag, events, jobs, nodes, services
from rackwright.gateway.asked import QUESTIONS
from rackwright.gateway.context import Context
from rackwright.gateway.views import Answer
from rackwright.wire.message import Part

ANSWERS: Mapping[str, Callable[[Context, Any], Answer]] = {
    "jobs": jobs.jobs,
    "job": jobs.job,
    "racks": nodes.racks,
    "node": nodes.node,
    "events": events.events,
    "stats": cell.stats,
    "services": services.services,
    "policy": cell.policy,
    "defrag": defrag.defrag,
}


def answer(name: str, context: Context, question: Part) -> Answer:
    """The answer to one question. Raises BadQuestion."""
    assert isinstance(question, QUESTIONS[name])
    return ANSWERS[name](context, question)
