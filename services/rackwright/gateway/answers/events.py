"""Entries of the ledger: the newest, or those after a sequence, filtered."""

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from rackwright.gateway import asked, views
from rackwright.gateway.asked import BadQuestion
from rackwright.gateway.context import Context
from rackwright.gateway.page import fitting, newest
from rackwright.gateway.views import Line
from rackwright.wire.entries import ENTRIES


def events(context: Context, question: asked.Events) -> views.EventsAnswer:
    """Entries in the order of the ledger. A page may end before the newest: ask on from `next`.

    Raises BadQuestion for a type that no entry has, and while what is asked for is being read back:
    who asks on from the last answer would never hear of what is passed over.
    """
    check_type(question.type)
    asks_on = question.since is not None and question.since < context.fleet.seq
    if asks_on and not context.past.complete:
        raise BadQuestion(503, "the past is being read back from the ledger: ask again")
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


def check_type(pattern: str | None) -> None:
    """Raises BadQuestion unless some type of entry matches."""
    if pattern is None or any(fnmatchcase(name, pattern) for name in ENTRIES):
        return
    nouns = sorted({name.partition(".")[0] for name in ENTRIES})
    noun, dot, verb = pattern.partition(".")
    mine = [name for name in ENTRIES if name.startswith(f"{noun}.")]
    if mine:
        near = [f"{noun}.{one}" for one in _near(verb, [name.partition(".")[2] for name in mine])]
    elif dot and set(verb) & set("*?"):
        near = [f"{one}.{verb}" for one in _near(noun, nouns)]
    else:
        near = _near(pattern, [*ENTRIES, *nouns])
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(mine or nouns)}"
    if near and near[0] in nouns:
        hint = f"did you mean '{near[0]}.*'?"
    raise BadQuestion(400, f"type: no entry has a type like {pattern!r}; {hint}")


def _near(text: str, names: Sequence[str]) -> list[str]:
    return get_close_matches(text, names, n=1, cutoff=0.6)


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
