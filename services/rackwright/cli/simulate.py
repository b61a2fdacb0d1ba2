"""`rackwright simulate`: what policies make of a workload and its failures, in virtual time."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.numbers import Number, Whole
from rackwright.cli.policyfile import with_setting
from rackwright.cli.session import explained, json_option
from rackwright.cli.show import console
from rackwright.host.files.topologyfile import read_topology
from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import BadModel, FailureModel
from rackwright.simulator.generator import SOURCES
from rackwright.simulator.policies import POLICIES, Setup, UnknownPolicy, setups
from rackwright.simulator.report import NoPlots, row_of, what_is_missing, write
from rackwright.simulator.running import Outcome, Plan, as_json
from rackwright.simulator.sidebyside import Task, Workload, cores, run_all
from rackwright.simulator.stopping import Stop, stopping
from rackwright.simulator.workload import DAY, BadTrace
from rackwright.wire.nodes import MAX_GPUS, MAX_RACK_NODES, RackSpec
from rackwright.wire.policy import Policy

INTERRUPTED = 130
LEAST = 0.001  # days or hours
MOST = 100_000.0
MAX_RACKS = 20_000


def _shape(text: str) -> tuple[RackSpec, ...] | None:
    """`140x18x4`: racks, nodes a rack, GPUs a node."""
    parts = text.lower().split("x")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() and int(part) for part in parts):
        return None
    racks, nodes, gpus = (int(part) for part in (*parts, *(["4"] if len(parts) == 2 else [])))
    for what, number, most in (
        ("racks", racks, MAX_RACKS),
        ("nodes a rack", nodes, MAX_RACK_NODES),
        ("GPUs a node", gpus, MAX_GPUS),
    ):
        if number > most:
            raise click.BadParameter(f"{text!r}: {number} {what} are not possible: 1 to {most}")
    return plain_racks(racks, nodes, gpus)


def _racks(ctx: click.Context, param: click.Parameter, value: str) -> tuple[RackSpec, ...]:
    shape = _shape(value)
    if shape is not None:
        return shape
    path = Path(value)
    if not path.exists():
        raise click.BadParameter(f"{value!r}: RACKSxNODES[xGPUS], such as 140x18, or a file")
    with explained():
        return read_topology(path.read_bytes(), name=value)


def _setups(ctx: click.Context, param: click.Parameter, value: str) -> list[Setup]:
    """`rackwright:slice_nodes=8:spares_large=1` is a policy with other settings."""
    found: list[Setup] = []
    for text in value.split(","):
        name, *told = (part.strip() for part in text.split(":"))
        try:
            chosen = setups(name)
        except UnknownPolicy as error:
            raise click.BadParameter(str(error)) from error
        changed = _settings(told)
        found += [
            replace(one, name=":".join((one.name, *told)), settings={**one.settings, **changed})
            for one in chosen
        ]
    twice = [name for name, count in Counter(one.name for one in found).items() if count > 1]
    if twice:
        raise click.BadParameter(f"{twice[0]} is named twice")
    return found


def _settings(told: Sequence[str]) -> dict[str, Any]:
    policy = Policy()
    for one in told:
        with explained():
            policy = with_setting(policy, one, name="--policy")
    return {knob: getattr(policy, knob) for knob in (one.partition("=")[0] for one in told)}


def _mixture(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> list[tuple[Any, float]] | None:
    """`kalos=0.7,itp=0.3`."""
    if value is None:
        return None
    found = []
    for part in value.split(","):
        name, _, share = part.partition("=")
        try:
            weight = float(share or 1)
        except ValueError:
            weight = 0.0
        if name not in SOURCES or not 0 < weight < float("inf"):
            raise click.BadParameter(f"{part!r}: NAME=SHARE with {' or '.join(SOURCES)}")
        found.append((SOURCES[name], weight))
    return found


@click.command()
@click.option(
    "--topology",
    "racks",
    callback=_racks,
    default="140x18x4",
    show_default=True,
    help="RACKSxNODES[xGPUS], or a topology file.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="Jobs: CSV, or Philly's JSON.")
@click.option("--sort", is_flag=True, help="The trace is not in order of submit times.")
@click.option(
    "--generate",
    callback=_mixture,
    metavar="NAME=SHARE,...",
    help="Jobs drawn: kalos, itp, by shares of the work; needs --days.",
)
@click.option(
    "--load",
    type=Number(LEAST, 100),
    default=0.8,
    show_default=True,
    help="Work of generated jobs, as a share of the cell's GPUs.",
)
@click.option(
    "--days", type=Number(LEAST, MOST), help="Length of a run; with a trace: until it is done."
)
@click.option(
    "--warm-days",
    type=Number(0, MOST),
    default=0.0,
    show_default=True,
    help="Days at the start that are not counted: the cell fills.",
)
@click.option(
    "--policy",
    "policies",
    callback=_setups,
    default="rackwright",
    show_default=True,
    help=f"With commas between: {', '.join(POLICIES)}; `all`; with other settings as"
    " NAME:SETTING=VALUE.",
)
@click.option(
    "--unavailable", type=Number(0, 0.99), default=0.0, show_default=True, help="Nodes, 0 to 1."
)
@click.option(
    "--repair-hours", type=Number(LEAST, MOST), default=24.0, show_default=True, help="Of a node."
)
@click.option(
    "--rack-mtbi-days", type=Number(LEAST, MOST), help="Days between faults of a whole rack."
)
@click.option(
    "--rack-repair-hours",
    type=Number(LEAST, MOST),
    default=4.0,
    show_default=True,
    help="Of a whole rack.",
)
@click.option(
    "--job-gpu-days", type=Number(LEAST, MOST), help="GPU-days between a job's own failures."
)
@click.option("--slow-mtbi-days", type=Number(LEAST, MOST), help="Days until a node becomes slow.")
@click.option(
    "--noise-mtbi-days", type=Number(LEAST, MOST), help="Days between short silences of a node."
)
@click.option(
    "--seed", type=Whole(0, 2**63 - 1), default=1, show_default=True, help="Of all that is drawn."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory for the report."
)
@click.option("--record", is_flag=True, help="Keep each policy's ledger in the directory too.")
@click.option(
    "--processes",
    type=Whole(1, 256),
    default=cores,
    show_default="one for each core",
    help="Policies that run side by side.",
)
@json_option
def simulate(
    racks: tuple[RackSpec, ...],
    policies: list[Setup],
    out: Path | None,
    processes: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the machines of a cell in virtual time; the same seed gives the same result.

    Jobs come from --trace (normalized columns, or those of the Acme, ITP and Philly traces), or are
    drawn with --generate. Ctrl-C or SIGTERM leaves a report marked partial.

    \b
    Examples:
      rackwright simulate --topology 140x18 --trace jobs.csv --policy rackwright,scatter --out r
      rackwright simulate --generate kalos=0.7,itp=0.3 --days 8 --unavailable 0.02 \\
        --policy rackwright,rackwright:slice_nodes=8:spares_large=1
      rackwright simulate --generate kalos=0.7,itp=0.3 --load 0.8 --days 16 --warm-days 4 \\
        --unavailable 0.01 --policy all --seed 1 --out report
    """
    with _told_plainly():
        plan = _plan(racks, options)
        if options["record"] and out is None:
            raise BadInput("--record needs --out")
        with stopping() as stop:
            stop.heard.append(_acknowledge)
            found = _run_all(policies, plan, options, out, processes, stop)
        outcomes = [one for one in found if one is not None]
        not_run = [one.name for one, made in zip(policies, found, strict=True) if made is None]
        if outcomes and out is not None:
            write(outcomes, _about(racks, options), out, not_run=not_run)
    if outcomes:
        _tell(outcomes, out, as_json)
    if missing := what_is_missing(outcomes, not_run):
        click.echo(f"partial, and not to be compared: {missing}", err=True)
    if stop.asked:
        raise SystemExit(INTERRUPTED)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """What went wrong, as a person is told."""
    try:
        yield
    except BadTrace as error:
        raise BadInput(str(error), field=error.column or "--trace") from error
    except BadModel as error:
        raise BadInput(str(error), field=error.knob) from error
    except BrokenProcessPool as error:
        raise Failure("a run was killed; is there memory for --processes of them?") from error
    except NoPlots as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from error


