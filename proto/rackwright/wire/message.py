"""The envelope around everything on the bus, and the commit, which is the ledger's envelope."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from annotated_types import Ge, Le, Len

from rackwright.wire.ids import CellRef, LedgerRef, MessageRef
from rackwright.wire.quick import quick

# NaN and infinity are no JSON: they would be written as null and never read again.
STRICT: dict[str, Any] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
LENIENT: dict[str, Any] = {"extra": "ignore", "strict": True, "allow_inf_nan": False}

# Numbers that every JSON reader and writer here can hold.
INT64_MAX = (1 << 63) - 1
Natural = Annotated[int, Ge(0), Le(INT64_MAX)]
Counted = Annotated[int, Ge(1), Le(INT64_MAX)]
Integer = Annotated[int, Ge(-INT64_MAX - 1), Le(INT64_MAX)]

MAX_ENTRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a body that has no type name of its own. Unknown fields are errors."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What an envelope carries. Each kind of body has one type name and one version."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Body):
    """One decision in the ledger: one whole legal step, in the past tense.

    `cause` is the id of the message that led to it, `wish` the sequence in the wish stream of the
    wish it answers, if it answers one: a wish is answered once, a second answer is void.
    """

    cause: MessageRef | None = None
    wish: Counted | None = None


B = TypeVar("B", bound=Body)
E = TypeVar("E", bound=Entry)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(Generic[B]):
    """A fact or a value. `at` is the author's clock, seconds since the epoch, for people only."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: MessageRef
    type: str
    v: int
    at: float
    source: str
    cell: CellRef
    cause: MessageRef | None = None
    body: B


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Generic[E]):
    """1 to 64 entries of one type, decided in order and folded all or none.

    `ledger` is the identity of the ledger it was decided for. `prev` is the id of the commit at the
    sequence it was compared with; None marks an observation, which is appended without compare.
    `wishes_to` says that this author's service has answered every wish up to that sequence.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    id: MessageRef
    type: str
    v: int
    at: float
    source: str
    cell: CellRef
    ledger: LedgerRef
    prev: MessageRef | None = None
    wishes_to: Natural | None = None
    entries: Annotated[tuple[E, ...], Len(1, MAX_ENTRIES)]
