"""Keeps what is trimmed off the ledger, in files that prove each other by a chain of hashes.

A segment holds commits `first`..`last`, one JSON line each, after a line that names the ledger and
the hash of the segment before. It is on disk, whole, before anything is removed from the stream.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rackwright.bus.ports import Stored
from rackwright.wire.codec import to_json
from rackwright.wire.ids import LedgerId

NAME = re.compile(r"(\d{16})-(\d{16})\.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One file of the archive."""

    path: Path
    first: int
    last: int


class ArchiveBroken(Exception):
    """The archive does not continue where it must, or its hashes do not fit."""


class Archive:
    """The archive of one ledger in a directory of its own."""

    def __init__(self, directory: Path, ledger: LedgerId) -> None:
        self._directory = directory / ledger
        self._ledger = ledger

    def segments(self) -> list[Segment]:
        """All segments in order. Raises ArchiveBroken if one is missing."""
        if not self._directory.is_dir():
            return []
        found = [
            Segment(path=path, first=int(match[1]), last=int(match[2]))
            for path in sorted(self._directory.iterdir())
            if (match := NAME.fullmatch(path.name)) is not None
        ]
        for before, after in itertools.pairwise(found):
            if after.first != before.last + 1:
                raise ArchiveBroken(f"after {before.path.name} comes {after.path.name}")
        return found

    @property
    def last(self) -> int:
        """The last sequence that is kept; 0: none."""
        segments = self.segments()
        return segments[-1].last if segments else 0

    def write(self, commits: Iterable[Stored]) -> int:
        """Add one segment and make it durable; the last sequence that is kept then.

        Raises ArchiveBroken, OSError.
        """
        kept = list(commits)
        segments = self.segments()
        if not kept:
            return segments[-1].last if segments else 0
        if kept[0].seq != (segments[-1].last + 1 if segments else 1):
            raise ArchiveBroken(f"the next commit must follow {self.last}, not be {kept[0].seq}")
        before = _hash(segments[-1].path) if segments else ""
        lines = [to_json({"ledger": self._ledger, "before": before})]
        lines += [to_json(_line(stored)) for stored in kept]
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{kept[0].seq:016d}-{kept[-1].seq:016d}.jsonl"
        _write_durably(path, b"\n".join([*lines, b""]))
        return kept[-1].seq


def _line(stored: Stored) -> dict[str, object]:
    return {
        "seq": stored.seq,
        "at": stored.at,
        "subject": stored.subject,
        "data": stored.data.decode(),
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_durably(path: Path, data: bytes) -> None:
    being_written = path.with_suffix(".part")
    with being_written.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    being_written.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
