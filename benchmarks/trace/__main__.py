"""`python -m benchmarks.trace`: run the recorded workload, check what it showed, tell it."""

import asyncio
import logging
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import click
import structlog
import uvloop

from benchmarks.trace import report
from benchmarks.trace.drive import Drive, Unfinished, cell, stack_options
from benchmarks.trace.pictures import draw
from benchmarks.trace.story import Story, read_story
from benchmarks.trace.workload import DAY, BadTrace, Mixture, Workload, mixed, part, read
from rackwright.cli.credentials import ADMIN
from rackwright.cli.recorded import audit_cell
from rackwright.core.audit import Audit
from rackwright.host.clock import boottime
from rackwright.host.files.topologyfile import read_topology

CELL = "36x18"
GPUS = 36 * 18 * 4
LARGE, SMALL = "kalos_completed.csv", "itp.csv"
SAMPLES = 1200


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--dir", "where", type=click.Path(path_type=Path), envvar="TRACE_DIR", help="Both.")
@click.option("--kalos", type=click.Path(path_type=Path), help=f"Large jobs; DIR/{LARGE}.")
@click.option("--itp", type=click.Path(path_type=Path), help=f"Small jobs; DIR/{SMALL}.")
@click.option("--minutes", default=8.0, show_default=True, help="How long it may take.")
@click.option("--days", type=float, help="Only so many days of the trace (a trial).")
@click.option("--skip", default=0.0, help="Leave out the first days of the trace (a trial).")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/trace"))
@click.option("--keep", is_flag=True, help="Leave the state directory (logs, ledger) behind.")
def main(
    where: Path | None,
    kalos: Path | None,
    itp: Path | None,
    minutes: float,
    days: float | None,
    skip: float,
    seed: int,
    out: Path,
    keep: bool,
) -> None:
    """Run two recorded workloads through a live cell of 36 racks x 18 nodes.

    The traces are CSV files with the columns job, submit_s, gpus, duration_s. Exit status 0 only if
    the run showed what it had to and its ledger is clean.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    large, small = _file(kalos, where, LARGE), _file(itp, where, SMALL)
    how = Mixture(installed_gpus=GPUS, seed=seed)
    try:
        workload = mixed(read(large), read(small), how)
    except BadTrace as error:
        raise click.ClickException(str(error)) from error
    if days is not None:
        workload = part(workload, skip * DAY, days * DAY)
    speed = workload.end_s / (minutes * 60.0)
    click.echo(
        f"seed {seed}: {len(workload.jobs)} jobs, load {workload.load:.2f} "
        f"({workload.large_load:.2f} of it large), {workload.end_s / DAY:.1f} days in "
        f"{minutes:g} minutes: {speed:.0f} times as fast"
    )
    root = Path(tempfile.mkdtemp(prefix="rackwright-trace-"))
    out.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            story, audit, took = runner.run(_run(root, workload, speed, seed))
        except Unfinished as error:
            raise click.ClickException(f"{error}; the cell is kept in {root}") from error
    run = report.Run(
        seed=seed,
        speed=speed,
        took_s=took,
        machine=f"{os.cpu_count()} cores, Python {platform.python_version()}",
        large=large.name,
        small=small.name,
    )
    held = _tell(run, workload, story, audit, out)
    if keep or not held:
        click.echo(f"state and logs are kept in {root}")
    else:
        shutil.rmtree(root)
    sys.exit(0 if held else 1)


def _file(given: Path | None, where: Path | None, name: str) -> Path:
    if given is not None:
        return given
    if where is None:
        raise click.UsageError(
            f"where are the traces? give TRACE_DIR=directory with {LARGE} and {SMALL} to make, "
            "or --kalos and --itp"
        )
    return where / name


async def _run(
    root: Path, workload: Workload, speed: float, seed: int
) -> tuple[Story, Audit, float]:
    racks = read_topology(CELL.encode(), name=CELL)
    running = asyncio.current_task()
    if running is not None:  # so that no process of the cell is left behind
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    async with cell(stack_options(root, racks, speed)) as (stack, user, watched):
        click.echo(f"{len(stack.kept)} processes and nats-server, {GPUS // 4} nodes: ready")
        drive = Drive(
            stack=stack, cell=user, watched=watched, workload=workload, speed=speed, seed=seed
        )
        await drive.run(Progress().show)
        took = boottime() - drive.began
        click.echo(f"\nall jobs have ended after {took:.0f} s; reading the ledger again")
        admin = await stack.connect(ADMIN)
        try:
            archive = root / "dispatcher-0" / "archive"
            record = await audit_cell(admin, archive, lambda done, all_: None)
            story = await read_story(admin, archive, took / SAMPLES)
        finally:
            await admin.close()
    return story, record.audit, took


def _tell(run: report.Run, workload: Workload, story: Story, audit: Audit, out: Path) -> bool:
    checked = report.claims(workload, story, audit)
    found = report.figures(run, workload, story, audit)
    report.save(out.parent / "trace.json", found, checked)
    draw(story, run.speed, out)
    (out / "README.md").write_text(report.page(found, checked, audit), encoding="utf-8")
    for claim in checked:
        mark = "ok  " if claim.held else "FAIL"
        click.echo(f"  {mark} {claim.text}: {claim.found} (wanted {claim.wanted})")
    for violation in audit.violations[:10]:
        click.echo(f"  at {violation.seq}: {violation.what}")
    click.echo(f"report and pictures: {out}")
    return all(claim.held for claim in checked)


class Progress:
    """One line that is written over on a terminal, or one line in ten seconds elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._last = 0.0

    def show(self, drive: Drive) -> None:
        """Where the run is."""
        if not self._terminal and time.monotonic() - self._last < 10.0:
            return
        self._last = time.monotonic()
        fleet, counts = drive.watched.fleet, drive.counts
        left = max(0.0, (drive.workload.end_s - drive.trace_s) / drive.speed)
        line = (
            f"day {drive.trace_s / DAY:5.2f}, {left:3.0f} s left: {drive.submitted} submitted, "
            f"{len(fleet.queued)} wait, {len(fleet.jobs) - len(fleet.queued)} run, "
            f"{len(fleet.tombstones)} ended; "
            f"topology blocks {counts['topology.movable'] + counts['topology.pinned']}, "
            f"plans {counts['defrag.planned']}, swaps {counts['slice.swapped']}, "
            f"moves {counts['slice.moved']}, requeues {counts['job.requeued']}"
        )
        click.echo(f"\r{line:<150}" if self._terminal else line, nl=not self._terminal)


if __name__ == "__main__":
    main()