def _acknowledge() -> None:
    """Said in a signal handler: written at once, past whatever else is being written."""
    os.write(sys.stderr.fileno(), b"\nstopping; a second Ctrl-C ends it at once\n")


def _plan(racks: tuple[RackSpec, ...], options: dict[str, Any]) -> Plan:
    trace, mixture = options["trace"], options["generate"]
    if (trace is None) == (mixture is None):
        raise BadInput("say either --trace or --generate")
    days, warm = options["days"], options["warm_days"]
    if mixture is not None and days is None:
        raise BadInput("--generate needs --days")
    if days is not None and not warm < days:
        raise BadInput(f"--warm-days: {warm:g} is not possible: 0 to less than --days")
    failures = FailureModel.of(
        unavailable=options["unavailable"],
        repair_h=options["repair_hours"],
        rack_mtbi_days=options["rack_mtbi_days"],
        rack_repair_h=options["rack_repair_hours"],
        job_gpu_days=options["job_gpu_days"],
        slow_mtbi_days=options["slow_mtbi_days"],
        noise_mtbi_days=options["noise_mtbi_days"],
        seed=options["seed"],
    )
    return Plan(
        racks=racks,
        failures=failures,
        seed=options["seed"],
        span_s=None if days is None else days * DAY,
        warm_s=warm * DAY,
    )


