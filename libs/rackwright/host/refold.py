"""Folds a snapshot on, in a process of its own, and says the hash of what comes out.

The parent writes the snapshot and the commits to standard input; the answer is one line.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from rackwright.bus.ports import Stored
from rackwright.core.fold import StoppedAt, fold
from rackwright.core.snapshot import dump, load
from rackwright.host.snapshots import digest
from rackwright.wire.codec import Unreadable
from rackwright.wire.ids import CellName
from rackwright.wire.ledgered import read_commit
from rackwright.wire.subjects import InvalidSubject

SIZE: Final = struct.Struct(">I")
COMMIT: Final = struct.Struct(">QdI")
NICE: Final = 5  # the services on this machine come first


class RefoldFailed(Exception):
    """The other process could not fold; its own words."""


async def refold(cell: str, snapshot: bytes, commits: Sequence[Stored]) -> str:
    """The SHA-256 of the fleet after these commits, folded elsewhere. Raises RefoldFailed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        cell,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate(b"".join(pack(snapshot, commits)))
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise RefoldFailed(err.decode(errors="replace").strip()[-500:] or str(process.returncode))
    return out.decode().strip()


def pack(snapshot: bytes, commits: Sequence[Stored]) -> Iterator[bytes]:
    """The bytes for the other process."""
    yield SIZE.pack(len(snapshot))
    yield snapshot
    for stored in commits:
        subject = stored.subject.encode()
        yield COMMIT.pack(stored.seq, stored.at, len(subject))
        yield subject
        yield SIZE.pack(len(stored.data))
        yield stored.data


def answer(cell: str, source: BinaryIO) -> str:
    """Read what `pack` wrote and fold it. Raises Unreadable, StoppedAt, InvalidSubject."""
    fleet = load(source.read(SIZE.unpack(source.read(SIZE.size))[0]))
    while head := source.read(COMMIT.size):
        seq, at, size = COMMIT.unpack(head)
        subject = source.read(size).decode()
        data = source.read(SIZE.unpack(source.read(SIZE.size))[0])
        fleet = fold(fleet, seq, at, read_commit(CellName(cell), subject, data)).fleet
    return digest(dump(fleet))


def main() -> int:
    """The other process."""
    os.nice(NICE)
    try:
        print(answer(sys.argv[1], sys.stdin.buffer))
    except (Unreadable, StoppedAt, InvalidSubject) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
