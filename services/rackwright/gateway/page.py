"""Pages: as many items as were asked for and as fit into one message of the bus."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rackwright.wire.codec import to_json

MAX_ANSWER = 240_000  # bytes; a message may have 256 KiB
LIST_BYTES = 180_000
T = TypeVar("T")


def fitting(items: Iterable[T], limit: int, most: int = LIST_BYTES) -> tuple[tuple[T, ...], bool]:
    """The first `limit` items that take at most `most` bytes, at least one; whether more come."""
    kept: list[T] = []
    size = 0
    for item in items:
        size += len(to_json(item)) + 1
        if len(kept) == limit or (kept and size > most):
            return tuple(kept), True
        kept.append(item)
    return tuple(kept), False


def newest(items: Sequence[T], limit: int, most: int = LIST_BYTES) -> tuple[T, ...]:
    """The last items, in their order, that fit."""
    kept, _ = fitting(reversed(items), limit, most)
    return kept[::-1]


def after(items: Sequence[T], name: Callable[[T], str], cursor: str | None) -> Sequence[T]:
    """The items behind the one called `cursor`, in a list sorted by name."""
    if cursor is None:
        return items
    return [item for item in items if name(item) > cursor]
