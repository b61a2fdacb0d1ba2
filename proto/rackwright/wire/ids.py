"""Ids as types, with the one grammar that makes each of them safe as a subject token.

An id never holds a dot, a wildcard, a slash, a space or a control character, so no id can leave the
subject it was put in. `*Ref` is the same type with its grammar attached: fields use the Ref, code
the plain name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NewType

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
# No leading zeros: one worker has one spelling.
WORKER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}/(0|[1-9][0-9]{0,5})/(0|[1-9][0-9]{0,8})$"
MESSAGE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,126}$"

CellName = NewType("CellName", str)
RackId = NewType("RackId", str)
NodeId = NewType("NodeId", str)
JobId = NewType("JobId", str)
QueueName = NewType("QueueName", str)
Owner = NewType("Owner", str)
WorkerId = NewType("WorkerId", str)
SessionId = NewType("SessionId", str)
LedgerId = NewType("LedgerId", str)
MessageId = NewType("MessageId", str)
PlanId = NewType("PlanId", str)


class InvalidId(ValueError):
    """A text that may not be used as an id; says which field it was and what would be right."""

    def __init__(self, field: str, value: str, rule: str) -> None:
        shown = value if len(value) <= 80 else value[:77] + "..."
        super().__init__(f"{field}: {shown!r} is not allowed: {rule}")
        self.field = field
        self.value = shown
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Matches:
    """Field marker: the text must match `pattern`. The reader of messages applies it."""

    pattern: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        schema = handler(source)
        schema["pattern"] = self.pattern
        return schema


_NAME = Matches(NAME_PATTERN)
CellRef = Annotated[CellName, _NAME]
RackRef = Annotated[RackId, _NAME]
NodeRef = Annotated[NodeId, _NAME]
JobRef = Annotated[JobId, _NAME]
QueueRef = Annotated[QueueName, _NAME]
OwnerRef = Annotated[Owner, _NAME]
SessionRef = Annotated[SessionId, _NAME]
LedgerRef = Annotated[LedgerId, _NAME]
PlanRef = Annotated[PlanId, _NAME]
WorkerRef = Annotated[WorkerId, Matches(WORKER_PATTERN)]
MessageRef = Annotated[MessageId, Matches(MESSAGE_PATTERN)]

NAME_RULE = "1 to 63 letters, digits, '-' or '_', the first a letter or digit"
_NAME_RE = re.compile(NAME_PATTERN)
_WORKER_RE = re.compile(WORKER_PATTERN)


def check_name(field: str, value: str) -> str:
    """Return `value` if it is a safe name, else raise InvalidId naming `field`."""
    # fullmatch: `$` alone would let a trailing newline through.
    if _NAME_RE.fullmatch(value) is None:
        raise InvalidId(field, value, NAME_RULE)
    return value


def worker_id(job: JobId, rank: int, incarnation: int) -> WorkerId:
    """The id of the process group of `rank`, started in membership `incarnation`."""
    return WorkerId(f"{job}/{rank}/{incarnation}")


def parse_worker(worker: WorkerId) -> tuple[JobId, int, int]:
    """Split a worker id into job, rank and incarnation. Raises InvalidId."""
    if _WORKER_RE.fullmatch(worker) is None:
        raise InvalidId("worker", worker, "<job>/<rank>/<incarnation>")
    job, rank, incarnation = worker.split("/")
    return JobId(job), int(rank), int(incarnation)
