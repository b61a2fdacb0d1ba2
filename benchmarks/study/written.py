"""What somebody has written into a page of a study: it stays when the figures are written anew."""

from collections.abc import Iterator
from pathlib import Path

HEAD = "## What the figures say"


def kept(where: Path) -> Iterator[str]:
    """The lines under that heading of the page that is there; nothing if there is none."""
    lines = where.read_text(encoding="utf-8").splitlines() if where.exists() else []
    if HEAD not in lines:
        return
    start = lines.index(HEAD)
    rest = lines[start + 1 :]
    end = next((at for at, line in enumerate(rest) if line.startswith("## ")), len(rest))
    yield ""
    yield HEAD
    yield from (line for line in rest[: _full(rest, end)])


def _full(lines: list[str], end: int) -> int:
    """Without the empty lines at its end."""
    while end and not lines[end - 1].strip():
        end -= 1
    return end
