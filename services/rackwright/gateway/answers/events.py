"""Entries of the ledger: the newest, or those after a sequence, filtered."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from rackwright.gateway import asked, views
from rackwright.gateway.context import Context
from rackwright.gateway.page import fitting, newest
from rackwright.gateway.views import Line


def events(context: Context, question: asked.Events) -> views.EventsAnswer:
    """Entries in the order of the ledger. A page may end before the newest: ask on from `next`."""
    kept = context.past.events
    oldest = kept[0].seq if kept else context.fleet.seq + 1
    if question.since is None:
        found: Sequence[Line] = [line for line in kept if matches(question, line)]
        page, more = newest(found, question.limit), False
    else:
        later = [line for line in kept if line.seq > question.since and matches(question, line)]
        page, more = fitting(later, question.limit)
        page = _whole_commits(page, later) if more else page
    return views.EventsAnswer(
        **context.made(),
        events=page,
        oldest=oldest,
        next=page[-1].seq if more and page else context.fleet.seq,
    )


def matches(question: asked.Events, line: Line) -> bool:
    """Is this one of those asked for?"""
    if question.type is not None and not fnmatchcase(line.type, question.type):
        return False
    if question.job is not None and question.job not in line.jobs:
        return False
    return question.node is None or question.node in line.nodes


def _whole_commits(page: tuple[Line, ...], later: Sequence[Line]) -> tuple[Line, ...]:
    """Without the last commit, which may be cut, so that `next` skips nothing; one is always there
    and whole."""
    last = page[-1].seq
    whole = tuple(line for line in page if line.seq != last)
    return whole or tuple(line for line in later if line.seq == last)
