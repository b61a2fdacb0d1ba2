"""Bytes to messages and back. The only module that knows orjson and pydantic.

What cannot be read raises Unreadable, which names the field and what would be right; a wish or a
signal is then set aside, a ledger entry stops the fold.
"""

from functools import cache
from typing import Any, TypeVar, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from rackwright.wire.entries import ENTRIES
from rackwright.wire.ids import CellName
from rackwright.wire.message import Body, Commit, Entry, Envelope
from rackwright.wire.plainly import meant, plainly
from rackwright.wire.signals import Echo, Fault, Heartbeat, NodeStatus
from rackwright.wire.subjects import parse_node
from rackwright.wire.values import JobValue, RackAssignments, SnapshotManifest
from rackwright.wire.versions import grew, unused_left_out
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
LONGEST_FIELD = 120


class Unreadable(ValueError):
    """Bytes that are no message of ours: the field, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        # The name of a field that we do not know is the sender's text, of any length.
        shown = field if len(field) <= LONGEST_FIELD else field[: LONGEST_FIELD - 3] + "..."
        super().__init__(f"{shown}: {problem}" if shown else problem)
        self.field = shown
        self.problem = problem


class UnknownType(Unreadable):
    """A type name or version that this version of the software does not know."""


def encode(message: Envelope[Any] | Commit[Any] | Body) -> bytes:
    """The bytes of a message: compact JSON, fields in their order of declaration.

    A commit is written without the fields that a later fold version brought and nobody uses.
    """
    kind: Any = ENTRIES.get(message.type) if isinstance(message, Commit) else None
    if kind is not None and grew(kind):
        return orjson.dumps(unused_left_out(message))
    return orjson.dumps(message)


@cache
def _writer(kind: type[Body]) -> TypeAdapter[Any]:
    generic: Any = Envelope
    return TypeAdapter(generic[kind])


def encode_value(message: Envelope[Any]) -> bytes:
    """The bytes of a value for agents: compact JSON, without what has its default.

    An unknown field of a value is an error, and an agent may be older than the service that writes.
    So it is not told of a field that nobody has used yet, and stumbles only over one that is used.
    """
    unhashable_to_mypy: Any = type(message.body)
    return _writer(unhashable_to_mypy).dump_json(message, exclude_defaults=True)


def write_commit(commit: Commit[Any]) -> bytes:
    """The bytes of a commit. Raises Unreadable for what JSON cannot say."""
    try:
        return encode(commit)
    except TypeError as error:
        raise Unreadable("", f"JSON cannot say it: {error}") from error


def seal(commit: Commit[Any], written: bytes | None = None) -> bytes:
    """The bytes of a commit, proven readable before anybody else has to read them.

    A value that only the writer's memory can hold (an infinite cost, a list too long) would stop
    every fold of the cell for ever. `written`: what `write_commit` has made of it already. Raises
    Unreadable, UnknownType.
    """
    data = written if written is not None else write_commit(commit)
    decode_commit(commit.type, data)
    return data


@cache
def _envelope(type_name: str) -> TypeAdapter[Any]:
    generic: Any = Envelope
    return TypeAdapter(generic[BODIES[type_name]])


@cache
def _commit(type_name: str) -> TypeAdapter[Any]:
    generic: Any = Commit
    return TypeAdapter(generic[ENTRIES[type_name]])


@cache
def _made(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """The reader and writer of one kind of value, made once."""
    unhashable_to_mypy: Any = kind
    return _made(unhashable_to_mypy)


def message_adapter(type_name: str) -> TypeAdapter[Any]:
    """The reader of the message of one type: a commit, or an envelope. Raises UnknownType."""
    kind_of(type_name)
    return _commit(type_name) if type_name in ENTRIES else _envelope(type_name)


def kind_of(type_name: str) -> type[Body]:
    """The class of an entry or body by its type name. Raises UnknownType."""
    kind = ENTRIES.get(type_name) or BODIES.get(type_name)
    if kind is None:
        raise UnknownType("type", f"no message {type_name[:80]!r} is known")
    return kind


def _explain(error: ValidationError) -> Unreadable:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return Unreadable(field, plainly(first["msg"]))


def _read(reader: TypeAdapter[T], data: bytes, most: int = MAX_MESSAGE) -> T:
    if len(data) > most:
        raise Unreadable("", f"{len(data)} bytes, at most {most} are read")
    try:
        return reader.validate_json(data)
    except ValidationError as error:
        raise _explain(error) from error


def _check(found: object, version: object, kind: type[Body]) -> None:
    if found != kind.TYPE:
        raise Unreadable("type", f"is {str(found)[:80]!r}, {kind.TYPE!r} is expected here")
    if version != kind.VERSION:
        known = f"{kind.VERSION} is"
        raise UnknownType("v", f"{kind.TYPE} version {str(version)[:20]} is not known, {known}")


def _blame_version(data: bytes, kind: type[Body]) -> None:
    """Raise if what cannot be read is no `kind` at all, or one of another version."""
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError:
        return
    if isinstance(parsed, dict) and "type" in parsed and "v" in parsed:
        _check(parsed["type"], parsed["v"], kind)


def _decode(reader: TypeAdapter[T], kind: type[Body], data: bytes) -> T:
    try:
        message: Any = _read(reader, data)
    except Unreadable:
        if len(data) <= MAX_MESSAGE:
            _blame_version(data, kind)
        raise
    _check(message.type, message.v, kind)
    return cast(T, message)


def decode_commit(type_name: str, data: bytes) -> Commit[Entry]:
    """Read a ledger message whose subject says `type_name`. Raises Unreadable, UnknownType."""
    kind = ENTRIES.get(type_name)
    if kind is None:
        raise UnknownType("type", f"no entry {type_name[:80]!r} is known")
    return _decode(_commit(type_name), kind, data)


def decode(kind: type[B], data: bytes) -> Envelope[B]:
    """Read an envelope that must hold a `kind`. Raises Unreadable, UnknownType."""
    return _decode(_envelope(kind.TYPE), kind, data)


def decode_of_node(
    kind: type[B], data: bytes, *, cell: CellName, stream: str, subject: str
) -> Envelope[B]:
    """Read what a node said; it may speak of itself only, which its subject proves.

    The bus lets an agent publish on its own node's subjects alone, the body is but a claim.
    Raises Unreadable, UnknownType, InvalidSubject, InvalidId.
    """
    rack, node = parse_node(cell, subject, stream)
    message = decode(kind, data)
    said = {"cell": message.cell}
    said |= {f"body.{name}": getattr(message.body, name) for name in ("rack", "node")}
    for field, right in (("cell", cell), ("body.rack", rack), ("body.node", node)):
        if said[field] != right:
            raise Unreadable(field, f"is {said[field]!r}, the subject says {right!r}")
    return message


_WISHES = tuple(one.TYPE.partition(".")[2] for one in ANY_WISH)


def decode_wish(
    type_name: str, data: bytes, *, cell: CellName | None = None
) -> tuple[Body, str | None]:
    """Read a wish, enveloped or bare; returns it and the envelope's id if there was one.

    Bare means the body alone, so that any client can wish by publishing one plain JSON object. An
    envelope must name this `cell`, if that is given: what was meant for another is not for us.
    Raises Unreadable, UnknownType.
    """
    kind = BODIES.get(type_name)
    if kind is None or not type_name.startswith("wish."):
        shown = type_name[:80]
        right = meant(shown.rpartition(".")[2], _WISHES)
        raise UnknownType("type", f"no wish {shown!r} is known; {right}")
    if len(data) > MAX_WISH:
        raise Unreadable("", f"{len(data)} bytes, at most {MAX_WISH} are read")
    if _is_enveloped(data):
        message = decode(kind, data)
        if cell is not None and message.cell != cell:
            raise Unreadable("cell", f"is {message.cell!r}, this is {cell!r}")
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


def read_json(kind: type[T], data: bytes, most: int = MAX_MESSAGE) -> T:
    """Read one value of a kind from at most `most` bytes of JSON, strictly. Raises Unreadable."""
    return _read(adapter(kind), data, most)


def read_value(kind: type[T], value: object) -> T:
    """Check a plain object (from YAML, say) as strictly as if it came by JSON.

    Raises Unreadable.
    """
    try:
        data = orjson.dumps(value)
    except TypeError as error:
        raise Unreadable("", f"holds something JSON cannot say: {error}") from error
    return _read(adapter(kind), data)


def to_json(value: object, *, indent: bool = False) -> bytes:
    """JSON of any value of ours; keys of maps sorted when `indent`, for people and for diffs."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS if indent else 0
    return orjson.dumps(value, option=options)


def canonical(value: object) -> bytes:
    """The one spelling of a value: equal values that were read from the wire, equal bytes.

    Keys of maps are sorted, fields keep their order of declaration.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
