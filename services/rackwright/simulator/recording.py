"""Keeps the ledger of a simulated run as an archive, which verify, plan and replay read."""

from dataclasses import dataclass, field
from pathlib import Path

from rackwright.bus.ports import NO_HEADERS, Stored
from rackwright.core.fleet import Fleet
from rackwright.host.archive import Archive
from rackwright.host.steps import Step
from rackwright.wire.codec import encode
from rackwright.wire.subjects import Subjects

BATCH = 1_000  # commits of a segment


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Writes each commit into `directory`; `flush` writes what is left."""

    directory: Path
    _kept: list[Stored] = field(default_factory=list)
    _archive: Archive | None = None

    def watch(self, before: Fleet, step: Step) -> None:
        """One commit."""
        commit = step.commit
        if self._archive is None:
            self._archive = Archive(self.directory, step.folding.fleet.ledger)
        self._kept.append(
            Stored(
                seq=step.stored.seq,
                subject=Subjects(commit.cell).entry(commit.type),
                at=step.stored.at,
                headers=NO_HEADERS,
                data=encode(commit),
            )
        )
        if len(self._kept) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is not written. Raises OSError."""
        if self._archive is not None and self._kept:
            self._archive.write(self._kept)
            self._kept.clear()
