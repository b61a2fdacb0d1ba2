"""`rackwright plan`: what a cell can promise, by slice size and spares. Exact, nothing sampled."""

import os
from pathlib import Path
from typing import Any

import click

from rackwright.cli.draw_plan import draw_plan
from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.learnt import from_archive, from_cell
from rackwright.cli.numbers import Number, Whole, shortened
from rackwright.cli.plan_figures import Given, NotEnough, figures, told
from rackwright.cli.session import Where, json_option, reaching
from rackwright.cli.show import console
from rackwright.core.experience import Experience
from rackwright.core.policy.advice import Rule
from rackwright.core.policy.capacity import Disagreement, Impossible
from rackwright.core.policy.interruptions import Habits
from rackwright.core.policy.planning import Cell, Question, answer
from rackwright.core.policy.rackfaults import RackFault, rack_fault
from rackwright.wire.codec import to_json

LIVING = "-"
MOST_NODES = 62  # of a rack, as a topology may have
LEAST = 0.001  # days or hours
MOST = 100_000.0  # days, hours or minutes
USUAL = 140, 18, 4  # racks, nodes a rack, GPUs a node
USUAL_SPARES = 3
OPTIONS = {
    "unavailable": "--unavailable",
    "mtbf_days": "--node-mtbi-days",
    "repair_days": "--repair-hours",
    "slice nodes": "--slices",
}


