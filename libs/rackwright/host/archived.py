"""Reads back what `archive` has written, and proves that nothing in it was changed or is gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.host.archive import NAME, Archive, ArchiveBroken
from rackwright.wire.codec import Unreadable, read_json
from rackwright.wire.ids import LedgerId

MAX_LINE = 1_048_576
PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")  # gzip, bzip2, xz, zstd
SHOWN = 5
SUCH_AS = "files such as 0000000000000001-0000000000001000.jsonl"


@dataclass(slots=True)
class _Chain:
    """What the next segment, and the next commit, must fit."""

    ledger: str | None = None
    cell: str | None = None
    hash: str | None = None
    seq: int = 0

    def head(self, segment: Path, line: bytes) -> None:
        """The first line of a segment. Raises ArchiveBroken."""
        match _object(segment, 1, line):
            case {"ledger": str(ledger), "before": str(before)}:
                pass
            case _:
                raise ArchiveBroken(
                    f"{segment.name}:1: is no head of a segment, which names `ledger` and `before`"
                )
        if self.hash is not None and before != self.hash:
            raise ArchiveBroken(f"{segment.name} does not follow the segment before it")
        if self.ledger not in (None, ledger):
            raise ArchiveBroken(f"{segment.name} is of ledger {ledger}, not {self.ledger}")
        self.ledger = ledger

    def commit(self, where: str, stored: Stored) -> None:
        """The next commit. Raises ArchiveBroken."""
        if self.seq and stored.seq != self.seq + 1:
            raise ArchiveBroken(f"{where}: {self.seq + 1} had to come")
        self.seq = stored.seq
        cell = stored.subject.partition(".")[2].partition(".")[0]
        if self.cell not in (None, cell):
            raise ArchiveBroken(f"{where}: is of cell {cell!r}, not {self.cell!r} as those before")
        self.cell = cell
        if stored.seq == 1 and f'"{self.ledger}"' not in stored.data.decode():
            raise ArchiveBroken(f"{where}: does not create ledger {self.ledger}, of which this is")


def read_archive(path: Path) -> Iterator[Stored]:
    """The commits of an archive, in order: the directory of an archive or of one ledger in it, or
    one segment.

    Raises ArchiveBroken, OSError; ArchiveBroken too where there is no commit at all.
    """
    chain = _Chain()
    for segment in _segments(path):
        data = segment.read_bytes()
        head, *lines = _lines(segment, data)
        chain.head(segment, head)
        for number, line in enumerate(lines, 2):
            stored = _stored(segment, number, line)
            chain.commit(f"{segment.name}:{number}", stored)
            yield stored
        chain.hash = hashlib.sha256(data).hexdigest()
    if not chain.seq:
        raise ArchiveBroken(f"{path} holds no commit: an archive has {SUCH_AS}")


def _lines(segment: Path, data: bytes) -> list[bytes]:
    """Raises ArchiveBroken for what is no text of whole lines."""
    if data.startswith(PACKED):
        raise ArchiveBroken(f"{segment.name} is compressed: unpack it first")
    if not data:
        raise ArchiveBroken(f"{segment.name} is empty: a segment has a head and commits")
    if not data.endswith(b"\n"):
        _object(segment, 1, data.partition(b"\n")[0])  # says so if it is something else
        raise ArchiveBroken(f"{segment.name} is cut off: its last line has no end")
    return data.splitlines()


def _segments(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        if path.exists():
            raise ArchiveBroken(f"{path} is no file and no directory")
        raise ArchiveBroken(
            f"{path} is not there: a cell has an archive from the first time on that its ledger is"
            " trimmed; until then all of it is on the bus"
        )
    if any(NAME.fullmatch(one.name) for one in path.iterdir()):
        return [one.path for one in Archive(path.parent, LedgerId(path.name)).segments()]
    ledgers = [one for one in sorted(path.iterdir()) if one.is_dir()]
    if len(ledgers) != 1:
        told = ", ".join(one.name for one in ledgers[:SHOWN])
        told += ", ..." if len(ledgers) > SHOWN else ""
        raise ArchiveBroken(
            f"{path} must hold one ledger, holds {told or 'none'}: name the one you mean"
        )
    found = [one.path for one in Archive(path, LedgerId(ledgers[0].name)).segments()]
    if not found:
        raise ArchiveBroken(
            f"{ledgers[0]} holds no segments, {SUCH_AS}: name the directory that does"
        )
    return found


def _object(segment: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return read_json(dict[str, Any], line, MAX_LINE)
    except Unreadable as error:
        raise ArchiveBroken(f"{segment.name}:{number}: {error}") from error


def _stored(segment: Path, number: int, line: bytes) -> Stored:
    match _object(segment, number, line):
        case {
            "seq": int(seq),
            "at": float() | int() as at,
            "subject": str(to),
            "data": str(data),
        } if isfinite(at):
            return Stored(seq=seq, subject=to, at=float(at), headers=NO_HEADERS, data=data.encode())
        case _:
            raise ArchiveBroken(
                f"{segment.name}:{number}: is no commit: `seq`, `at`, `subject`, `data`"
            )
