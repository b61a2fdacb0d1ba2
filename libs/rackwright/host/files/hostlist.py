"""Slurm's host lists: `node[0001-0018,20],login1` into names, in the order they are written.

A name may hold several brackets (`r[1-2]n[01-18]`, the last one running fastest), not one inside
another. The digits before a range's hyphen give the width: `[08-10]` is 08, 09, 10.
"""

import re
from collections.abc import Iterator
from itertools import product

MAX_HOSTS = 4096  # of one list: far more than a rack, far less than harm

_RANGE = re.compile(r"(?P<low>[0-9]{1,18})(?:-(?P<high>[0-9]{1,18}))?")


class HostlistError(ValueError):
    """A host list that cannot be read: the piece of it, and what would be right."""

    def __init__(self, piece: str, problem: str) -> None:
        shown = piece if len(piece) <= 60 else piece[:57] + "..."
        super().__init__(f"{shown!r}: {problem}")
        self.piece = shown
        self.problem = problem


def expand(text: str) -> list[str]:
    """The names of a host list, doubles kept. Raises HostlistError."""
    names: list[str] = []
    for item in _items(text):
        names.extend(_names(item, MAX_HOSTS - len(names)))
    return names


def _items(text: str) -> Iterator[str]:
    """The pieces between commas that stand in no bracket."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        if depth not in (0, 1):
            problem = "a bracket inside a bracket" if depth > 1 else "']' without its '['"
            raise HostlistError(text[start:], problem)
        if char == "," and not depth:
            yield _item(text[start:at])
            start = at + 1
    if depth:
        raise HostlistError(text[start:], "'[' without its ']'")
    yield _item(text[start:])


def _item(piece: str) -> str:
    if not (item := piece.strip()):
        raise HostlistError(piece, "a name is missing between commas")
    return item


def _names(item: str, room: int) -> Iterator[str]:
    pieces = re.split(r"\[([^\]]*)\]", item)  # fixed texts, and between them what is in brackets
    choices: list[list[tuple[int, int, int]]] = [_ranges(item, inside) for inside in pieces[1::2]]
    total = 1
    for ranges in choices:
        total *= sum(high - low + 1 for low, high, _ in ranges)
    if total > room:
        raise HostlistError(item, f"stands for {total} names, at most {MAX_HOSTS} are read")
    for numbers in product(*(list(_numbers(ranges)) for ranges in choices)):
        told = [pieces[0]]
        for number, fixed in zip(numbers, pieces[2::2], strict=True):
            told += [number, fixed]
        yield "".join(told)


def _ranges(item: str, inside: str) -> list[tuple[int, int, int]]:
    """Lowest and highest number and width of each range of one bracket."""
    found = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            problem = f"[{inside}] must hold numbers and ranges such as 01-18"
            raise HostlistError(item, problem)
        low, high = int(match["low"]), int(match["high"] or match["low"])
        if low > high:
            raise HostlistError(item, f"the range {part.strip()} runs backwards")
        found.append((low, high, len(match["low"])))
    return found


def _numbers(ranges: list[tuple[int, int, int]]) -> Iterator[str]:
    for low, high, width in ranges:
        for number in range(low, high + 1):
            yield f"{number:0{width}}"