def _workload(options: dict[str, Any]) -> Workload:
    return Workload(
        trace=options["trace"],
        sort=options["sort"],
        mixture=tuple(options["generate"] or ()),
        load=options["load"],
    )


def _run_all(
    policies: list[Setup],
    plan: Plan,
    options: dict[str, Any],
    out: Path | None,
    processes: int,
    stop: Stop,
) -> list[Outcome | None]:
    record = out if options["record"] else None
    tasks = [
        Task(
            setup=setup,
            plan=plan,
            workload=_workload(options),
            record=None if record is None else record / f"ledger-{setup.name}",
        )
        for setup in policies
    ]
    with _progress() as progress:
        bars = [
            progress.add_task(f"{one.name} ({place} of {len(policies)})", total=1.0, visible=False)
            for place, one in enumerate(policies, 1)
        ]

        def told(place: int, share: float) -> None:
            if not progress.tasks[place].visible:
                progress.reset(bars[place], visible=True)
            progress.update(bars[place], completed=share)

        return run_all(tasks, processes=processes, stop=stop, told=told)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=_stderr(),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _about(racks: tuple[RackSpec, ...], options: dict[str, Any]) -> dict[str, Any]:
    told = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in options.items()
        if value is not None and key != "generate"
    }
    if options["generate"] is not None:
        told["generate"] = {source.name: share for source, share in options["generate"]}
    return {"racks": len(racks), "nodes": sum(len(rack.nodes) for rack in racks), **told}


def _tell(outcomes: list[Outcome], out: Path | None, as_json_: bool) -> None:
    if as_json_:
        click.echo(as_json({"policies": [outcome.result for outcome in outcomes]}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    rows = [row_of(outcome.result) for outcome in outcomes]
    table.add_column("", no_wrap=True)
    for row in rows:
        table.add_column(row["policy"], justify="right")
    for title in [title for title in rows[0] if title != "policy"]:
        table.add_row(title, *(row[title] for row in rows))
    console().print(table)
    if out is not None:
        click.echo(f"report: {out / 'report.html'}")
