"""Bytes to messages and back. The only module that knows orjson and pydantic.

What cannot be read raises Unreadable, which names the field and what would be right; a wish or a
signal is then set aside, a ledger entry stops the fold.
"""

from functools import cache
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from rackwright.wire.entries import ENTRIES
from rackwright.wire.message import Body, Commit, Entry, Envelope
from rackwright.wire.signals import Echo, Fault, Heartbeat, NodeStatus
from rackwright.wire.values import JobValue, RackAssignments, SnapshotManifest
from rackwright.wire.wishes import ANY_WISH

BODIES: dict[str, type[Body]] = {
    body.TYPE: body
    for body in (
        *ANY_WISH,
        Fault,
        NodeStatus,
        Heartbeat,
        Echo,
        RackAssignments,
        JobValue,
        SnapshotManifest,
    )
}
MAX_MESSAGE = 131_072
MAX_WISH = 65_536

T = TypeVar("T")
B = TypeVar("B", bound=Body)


class Unreadable(ValueError):
    """Bytes that are no message of ours: the field, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class UnknownType(Unreadable):
    """A type name or version that this version of the software does not know."""


def encode(message: Envelope[Any] | Commit[Any] | Body) -> bytes:
    """The bytes of a message: compact JSON, fields in their order of declaration."""
    return orjson.dumps(message)


@cache
def _envelope(type_name: str) -> TypeAdapter[Any]:
    return TypeAdapter(Envelope[BODIES[type_name]])  # type: ignore[misc]


@cache
def _commit(type_name: str) -> TypeAdapter[Any]:
    return TypeAdapter(Commit[ENTRIES[type_name]])  # type: ignore[misc]


@cache
def adapter(kind: type[T]) -> TypeAdapter[T]:
    """The reader and writer of one kind of value, made once."""
    return TypeAdapter(kind)


def _explain(error: ValidationError) -> Unreadable:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return Unreadable(field, first["msg"])


def _read(reader: TypeAdapter[T], data: bytes) -> T:
    try:
        return reader.validate_json(data)
    except ValidationError as error:
        raise _explain(error) from error


def _check(message: Envelope[Any] | Commit[Any], type_name: str, version: int) -> None:
    if message.type != type_name:
        raise Unreadable("type", f"is {message.type!r}, the subject says {type_name!r}")
    if message.v != version:
        raise UnknownType("v", f"{type_name} version {message.v} is not known, {version} is")


def decode_commit(type_name: str, data: bytes) -> Commit[Entry]:
    """Read a ledger message whose subject says `type_name`. Raises Unreadable, UnknownType."""
    if type_name not in ENTRIES:
        raise UnknownType("type", f"no entry {type_name!r} is known")
    commit: Commit[Entry] = _read(_commit(type_name), data)
    _check(commit, type_name, ENTRIES[type_name].VERSION)
    return commit


def decode(kind: type[B], data: bytes) -> Envelope[B]:
    """Read an envelope that must hold a `kind`. Raises Unreadable, UnknownType."""
    message: Envelope[B] = _read(_envelope(kind.TYPE), data)
    _check(message, kind.TYPE, kind.VERSION)
    return message


def decode_wish(type_name: str, data: bytes) -> tuple[Body, str | None]:
    """Read a wish, enveloped or bare; returns it and the envelope's id if there was one.

    Bare means the body alone, so that any client can wish by publishing one plain JSON object.
    Raises Unreadable, UnknownType.
    """
    kind = BODIES.get(type_name)
    if kind is None or not type_name.startswith("wish."):
        raise UnknownType("type", f"no wish {type_name!r} is known")
    if len(data) > MAX_WISH:
        raise Unreadable("", f"{len(data)} bytes, at most {MAX_WISH} are read")
    if _is_enveloped(data):
        message = decode(kind, data)
        return message.body, message.id
    return _read(adapter(kind), data), None


def _is_enveloped(data: bytes) -> bool:
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Unreadable("", f"not JSON in UTF-8: {error}") from error
    if not isinstance(parsed, dict):
        raise Unreadable("", "must be a JSON object")
    return "body" in parsed and "type" in parsed


def read_value(kind: type[T], value: object) -> T:
    """Check a plain object (from YAML, say) as strictly as if it had come by JSON. Raises Unreadable."""
    try:
        data = orjson.dumps(value)
    except TypeError as error:
        raise Unreadable("", f"holds something JSON cannot say: {error}") from error
    return _read(adapter(kind), data)


def to_json(value: object, *, indent: bool = False) -> bytes:
    """JSON of any value of ours; keys sorted when `indent`, for people and for diffs."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS if indent else 0
    return orjson.dumps(value, option=options)


def canonical(value: object) -> bytes:
    """The one spelling of a value: sorted keys, no spaces. Equal values, equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
