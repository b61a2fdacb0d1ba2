"""What `rackwright replay --from` prints: the same time under another policy, side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.failures import BadInput
from rackwright.cli.policyfile import with_setting
from rackwright.cli.session import explained
from rackwright.cli.show import ago
from rackwright.core.fleet import Fleet
from rackwright.host.archived import read_archive
from rackwright.host.ledgers import Step, step
from rackwright.simulator.policies import POLICIES, Setup, UnknownPolicy, setups
from rackwright.simulator.recorded import Recorded
from rackwright.simulator.whatif import KEPT, Course, again, as_recorded
from rackwright.wire.policy import Policy

SHOWN = 15  # jobs whose wait differs most
RECORDED = POLICIES["rackwright"]


def read_record(ledger: Path, start: int) -> Recorded:
    """All of a ledger. Raises BadInput, CannotRead, ArchiveBroken, OSError."""
    record = Recorded(start=start)
    fleet = Fleet()

    def steps() -> Iterator[Step]:
        nonlocal fleet
        for stored in read_archive(ledger):
            one = step(fleet, stored)
            fleet = one.folding.fleet
            yield one

    record.read(steps())
    if not 1 <= start < fleet.seq:
        raise BadInput(f"--from: {start} is not possible: 1 to {fleet.seq - 1} in this ledger")
    if not record.fleet.racks:
        raise BadInput(f"--from: at {start} the cell has no racks yet")
    return record


def other(record: Recorded, name: str | None, told: Sequence[str]) -> tuple[Setup, Policy]:
    """The policy to decide by: that of the record with the settings of a named one, and those that
    were told. Raises BadInput."""
    setup, policy = RECORDED, record.fleet.policy
    if name is not None:
        try:
            setup, *more = setups(name)
        except UnknownPolicy as error:
            raise BadInput(f"--policy: {error}") from error
        if more:
            raise BadInput("--policy: one at a time")
        if setup.in_order:
            raise BadInput(f"--policy: {name} orders arrivals, which are recorded here")
        policy = replace(policy, **setup.settings)
    for one in told:
        with explained():
            policy = with_setting(policy, one, name="--set")
    return setup, policy


def compare(record: Recorded, setup: Setup, policy: Policy, name: str) -> list[Course]:
    """The record, the same decided again, and decided by the other policy."""
    same = again(record, RECORDED, record.fleet.policy, "decided again")
    return [as_recorded(record), same, again(record, setup, policy, name)]


def draw_courses(record: Recorded, courses: Sequence[Course]) -> RenderableType:
    """What happened how often, and the jobs whose wait differs most."""
    _, same, changed = courses
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", *(one.name for one in courses), "difference"):
        table.add_column(title, justify="left" if not title else "right")
    for kind in KEPT:
        row = [one.counts[kind] for one in courses]
        table.add_row(kind, *map(str, row), f"{row[2] - row[1]:+d}")
    row = [one.finished for one in courses]
    table.add_row("jobs finished", *map(str, row), f"{row[2] - row[1]:+d}")
    waits = [fmean(one.waits.values()) if one.waits else 0.0 for one in courses]
    table.add_row("wait, mean", *map(ago, waits), _signed(waits[2] - waits[1]))
    table.add_row("wait still", *(str(len(one.open)) for one in courses), "")
    parts: list[RenderableType] = [
        Text(
            f"from {record.fleet.seq} on, {ago(record.end - record.fleet.time)} to the end of the"
            f" record, {len(same.waits)} jobs waited or came"
        ),
        table,
    ]
    moved = _moved(same, changed)
    if moved:
        parts.append(_jobs(same, changed, moved))
    if changed.passed_over:
        parts.append(Text(f"{changed.passed_over} recorded entries had no effect any more"))
    parts.append(
        Text(
            "Both columns to the right are simulated: the difference is between them. Work takes"
            " as long as it says or as it took; exits of jobs' own are not repeated."
        )
    )
    return Group(*parts)


def _moved(same: Course, changed: Course) -> list[tuple[float, str]]:
    both = same.waits.keys() & changed.waits.keys()
    found = [(changed.waits[name] - same.waits[name], str(name)) for name in both]
    return sorted(
        (one for one in found if abs(one[0]) >= 1.0), key=lambda one: (-abs(one[0]), one[1])
    )


def _jobs(same: Course, changed: Course, moved: Sequence[tuple[float, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("job", f"waits, {same.name}", changed.name, "difference"):
        table.add_column(title)
    waits = {str(name): wait for name, wait in same.waits.items()}
    others = {str(name): wait for name, wait in changed.waits.items()}
    for difference, name in moved[:SHOWN]:
        table.add_row(name, ago(waits[name]), ago(others[name]), _signed(difference))
    if len(moved) > SHOWN:
        table.add_row(f"and {len(moved) - SHOWN} more", "", "", "")
    return table


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{ago(abs(seconds))}"
