"""Which fold version brought which entries and fields, so that nothing newer than a cell is said.

`FOLD_VERSION` is what this software knows; a cell is at the version that its ledger says. A field
that came later has a default and is not written while it has it: software that does not know the
field can read the entry for as long as nobody uses it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

FOLD_VERSION = 2


def since(version: int, default: Any, **metadata: Any) -> Any:
    """A field that fold version `version` brought. Its default means what was meant before."""
    kept = {"since": version, **metadata}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=kept)
    return field(default=default, metadata=kept)


def too_new(entry: object, version: int) -> str | None:
    """What of this entry a cell at fold version `version` does not know yet; None: nothing."""
    needs = getattr(entry, "SINCE", 1)
    if needs > version:
        return f"it needs fold version {needs}"
    for path, one in _used(entry, ""):
        needs = one.metadata["since"]
        if needs > version:
            return f"{path} needs fold version {needs}"
    return None


def _used(value: object, path: str) -> Iterator[tuple[str, "Field[Any]"]]:
    """Fields that came later and are used in a value or in what is in it."""
    if is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            inner, here = getattr(value, one.name), f"{path}.{one.name}" if path else one.name
            if "since" in one.metadata and inner != _default(one):
                yield here, one
            yield from _used(inner, here)
    elif isinstance(value, tuple):
        for turn, inner in enumerate(value):
            yield from _used(inner, f"{path}.{turn}")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _used(inner, f"{path}.{key}")


def _default(one: "Field[Any]") -> Any:
    made = one.default_factory
    return made() if made is not MISSING else one.default


@cache
def grew(kind: Any) -> bool:
    """Has this type, or one that is in it, fields that came later?"""
    return any(_later(kind, set()))


def _later(kind: Any, seen: set[Any]) -> Iterator[bool]:
    for inner in get_args(kind):
        yield from _later(inner, seen)
    if not isinstance(kind, type) or not is_dataclass(kind) or kind in seen:
        return
    seen.add(kind)
    hints = get_type_hints(kind)
    for one in fields(kind):
        yield "since" in one.metadata
        yield from _later(hints[one.name], seen)


def unused_left_out(value: object) -> Any:
    """A value as a plain object for JSON, without later fields that have their default."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: unused_left_out(getattr(value, one.name))
            for one in fields(value)
            if "since" not in one.metadata or getattr(value, one.name) != _default(one)
        }
    if isinstance(value, tuple):
        return [unused_left_out(one) for one in value]
    if isinstance(value, Mapping):
        return {key: unused_left_out(one) for key, one in value.items()}
    return value
