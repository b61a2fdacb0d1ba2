"""Reads back what `archive` has written, and proves that nothing in it was changed or is gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.host.archive import NAME, Archive, ArchiveBroken
from rackwright.wire.codec import Unreadable, read_json
from rackwright.wire.ids import LedgerId

MAX_LINE = 1_048_576


def read_archive(path: Path) -> Iterator[Stored]:
    """The commits of an archive, in order: the directory of an archive or of one ledger in it, or
    one segment.

    Raises ArchiveBroken, OSError.
    """
    before: str | None = None
    following = 0
    for segment in _segments(path):
        data = segment.read_bytes()
        head, *lines = data.splitlines()
        said = _object(segment, 1, head).get("before")
        if before is not None and said != before:
            raise ArchiveBroken(f"{segment.name} does not follow the segment before it")
        for number, line in enumerate(lines, 2):
            stored = _stored(segment, number, line)
            if following and stored.seq != following:
                raise ArchiveBroken(f"{segment.name}:{number}: {following} had to come")
            following = stored.seq + 1
            yield stored
        before = hashlib.sha256(data).hexdigest()


def _segments(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ArchiveBroken(
            f"{path} is not there: a cell has an archive from the first time on that its ledger is"
            " trimmed; until then all of it is on the bus"
        )
    if any(NAME.fullmatch(one.name) for one in path.iterdir()):
        return [one.path for one in Archive(path.parent, LedgerId(path.name)).segments()]
    ledgers = [one for one in sorted(path.iterdir()) if one.is_dir()]
    if len(ledgers) != 1:
        found = ", ".join(one.name for one in ledgers) or "none"
        raise ArchiveBroken(f"{path} must hold one ledger, holds {found}: name the one you mean")
    return [one.path for one in Archive(path, LedgerId(ledgers[0].name)).segments()]


def _object(segment: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return read_json(dict[str, Any], line, MAX_LINE)
    except Unreadable as error:
        raise ArchiveBroken(f"{segment.name}:{number}: {error}") from error


def _stored(segment: Path, number: int, line: bytes) -> Stored:
    match _object(segment, number, line):
        case {"seq": int(seq), "at": float() | int() as at, "subject": str(to), "data": str(data)}:
            return Stored(seq=seq, subject=to, at=float(at), headers=NO_HEADERS, data=data.encode())
        case _:
            raise ArchiveBroken(f"{segment.name}:{number}: is no commit")
