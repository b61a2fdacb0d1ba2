"""Reads and writes snapshots of the fold: chunks, then a manifest that proves them complete."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from rackwright.bus.ports import Bus
from rackwright.core.fleet import Fleet
from rackwright.core.snapshot import load, shape
from rackwright.host.commits import Author
from rackwright.wire.codec import Unreadable, decode
from rackwright.wire.ids import CellName, LedgerId
from rackwright.wire.subjects import Subjects
from rackwright.wire.values import SnapshotManifest
from rackwright.wire.versions import FOLD_VERSION

CHUNK = 131_072
SIDE_BY_SIDE = 8  # chunks that are asked for at once
MANIFEST = "manifest"


class BadSnapshot(Exception):
    """A snapshot that must not be used, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a snapshot is, by the subject of its manifest."""

    ledger: LedgerId
    seq: int
    subject: str


def digest(data: bytes) -> str:
    """What a manifest says of the bytes, and `snapshot.verified` of the fold."""
    return hashlib.sha256(data).hexdigest()


async def find(bus: Bus) -> list[Found]:
    """All complete snapshots, the newest first. Raises BusAway."""
    subjects = Subjects(CellName(bus.cell))
    pattern = subjects.all("snap").removesuffix(">") + f"*.*.{MANIFEST}"
    found = []
    for subject in await bus.snapshots.subjects(pattern):
        *_, ledger, seq, _ = subject.split(".")
        if seq.isdigit():
            found.append(Found(ledger=LedgerId(ledger), seq=int(seq), subject=subject))
    return sorted(found, key=lambda one: (-one.seq, one.ledger))


async def read_bytes(bus: Bus, found: Found) -> tuple[SnapshotManifest, bytes]:
    """The manifest of a snapshot and its bytes, whole. Raises BadSnapshot, BusAway."""
    manifest = await read_manifest(bus, found)
    subjects = Subjects(CellName(bus.cell))
    parts: list[bytes] = []
    for first in range(0, manifest.chunks, SIDE_BY_SIDE):
        some = range(first, min(first + SIDE_BY_SIDE, manifest.chunks))
        asked = (subjects.snapshot(found.ledger, found.seq, str(part)) for part in some)
        answers = await bus.snapshots.read_all(asked)
        for part, stored in zip(some, answers, strict=True):
            if stored is None:
                raise BadSnapshot(f"chunk {part} of {manifest.chunks} is missing")
            parts.append(stored.data)
    data = b"".join(parts)
    if len(data) != manifest.size:
        raise BadSnapshot(f"{len(data)} bytes, the manifest says {manifest.size}")
    if digest(data) != manifest.sha256:
        raise BadSnapshot("its SHA-256 is another than the manifest says")
    return manifest, data


async def read(bus: Bus, found: Found) -> Fleet:
    """The fleet of a snapshot. Raises BadSnapshot, BusAway."""
    manifest, data = await read_bytes(bus, found)
    try:
        fleet = load(data)
    except Unreadable as error:
        raise BadSnapshot(str(error)) from error
    if (fleet.seq, fleet.ledger, fleet.last_id) != (found.seq, found.ledger, manifest.last_id):
        raise BadSnapshot(f"holds ledger {fleet.ledger} at {fleet.seq}, after {fleet.last_id}")
    return fleet


async def read_manifest(bus: Bus, found: Found) -> SnapshotManifest:
    """What the manifest says. Raises BadSnapshot, BusAway."""
    stored = await bus.snapshots.read(found.subject)
    if stored is None:
        raise BadSnapshot("it has been removed")
    try:
        manifest = decode(SnapshotManifest, stored.data).body
    except Unreadable as error:
        raise BadSnapshot(str(error)) from error
    if (manifest.ledger, manifest.seq) != (found.ledger, found.seq):
        raise BadSnapshot("its manifest speaks of another one")
    if manifest.fold_version > FOLD_VERSION:
        raise BadSnapshot(f"fold version {manifest.fold_version}, this has {FOLD_VERSION}")
    return manifest


async def write(bus: Bus, author: Author, fleet: Fleet, data: bytes, at: float) -> None:
    """Store a snapshot of `fleet`, of which `data` is the dump. Raises BusAway, BusFull.

    Two writers of one sequence write equal chunks. The manifest comes last.
    """
    if fleet.last_id is None:
        raise ValueError("nothing is folded yet")
    subjects = Subjects(CellName(bus.cell))
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    for part, chunk in enumerate(chunks):
        await bus.snapshots.write(subjects.snapshot(fleet.ledger, fleet.seq, str(part)), chunk)
    manifest = SnapshotManifest(
        ledger=fleet.ledger,
        seq=fleet.seq,
        last_id=fleet.last_id,
        fold_version=fleet.fold_version,
        sha256=digest(data),
        chunks=len(chunks),
        size=len(data),
        shape=shape(),
    )
    await bus.snapshots.write(
        subjects.snapshot(fleet.ledger, fleet.seq, MANIFEST), author.said(manifest, at)
    )


async def remove(bus: Bus, found: Found) -> None:
    """Remove a snapshot. Raises BusAway, BusDenied."""
    subjects = Subjects(CellName(bus.cell))
    everything = subjects.snapshot(found.ledger, found.seq, MANIFEST).removesuffix(MANIFEST) + ">"
    await bus.snapshots.delete(everything)
