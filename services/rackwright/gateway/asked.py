"""Questions: their parameters, read strictly, and what is wrong with those that cannot be read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin

from annotated_types import Ge, Le, Len

from rackwright.wire.codec import Unreadable, read_json, read_value
from rackwright.wire.ids import JobRef, NodeRef, RackRef
from rackwright.wire.message import Natural, Part

MAX_QUESTION = 16_384
Text = Annotated[str, Len(1, 256)]
Q = TypeVar("Q", bound=Part)


class BadQuestion(Exception):
    """A question that gets no answer; `status` as in HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def not_found(what: str, name: str, hint: str = "") -> BadQuestion:
    """404: nobody of that name."""
    return BadQuestion(404, f"no {what} {name!r} is known{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(Part):
    """Living jobs, and ended ones of the last week if `ended`."""

    state: Text | None = None
    owner: Text | None = None
    queue: Text | None = None
    ended: bool = False
    after: Text | None = None
    limit: Annotated[int, Ge(1), Le(1000)] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Part):
    """One job. `ranks_from`: the first rank to list."""

    job: JobRef
    spec: bool = False
    ranks_from: Natural = 0
    ranks: Annotated[int, Ge(0), Le(1000)] = 256
    story: Annotated[int, Ge(0), Le(256)] = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Racks(Part):
    """Racks, all or those named."""

    rack: RackRef | None = None
    after: RackRef | None = None
    limit: Annotated[int, Ge(1), Le(200)] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Part):
    """One node."""

    node: NodeRef
    story: Annotated[int, Ge(0), Le(256)] = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(Part):
    """Entries after sequence `since`; without it the newest. `type` may have `*` and `?`."""

    type: Text | None = None
    job: JobRef | None = None
    node: NodeRef | None = None
    since: Natural | None = None
    limit: Annotated[int, Ge(1), Le(500)] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(Part):
    """The cell in numbers; with all that /metrics has, if `metrics`."""

    metrics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(Part):
    """Which copies of which services answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAsked(Part):
    """The settings of the cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defrag(Part):
    """What defragmentation would do for this job."""

    job: JobRef


QUESTIONS: Mapping[str, type[Part]] = {
    "jobs": Jobs,
    "job": Job,
    "racks": Racks,
    "node": Node,
    "events": Events,
    "stats": Stats,
    "services": Services,
    "policy": PolicyAsked,
    "defrag": Defrag,
}


def from_json(name: str, data: bytes) -> Part:
    """The question `name` with parameters in a JSON object; nothing at all asks for defaults.

    Raises BadQuestion.
    """
    kind = _kind(name)
    try:
        return read_json(kind, data if data.strip() else b"{}", MAX_QUESTION)
    except Unreadable as error:
        raise _bad(kind, error) from error


def from_texts(name: str, texts: Mapping[str, str]) -> Part:
    """The same with parameters as texts, as a URL has them. Raises BadQuestion."""
    kind = _kind(name)
    known = {field.name: field for field in fields(kind)}
    values = {
        key: _typed(known[key].type, text) if key in known else text for key, text in texts.items()
    }
    try:
        return read_value(kind, values)
    except Unreadable as error:
        raise _bad(kind, error) from error


def _kind(name: str) -> type[Part]:
    kind = QUESTIONS.get(name)
    if kind is None:
        known = ", ".join(QUESTIONS)
        raise BadQuestion(404, f"no question {name[:60]!r} is known; known are {known}")
    return kind


def _bad(kind: type[Part], error: Unreadable) -> BadQuestion:
    names = [field.name for field in fields(kind)]
    problem = error.problem
    hint = f"; known are {', '.join(names)}" if "is not known" in problem and names else ""
    return BadQuestion(400, f"{error.field}: {problem}{hint}" if error.field else problem)


def _typed(kind: Any, text: str) -> object:
    """A text as JSON would have it, where the field is no text; what is none stays as it is."""
    if _is_text(kind):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value


def _is_text(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        return _is_text(get_args(kind)[0])
    plain = getattr(kind, "__supertype__", kind)
    if plain is str:
        return True
    return any(_is_text(part) for part in get_args(kind) if part is not type(None))
