"""A file as a value that knows where in the text its parts stand, and errors that say so."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rackwright.wire.codec import Unreadable

Path = tuple[str | int, ...]


class FileError(ValueError):
    """What is wrong in a file: where, in which field, and what would be right."""

    def __init__(self, name: str, problem: str, *, field: str = "", line: int | None = None):
        place = name if line is None else f"{name}:{line}"
        super().__init__(": ".join(part for part in (place, field, problem) if part))
        self.name = name
        self.problem = problem
        self.field = field
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One value out of a file. `lines`: where a path begins; `raw`: its scalars as written."""

    name: str
    value: Any
    lines: dict[Path, int] = field(default_factory=dict)
    raw: dict[Path, str] = field(default_factory=dict)

    def error(self, path: Path, problem: str) -> FileError:
        """An error about the value at `path`, on its line or the nearest line above it."""
        known = (
            self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines
        )
        return FileError(self.name, problem, field=dotted(path), line=next(known, None))

    def unreadable(self, error: Unreadable, *, under: Path = ()) -> FileError:
        """The error of the strict reader, in words of the file."""
        parts = [int(part) if part.isdecimal() else part for part in error.field.split(".") if part]
        path = (*under, *parts)
        told = self.value
        for part in path:
            match told, part:
                case dict(), str() if part in told:
                    told = told[part]
                case list(), int() if part < len(told):
                    told = told[part]
                case _:
                    return self.error(path, error.problem)
        problem = error.problem
        if problem == "must be a text":
            problem += " (put it in quotes)"
        wanted = problem.startswith("must")
        return self.error(path, f"{problem}, not {kind_of(told)}" if wanted else problem)

    def mapping(self, path: Path, value: object, what: str) -> Mapping[str, Any]:
        """`value` if it is a mapping. Raises FileError."""
        if not isinstance(value, dict):
            raise self.error(path, f"must be {what} (names and values), not {kind_of(value)}")
        return value

    def text(self, path: Path, value: object) -> str:
        """`value` as the text it was written as. Raises FileError unless it is one value."""
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.raw.get(path, str(value))
        raise self.error(path, f"must be a text, not {kind_of(value)}")

    def only(self, path: Path, value: Mapping[str, Any], allowed: Iterable[str]) -> None:
        """Check that `value` has no other names than `allowed`. Raises FileError."""
        names = list(allowed)
        for key in value:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                if not near:
                    hint = f"; known are {', '.join(names)}"
                raise self.error((*path, key), f"is not known here{hint}")


def dotted(path: Path) -> str:
    """A path as people write it: `groups.0.nodes`."""
    return ".".join(str(part) for part in path)


def kind_of(value: object) -> str:
    """What a value is, for an error: a text, a number, a list ..."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {value[:40]!r}"
        case int() | float():
            told = str(value)
            return f"the number {told if len(told) <= 40 else told[:40] + '...'}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def decode(data: bytes | str, *, name: str, limit: int) -> str:
    """The text of a file of at most `limit` bytes. Raises FileError."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > limit:
        raise FileError(name, f"has {len(raw)} bytes, at most {limit} are read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start} is not UTF-8; save the file as UTF-8"
        raise FileError(name, problem, line=line) from error
    if not text.strip():
        raise FileError(name, "is empty")
    return text


def read_json(text: str, *, name: str) -> Document:
    """One JSON value. Raises FileError."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FileError(name, f"is not JSON: {error.msg}", line=error.lineno) from error
    return Document(name=name, value=value)
