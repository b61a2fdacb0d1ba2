"""Constructors written from a class, for records of which very many are made.

The __init__ of a frozen dataclass goes through object.__setattr__ for every field. Here its source
is written as `dataclasses` does it; only names of declared fields enter it.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

T = TypeVar("T")


def draft(kind: type) -> type:
    """An unfrozen `kind` with the same slots, so that it can become a `kind` when it is done."""
    thawed = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(f"{kind.__name__}Draft", (kind,), {"__slots__": (), **thawed})


def written(takes: str, begin: str, body: list[str], end: str, **scope: Any) -> Callable[..., Any]:
    """A function of this signature that fills `_made` by these statements."""
    text = "\n ".join([f"def written({takes}):", begin, *body, end])
    exec(text, scope)
    found: Callable[..., Any] = scope["written"]
    return found


def quick(kind: type[T]) -> type[T]:
    """A class decorator above a frozen, slotted, keyword-only dataclass: the same __init__ in less
    than half the time. Raises TypeError for a __post_init__."""
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} has a __post_init__")
    scope = {"_put": object.__setattr__, "_draft": draft(kind), "_kind": kind, "_unset": object()}
    takes, body = [], []
    for one in fields(kind):  # type: ignore[arg-type]
        name = given = take = one.name
        if one.default is not MISSING:
            scope[f"_{name}_"], take = one.default, f"{name}=_{name}_"
        elif one.default_factory is not MISSING:
            scope[f"_{name}_"], take = one.default_factory, f"{name}=_unset"
            given = f"_{name}_() if {name} is _unset else {name}"
        takes.append(take)
        body.append(f"_made.{name} = {given}")
    init = written(
        f"_made, /, *, {', '.join(takes)}",
        "_put(_made, '__class__', _draft)",
        body,
        "_made.__class__ = _kind",
        **scope,
    )
    init.__name__, init.__qualname__ = "__init__", f"{kind.__qualname__}.__init__"
    kind.__init__ = init  # type: ignore[method-assign]
    return kind