def _faults(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[RackFault, ...]:
    try:
        return tuple(rack_fault(text) for text in value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    parts = value.split(",")
    if not all(part.strip().isdecimal() and 0 < int(part[:9]) <= MOST_NODES for part in parts):
        rule = f"node counts such as 8,16,18, each from 1 to {MOST_NODES}"
        raise click.BadParameter(f"must be {rule}, not {shortened(value)}")
    return tuple(int(part) for part in parts)


def _plot_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is None:
        return None
    if value.suffix.lower() not in {".png", ".svg"}:
        raise click.BadParameter(f"{value}: a name that ends in .png or .svg")
    if not os.access(value if value.exists() else value.absolute().parent, os.W_OK):
        raise click.BadParameter(f"{value}: cannot be written: is there such a directory?")
    return value


def _job_options(command: Any) -> Any:
    """What a fault costs the job it hits."""
    made = Habits()
    for name, value, text in (
        ("reload-minutes", made.reload_min, "Reading a checkpoint back."),
        ("restart-minutes", made.restart_min, "Stopping and starting a whole job."),
        ("move-minutes", made.move_min, "Stall when one slice goes to another rack."),
        ("swap-minutes", made.swap_min, "Stall when a spare takes over."),
        ("checkpoint-minutes", made.checkpoint_min, "Between checkpoints."),
    ):
        command = click.option(
            f"--{name}",
            type=Number(0, MOST),
            default=value,
            show_default=True,
            help=text,
        )(command)
    return click.option(
        "--job-gpus",
        type=Whole(1, 10_000_000),
        default=made.job_gpus,
        show_default=True,
        help="GPUs of the job that stands still with a failed node.",
    )(command)


@click.command()
@click.option(
    "--racks",
    type=Whole(1, 100_000),
    show_default=f"those of the ledger, or {USUAL[0]}",
    help="Racks of the cell.",
)
@click.option(
    "--nodes-per-rack",
    type=Whole(1, MOST_NODES),
    show_default=f"as in the ledger, or {USUAL[1]}",
    help="Nodes of each.",
)
@click.option(
    "--gpus-per-node",
    type=Whole(1, 16),
    show_default=f"as in the ledger, or {USUAL[2]}",
    help="GPUs of a node.",
)
@click.option("--unavailable", type=Number(0, 1), help="Share of time a node is away, 0 to 1.")
@click.option(
    "--node-mtbi-days",
    type=Number(LEAST, MOST),
    help="Days in service between faults of a node.",
)
@click.option(
    "--repair-hours",
    type=Number(LEAST, MOST),
    help="Hours until a failed node is back.",
)
@click.option(
    "--rack-fault",
    "faults",
    multiple=True,
    callback=_faults,
    metavar="NAME=DAYS/HOURS",
    help="Faults of a whole rack: days between them in one rack, hours to repair.",
)
@click.option(
    "--slices", "sizes", callback=_sizes, metavar="N,N", help="Slice sizes to compare, in nodes."
)
@click.option(
    "--spares",
    type=Whole(0, MOST_NODES - 1),
    show_default=str(USUAL_SPARES),
    help="Most spares a rack; a slice needs one node at least.",
)
@click.option(
    "--any-size", is_flag=True, help="Recommend any size, where groups need no power of two."
)
@click.option(
    "--tolerance",
    type=Number(0, 0.99),
    default=Rule().tolerance,
    show_default=True,
    help="Share of usable nodes that a larger slice may lose.",
)
@_job_options
@click.option(
    "--survivors",
    type=click.Choice(["reload", "keep"]),
    default="reload",
    show_default=True,
    help="What the other ranks do at a swap: read the checkpoint again, or keep their state.",
)
@click.option(
    "--gpu-hour-price", type=Number(0, MOST), help="Turn GPU-hours into money: an estimate."
)
@click.option(
    "--from-ledger",
    is_flag=False,
    flag_value=LIVING,
    metavar="[ARCHIVE]",
    help="Estimate rates from a recorded ledger; alone: from the living cell's.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_plot_file,
    help="Draw usable share against unavailability (.png, .svg).",
)
@json_option
@reaching
def plan(where: Where, as_json: bool, plot: Path | None, **options: Any) -> None:
    """How many nodes are usable, how often work is interrupted, and which slice size to use.

    Two of --unavailable, --node-mtbi-days and --repair-hours decide the third; --unavailable alone
    answers all but the rates.

    \b
    Examples:
      rackwright plan --racks 128 --unavailable 0.02
      rackwright plan --racks 140 --node-mtbi-days 490 --repair-hours 24 --rack-fault switch=730/4
      rackwright plan --from-ledger --plot usable.svg
    """
    learnt = _learnt(where, options.pop("from_ledger"))
    try:
        question = _question(learnt, **options)
        found = answer(question)
    except (Impossible, Disagreement) as error:
        option = OPTIONS.get(error.figure, error.figure)
        text = option + str(error).removeprefix(error.figure)
        if learnt is not None:
            text += (
                f" (learnt from {learnt.node_faults} faults in {learnt.node_days:.3g} node-days)"
            )
        raise BadInput(text, field=option) from error
    except NotEnough as error:
        raise BadInput(str(error)) from error
    if plot is not None:
        from rackwright.cli.plan_plot import NoPlots, draw

        try:
            draw(found, plot)
        except NoPlots as error:
            raise Failure(str(error)) from error
        except OSError as error:
            raise Failure(f"--plot {plot}: {error.strerror}", field="--plot") from error
    if as_json:
        click.echo(to_json(told(found, learnt)))
        return
    console().print(draw_plan(found, learnt))


def _learnt(where: Where, ledger: str | None) -> Experience | None:
    if ledger is None:
        return None
    return from_cell(where) if ledger == LIVING else from_archive(Path(ledger))


def _question(
    learnt: Experience | None,
    *,
    racks: int | None,
    nodes_per_rack: int | None,
    gpus_per_node: int | None,
    unavailable: float | None,
    node_mtbi_days: float | None,
    repair_hours: float | None,
    faults: tuple[RackFault, ...],
    sizes: tuple[int, ...],
    spares: int | None,
    any_size: bool,
    tolerance: float,
    survivors: str,
    gpu_hour_price: float | None,
    **job: float,
) -> Question:
    given = Given(unavailable=unavailable, mtbi_days=node_mtbi_days, repair_hours=repair_hours)
    share, node, more = figures(given, learnt)
    known = (learnt and learnt.cell) or USUAL
    nodes = nodes_per_rack or known[1]
    return Question(
        cell=Cell(
            racks=racks or known[0],
            nodes_per_rack=nodes,
            gpus_per_node=gpus_per_node or known[2],
        ),
        unavailable=share,
        node=node,
        sizes=sizes,
        most_spares=_most_spares(spares, nodes),
        faults=faults or more,
        habits=Habits(
            job_gpus=int(job["job_gpus"]),
            checkpoint_min=job["checkpoint_minutes"],
            swap_min=job["swap_minutes"],
            move_min=job["move_minutes"],
            restart_min=job["restart_minutes"],
            reload_min=job["reload_minutes"],
            reload=survivors == "reload",
        ),
        rule=Rule(groups=not any_size, tolerance=tolerance),
        gpu_hour_price=gpu_hour_price,
    )


def _most_spares(spares: int | None, nodes: int) -> int:
    if spares is None:
        return min(USUAL_SPARES, nodes - 1)
    if spares >= nodes:
        rule = f"a rack has {nodes} nodes and a slice needs one: at most {nodes - 1}"
        raise BadInput(f"--spares: {spares} is not possible: {rule}", field="--spares")
    return spares
