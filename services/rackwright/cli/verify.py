"""`rackwright verify`: every safety property, checked on the whole ledger of a cell."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from rackwright.cli.failures import Failure
from rackwright.cli.recorded import Record, audit_archive, audit_cell
from rackwright.cli.session import Where, reaching, run
from rackwright.core.audit import CHECKS
from rackwright.core.fleet import Fleet
from rackwright.core.policy.leases import DRIFT, declare_after
from rackwright.core.policy.witnesses import declare_alone_after
from rackwright.host.archive import ArchiveBroken
from rackwright.host.auditing import LedgerTrimmed
from rackwright.host.ledgers import CannotRead
from rackwright.wire.codec import to_json
from rackwright.wire.policy import Policy

SHOWN = 20
ARCHIVIST = "dispatcher-0"  # whose state directory holds the archive of a local cell


@click.command()
@click.option(
    "--archive",
    type=click.Path(path_type=Path),
    help="Check a recorded ledger: the archive's directory, or one segment from the beginning.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for programs.")
@reaching
def verify(where: Where, archive: Path | None, as_json: bool) -> None:
    """Fold the whole ledger anew and check every safety property; says what was checked.

    Without --archive the ledger of the living cell, up to its present end; what was archived of it
    is read from the state directory. Exit status 1 if anything is violated.

    \b
    Examples:
      rackwright verify
      rackwright verify --archive ./cell/dispatcher-0/archive
    """
    try:
        record = audit_archive(archive) if archive is not None else run(_living(where))
    except (CannotRead, ArchiveBroken, LedgerTrimmed) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{archive}: {error.strerror}") from error
    if as_json:
        click.echo(to_json(result(record)))
    else:
        for line in report(record):
            click.echo(line)
    if record.audit.violations:
        raise SystemExit(1)


async def _living(where: Where) -> Record:
    archive = where.state_dir / ARCHIVIST / "archive"
    async with where.reach() as cell:
        return await audit_cell(cell.bus, _there(archive), _progress)


def _there(archive: Path) -> Path | None:
    return archive if archive.is_dir() else None


def _progress(done: int, everything: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done >= everything else ""
        click.echo(f"\r\x1b[2Kread {done} of {everything}", nl=bool(end), err=True)


def report(record: Record) -> Iterator[str]:
    """What was checked, what was found, and the bounds of the leases."""
    audit, fleet = record.audit, record.fleet
    yield (
        f"ledger {fleet.ledger or '(empty)'} up to {fleet.seq}: {audit.commits} commits with"
        f" {audit.entries} entries, {audit.voids} void; the whole cell was scanned {audit.scans}"
        " times"
    )
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(audit.counts.items()))
    yield f"entries: {kinds or 'none'}"
    yield "checked:"
    yield from (f"  {check}" for check in CHECKS)
    yield from _leases(record)
    if not audit.violations:
        yield "result: no violation"
        return
    yield f"result: {len(audit.violations)} violations"
    for violation in audit.violations[:SHOWN]:
        yield f"  at {violation.seq}: {violation.what}"
    if len(audit.violations) > SHOWN:
        yield f"  and {len(audit.violations) - SHOWN} more"


def _leases(record: Record) -> Iterator[str]:
    gone, wait = bounds(record.fleet.policy)
    yield (
        f"leases: a worker without echoes is gone {gone:g} s after its node's last echoed"
        f" heartbeat (F + K); its rank starts elsewhere no sooner than {wait:g} s after the"
        f" suspicion (W = {DRIFT:g} (F + R + K))"
    )
    tiers = second_waits(record.fleet)
    if tiers:
        many, alone, longest = tiers
        yield (
            f"  {many} nodes have a second tier: while their witnesses say that the bus is away"
            f" they work for up to {alone:g} s; where those have not promised to say no such thing,"
            f" their ranks start elsewhere no sooner than {longest:g} s after the suspicion"
            f" (W2 = {DRIFT:g} (F2 + R + K))"
        )
    if record.shortest_s is not None:
        yield (
            f"  {record.fenced} nodes were fenced, the soonest {record.shortest_s:.3f} s after it"
            " was suspected (ledger time)"
        )


def bounds(policy: Policy) -> tuple[float, float]:
    """F + K and W in seconds (protocol P2)."""
    return policy.fence_after_s + policy.kill_s, declare_after(policy)


def second_waits(fleet: Fleet) -> tuple[int, float, float] | None:
    """How many nodes have a second tier, the longest F2 and W2 in seconds (protocol F15); None
    without one."""
    nodes = (node for rack in fleet.racks.values() for node in rack.nodes if node.session)
    terms = [node.witnesses for node in nodes if node.witnesses is not None]
    if not terms:
        return None
    waits = (declare_alone_after(fleet.policy, one) for one in terms)
    return len(terms), max(one.alone_s for one in terms), max(waits)


def result(record: Record) -> dict[str, object]:
    """The same for programs."""
    audit, fleet = record.audit, record.fleet
    gone, wait = bounds(fleet.policy)
    many, alone, longest = second_waits(fleet) or (0, gone, wait)
    return {
        "ledger": fleet.ledger,
        "seq": fleet.seq,
        "commits": audit.commits,
        "entries": audit.entries,
        "voids": audit.voids,
        "scans": audit.scans,
        "counts": dict(sorted(audit.counts.items())),
        "checked": list(CHECKS),
        "lease_gone_s": gone,
        "lease_wait_s": wait,
        "second_tier_nodes": many,
        "second_tier_alone_s": alone,
        "second_tier_wait_s": longest,
        "fenced": record.fenced,
        "fenced_soonest_s": record.shortest_s,
        "violations": audit.violations,
        "ok": not audit.violations,
    }
