"""`rackwright replay`: a recorded ledger, folded to any point: the fleet then, and why."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.session import json_option
from rackwright.cli.show import ago, console
from rackwright.cli.whatif import compare, draw_courses, other, read_record
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.occupancy import gpu_states, startable
from rackwright.core.reasons import sentence
from rackwright.host.archive import ArchiveBroken
from rackwright.host.archived import read_archive
from rackwright.host.ledgers import CannotRead, step
from rackwright.simulator.whatif import as_values
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason

SHOWN = 20  # queued jobs
EXAMPLES = 3  # jobs, where one is not known
SILENT_S = 60.0  # a ledger goes on at least so often while its cell lives


@dataclass(slots=True)
class Told:
    """What happened to one job: sequence, seconds since the first commit, the entry. `others`: a
    few of the jobs that there are."""

    job: JobId | None
    begin: float | None = None
    others: list[JobId] = field(default_factory=list)
    story: list[tuple[int, float, Entry]] = field(default_factory=list)

    def hear(self, fleet: Fleet, entries: tuple[Entry, ...]) -> None:
        """One commit that had an effect."""
        self.begin = fleet.time if self.begin is None else self.begin
        if len(self.others) < EXAMPLES:
            self.others += sorted(fleet.touched_jobs - {*self.others})[:EXAMPLES]
        if self.job is not None and self.job in fleet.touched_jobs:
            for entry in entries:
                if _concerns(entry, self.job):
                    self.story.append((fleet.seq, fleet.time - self.begin, entry))


def _concerns(entry: Entry, job: JobId) -> bool:
    if getattr(entry, "job", None) == job or job in getattr(entry, "evicted", ()):
        return True
    victims = getattr(entry, "victims", ())
    return any(victim.job == job for victim in victims) or not hasattr(entry, "job")


@click.command()
@click.argument("ledger", type=click.Path(path_type=Path))
@click.option("--to", type=int, help="Fold up to this sequence.")
@click.option("--at", "at_s", type=float, help="Fold up to this many seconds after the first.")
@click.option("--job", help="Tell all that was decided about this job, and why.")
@click.option("--from", "start", type=int, help="Decide anew from this sequence on.")
@click.option("--policy", help="Decide by this policy, see `simulate`.")
@click.option("--set", "told_", multiple=True, metavar="SETTING=VALUE", help="With this setting.")
@json_option
def replay(
    ledger: Path,
    to: int | None,
    at_s: float | None,
    job: str | None,
    start: int | None,
    policy: str | None,
    told_: tuple[str, ...],
    as_json: bool,
) -> None:
    """Fold a recorded LEDGER (an archive of a cell, or of a simulation) to any point.

    Prints the fleet as it was then and, with --job, why that job was placed, waited or moved. With
    --from the machines decide anew from there on, by another policy or with other settings, on the
    same jobs and faults: what would have been different.

    \b
    Examples:
      rackwright replay report/ledger-rackwright --at 86400
      rackwright replay ./cell/dispatcher-0/archive --to 5000 --job train
      rackwright replay report/ledger-rackwright --from 5000 --policy no-swap
      rackwright replay report/ledger-rackwright --from 5000 --set lend_spares=false
    """
    if start is not None or policy is not None or told_:
        if start is None or not (policy or told_) or (to, at_s, job) != (None, None, None):
            raise BadInput("--from SEQUENCE with --policy or --set, and without --to, --at, --job")
        _what_if(ledger, start, policy, told_, as_json)
        return
    if to is not None and to < 1:
        raise BadInput(f"--to: {to} is not possible: sequences begin at 1")
    if at_s is not None and not 0 <= at_s < float("inf"):
        raise BadInput(f"--at: {at_s:g} is not possible: seconds from 0 on")
    told = Told(None if job is None else JobId(job))
    try:
        fleet = folded(ledger, to, at_s, told)
    except (CannotRead, ArchiveBroken) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{ledger}: {error.strerror}") from error
    if told.job is not None and not told.story:
        others = ", ".join(told.others[:EXAMPLES]) or "none"
        raise Failure(
            f"nothing was decided about {job} up to sequence {fleet.seq}; jobs are: {others}"
        )
    if as_json:
        click.echo(to_json(result(fleet, told)))
    else:
        console().print(draw(fleet, told))


def _what_if(
    ledger: Path, start: int, policy: str | None, told: tuple[str, ...], as_json: bool
) -> None:
    try:
        record = read_record(ledger, start)
    except (CannotRead, ArchiveBroken) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{ledger}: {error.strerror}") from error
    setup, settings = other(record, policy, told)
    courses = compare(record, setup, settings, ", ".join((*([policy] if policy else []), *told)))
    if as_json:
        click.echo(to_json(as_values(courses)))
    else:
        console().print(draw_courses(record, courses))


def folded(ledger: Path, to: int | None, at_s: float | None, told: Told) -> Fleet:
    """The fleet at that point. Raises CannotRead, ArchiveBroken, OSError, BadInput."""
    fleet = Fleet()
    for stored in read_archive(ledger):
        if to is not None and stored.seq > to:
            break
        if at_s is not None and told.begin is not None and stored.at > told.begin + at_s:
            break
        made = step(fleet, stored)
        fleet = made.folding.fleet
        if not made.folding.void:
            told.hear(fleet, made.commit.entries)
    if to is not None and fleet.seq < to:
        raise BadInput(f"--to: the ledger ends at {fleet.seq}")
    ended = fleet.time - (told.begin or 0.0)
    if at_s is not None and to is None and at_s > ended + SILENT_S:
        raise BadInput(f"--at: {at_s:g} is not possible: the ledger ends after {ended:.0f} s")
    return fleet


def result(fleet: Fleet, told: Told) -> dict[str, Any]:
    """The same for programs."""
    room = startable(fleet)
    return {
        "ledger": fleet.ledger,
        "seq": fleet.seq,
        "voids": fleet.voids,
        "time": fleet.time,
        "seconds": fleet.time - (told.begin or 0.0),
        "jobs": _states(fleet),
        "gpus": {state.value: count for state, count in gpu_states(fleet, fleet.time).items()},
        "fragmentation": room.fragmentation,
        "whole_racks": room.whole,
        "queued": [
            {
                "job": name,
                "why": None if (why := fleet.jobs[name].blocked) is None else sentence(why),
            }
            for name in fleet.queued
        ],
        "story": [
            {"seq": seq, "seconds": at, "type": entry.TYPE, "entry": entry}
            for seq, at, entry in told.story
        ],
    }


def _states(fleet: Fleet) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in fleet.jobs.values():
        found[job.state.value] = found.get(job.state.value, 0) + 1
    return dict(sorted(found.items()))


def draw(fleet: Fleet, told: Told) -> RenderableType:
    """The fleet, then the job's story."""
    room = startable(fleet)
    gpus = ", ".join(
        f"{count} {state.value}" for state, count in gpu_states(fleet, fleet.time).items() if count
    )
    jobs = ", ".join(f"{count} {state}" for state, count in _states(fleet).items())
    parts: list[RenderableType] = [
        Text(
            f"ledger {fleet.ledger} at {fleet.seq}, {ago(fleet.time - (told.begin or 0.0))} after"
            f" its first commit: {len(fleet.racks)} racks, {fleet.installed_nodes} nodes"
        ),
        Text(f"jobs: {jobs or 'none'}"),
        Text(f"GPUs: {gpus or 'none'}"),
        Text(f"room: {room.whole} whole racks, fragmentation {room.fragmentation:.2f}"),
    ]
    if fleet.voids:
        parts.append(Text(f"commits without an effect: {fleet.voids} of {fleet.seq}"))
    waiting = [fleet.jobs[name] for name in fleet.queued]
    if waiting:
        parts.append(_queue(waiting))
    if told.job is not None:
        parts.append(_story(fleet, told))
    return Group(*parts)


def _queue(waiting: list[Job]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("waits", "nodes", "why"):
        table.add_column(title)
    for job in waiting[:SHOWN]:
        why = "not tried yet" if job.blocked is None else sentence(job.blocked)
        table.add_row(job.id, str(job.spec.nodes or f"{job.spec.gpus} GPUs"), why)
    if len(waiting) > SHOWN:
        table.add_row(f"and {len(waiting) - SHOWN} more", "", "")
    return table


def _story(fleet: Fleet, told: Told) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("seq", "after", "what", "why"):
        table.add_column(title)
    for seq, at, entry in told.story:
        table.add_row(str(seq), ago(at), entry.TYPE, "; ".join(_why(entry)))
    job = fleet.jobs.get(told.job) if told.job is not None else None
    if job is not None and job.slices:
        racks = ", ".join(fleet.rack_name(part.rack) for part in job.slices)
        table.add_row("", "", "now", f"{job.state.value} on {racks}")
    return table


def _why(entry: Entry) -> list[str]:
    found: list[Reason] = []
    reason = getattr(entry, "reason", None)
    if isinstance(reason, Reason):
        found.append(reason)
    found += [rung.reason for rung in getattr(entry, "rungs", ())]
    return [sentence(one) for one in found]
