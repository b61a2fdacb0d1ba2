"""Strategies for every type of the wire, read off its annotations."""

import types
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, NewType, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Len
from hypothesis import strategies as st

from rackwright.wire.ids import MESSAGE_PATTERN, NAME_PATTERN, WORKER_PATTERN, Matches, worker_id
from rackwright.wire.message import INT64_MAX, Commit, Entry, Envelope

Strategy = st.SearchStrategy[Any]
MORE = 2  # how many items beyond the fewest that are allowed

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def _bounds(marks: tuple[Any, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for mark in marks:
        match mark:
            case Ge(ge=low):
                found["min_value"] = max(low, found.get("min_value", low))
            case Gt(gt=low):
                found |= {"min_value": low, "exclude_min": True}
            case Le(le=high):
                found["max_value"] = min(high, found.get("max_value", high))
            case _:
                pass
    return found


def _flat(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """The bare type and all marks on it, through NewTypes and nested Annotated."""
    marks: tuple[Any, ...] = ()
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            marks = (*more, *marks)
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        else:
            return kind, marks


def _token(rest: str, longest: int) -> Strategy:
    """Ids: a letter or digit, then more; quicker to draw than from a pattern."""
    more = st.text(rest, max_size=longest) | st.just(rest[-1] * longest)
    return st.tuples(st.sampled_from("aZ09"), more).map("".join)


NAME = _token("aZ09_-", 62)
WORKER = st.builds(worker_id, NAME, st.integers(0, 999_999), st.integers(0, 999_999_999))
IDS = {NAME_PATTERN: NAME, MESSAGE_PATTERN: _token("aZ09_.:-", 126), WORKER_PATTERN: WORKER}
NO_NUL = TEXT.filter(lambda text: "\0" not in text)


def _text(marks: tuple[Any, ...]) -> Strategy:
    for mark in marks:
        match mark:
            case Matches(pattern=pattern) if pattern in IDS:
                return IDS[pattern]
            case Matches(pattern=pattern) if "x00" in pattern:
                return NO_NUL
            case Matches(pattern=pattern):
                return st.from_regex(pattern[1:-1], fullmatch=True)
            case _:
                pass
    least = max((mark.min_length for mark in marks if isinstance(mark, Len)), default=0)
    return TEXT.filter(lambda text: len(text) >= least)


def _whole(marks: tuple[Any, ...]) -> Strategy:
    return st.integers(**{"min_value": -INT64_MAX - 1, "max_value": INT64_MAX, **_bounds(marks)})


def _listed(item: Any, marks: tuple[Any, ...]) -> Strategy:
    least = max([mark.min_length for mark in marks if isinstance(mark, Len)], default=0)
    return st.lists(values(item), min_size=least, max_size=least + MORE).map(tuple)


def values(kind: Any) -> Strategy:
    """Values of one annotated type. Raises TypeError for one that the wire does not use."""
    bare, marks = _flat(kind)
    origin, args = get_origin(bare), get_args(bare)
    if origin in (types.UnionType, Union):
        return st.one_of([values(option) for option in args])
    if origin is tuple and args[1:] == (Ellipsis,):
        return _listed(args[0], marks)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=MORE)
    return _plain(bare, marks)


def _plain(bare: Any, marks: tuple[Any, ...]) -> Strategy:
    if bare is type(None):
        return st.none()
    if bare is bool:
        return st.booleans()
    if bare is int:
        return _whole(marks)
    if bare is float:
        return st.floats(allow_nan=False, allow_infinity=False, **_bounds(marks))
    if bare is str:
        return _text(marks)
    if isinstance(bare, type) and issubclass(bare, StrEnum):
        return st.sampled_from(list(bare))
    return built(bare)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def built(kind: Any) -> Strategy:
    """Values of a dataclass, every field drawn."""
    hints = _hints(kind)
    return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})


def _around(generic: Any, kind: Any, name: str, body: Strategy) -> Strategy:
    hints = _hints(generic)
    head = {f.name: values(hints[f.name]) for f in fields(generic) if f.name != name}
    return st.builds(
        generic, **{**head, "type": st.just(kind.TYPE), "v": st.just(kind.VERSION), name: body}
    )


def messages(kind: Any) -> Strategy:
    """Whole messages of one type: a commit of 1 to 3 entries, or an envelope."""
    if issubclass(kind, Entry):
        entries = st.lists(built(kind), min_size=1, max_size=1 + MORE).map(tuple)
        return _around(Commit, kind, "entries", entries)
    return _around(Envelope, kind, "body", built(kind))
