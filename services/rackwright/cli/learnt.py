"""What a cell's own record says about its faults and repairs."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from rackwright.bus.ports import Stored
from rackwright.cli.failures import Failure
from rackwright.cli.session import Where, run
from rackwright.core.experience import Experience, Watch
from rackwright.core.fleet import Fleet
from rackwright.host.archive import ArchiveBroken
from rackwright.host.archived import read_archive
from rackwright.host.auditing import LedgerTrimmed
from rackwright.host.ledgers import CannotRead, living, step

ARCHIVIST = "dispatcher-0"  # whose state directory holds the archive of a local cell


def from_archive(path: Path) -> Experience:
    """Of a recorded ledger. Raises Failure."""
    try:
        return experience(read_archive(path))
    except (CannotRead, ArchiveBroken) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def experience(ledger: Iterable[Stored]) -> Experience:
    """Of the commits of a ledger. Raises CannotRead."""
    watch, fleet = Watch(), Fleet()
    for stored in ledger:
        fleet = _take(watch, fleet, stored)
    return watch.told()


def _take(watch: Watch, fleet: Fleet, stored: Stored) -> Fleet:
    after = step(fleet, stored).folding.fleet
    watch.take(after, sorted(after.touched_racks))
    return after


def from_cell(where: Where) -> Experience:
    """Of the living cell's ledger up to its present end. Raises Failure."""
    try:
        return run(_living(where))
    except (CannotRead, ArchiveBroken, LedgerTrimmed) as error:
        raise Failure(str(error)) from error


async def _living(where: Where) -> Experience:
    archive = where.state_dir / ARCHIVIST / "archive"
    watch, fleet = Watch(), Fleet()
    async with where.reach() as cell:
        there = archive if archive.is_dir() else None
        async for stored in living(cell.bus, there, _progress):
            fleet = _take(watch, fleet, stored)
    return watch.told()


def _progress(done: int, everything: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done >= everything else ""
        click.echo(f"\r\x1b[2Kread {done} of {everything}", nl=bool(end), err=True)
