"""What all answers share: where they come from, reasons, lines of a story."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from rackwright.wire.message import LENIENT, Part

Numbers = dict[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Part):
    """A piece of an answer."""

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(View):
    """Base of all answers: what they were made from. `age_s`: how long ago that changed last.

    `notices`: services that do not answer, what operators have stopped in the whole cell, and an
    open breaker, in sentences.
    """

    cell: str
    ledger: str
    seq: int
    time: float
    age_s: float
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(View):
    """A reason: a code, its numbers, and a sentence for people."""

    code: str
    text: str
    numbers: Numbers = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(View):
    """One entry of the ledger, as a line of a story. `at` is ledger time.

    `commit` is the id of its message and `cause` of the one that led to it. `void`: it had no
    effect, and `text` says why.
    """

    seq: int
    at: float
    type: str
    by: str
    text: str
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    commit: str = ""
    cause: str | None = None
    void: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(View):
    """The body of an HTTP answer that is an error."""

    status: int
    error: str
