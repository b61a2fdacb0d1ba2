"""YAML as people write it: plain values by the rules of version 1.2, and the line of each.

`no`, `12:30` and `0012` are texts. Anchors are read, within a limit; tags, merge keys, doubled keys
and further documents are errors.
"""

import re
from collections.abc import Iterator
from math import isfinite

import yaml

from rackwright.host.files.text import Document, FileError, Path, dotted

MAX_DEPTH = 32
MAX_VALUES = 1_000_000  # aliases counted with all they stand for


def read_yaml(text: str, *, name: str) -> Document:
    """The one document of a YAML text. Raises FileError."""
    events = yaml.parse(text, Loader=_LOADER)
    try:
        return _Reader(name, events).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        problem = f"is not YAML: {error.problem or error.context}"
        if _tab_indents(text, line):
            problem = "is indented with a tab; YAML wants spaces"
        raise FileError(name, problem, line=line) from error
    except yaml.YAMLError as error:
        raise FileError(name, f"is not YAML: {error}".partition("\n")[0]) from error


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _tab_indents(text: str, line: int | None) -> bool:
    lines = text.split("\n")
    if line is None or line > len(lines):
        return False
    told = lines[line - 1]
    return "\t" in told[: len(told) - len(told.lstrip())]


_INT = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _scalar(event: yaml.ScalarEvent) -> object:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 20:
        return int(text)
    if _FLOAT.fullmatch(text) and isfinite(number := float(text)):
        return number
    return text


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _Reader:
    """Folds the parser's events into values, and keeps the count of what it has made."""

    def __init__(self, name: str, events: Iterator[yaml.Event]) -> None:
        self.name = name
        self.events = events
        self.lines: dict[Path, int] = {}
        self.raw: dict[Path, str] = {}
        self.anchors: dict[str, tuple[object, int]] = {}
        self.made = 0

    def document(self) -> Document:
        value: object = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(
                        event, "a second document begins here; one file, one document"
                    )
                value = self._value(next(self.events), ())
        if not documents:
            raise FileError(self.name, "is empty")
        return Document(name=self.name, value=value, lines=self.lines, raw=self.raw)

    def _error(self, event: yaml.Event, problem: str, path: Path = ()) -> FileError:
        line = _line(event)
        return FileError(self.name, problem, field=dotted(path), line=line)

    def _count(self, event: yaml.Event, path: Path, size: int) -> None:
        self.made += size
        if self.made > MAX_VALUES:
            raise self._error(event, f"the file stands for more than {MAX_VALUES} values", path)

    def _value(self, event: yaml.Event, path: Path) -> object:
        if len(path) > MAX_DEPTH:
            raise self._error(event, f"is nested more than {MAX_DEPTH} deep", path[:3])
        self.lines.setdefault(path, _line(event))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise self._error(event, "a value was expected", path)
        if event.tag is not None:
            raise self._error(event, f"tags are not read: {event.tag}", path)
        before = self.made
        self._count(event, path, 1)
        value: object
        if isinstance(event, yaml.ScalarEvent):
            self.raw[path] = event.value
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(path)
        else:
            value = self._mapping(path)
        if event.anchor:
            self.anchors[event.anchor] = (value, self.made - before)
        return value

    def _alias(self, event: yaml.AliasEvent, path: Path) -> object:
        if event.anchor not in self.anchors:
            raise self._error(event, f"*{event.anchor} stands for nothing above it", path)
        value, size = self.anchors[event.anchor]
        self._count(event, path, size)
        if isinstance(value, str | int | float):
            self.raw[path] = str(value)
        return value

    def _sequence(self, path: Path) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(event, "a name must be a plain text", path)
            key: str = event.value
            here = (*path, key)
            if key == "<<" and event.implicit[0]:
                raise self._error(event, "merge keys are not read; write the fields out", path)
            if key in found:
                raise self._error(
                    event, f"stands here again, first on line {self.lines[here]}", here
                )
            self.lines[here] = _line(event)
            found[key] = self._value(next(self.events), here)
        return found
