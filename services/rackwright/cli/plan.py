"""`rackwright plan`: what a cell can promise, by slice size and spares. Exact, nothing sampled."""

from pathlib import Path
from typing import Any

import click

from rackwright.cli.draw_plan import draw_plan
from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.learnt import from_archive, from_cell
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
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: node counts such as 8,16,18") from error


def _plot_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix not in {".png", ".svg"}:
        raise click.BadParameter(f"{value}: a name that ends in .png or .svg")
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
            f"--{name}", type=float, default=value, show_default=True, help=text
        )(command)
    return click.option(
        "--job-gpus",
        type=int,
        default=made.job_gpus,
        show_default=True,
        help="GPUs of the job that stands still with a failed node.",
    )(command)


@click.command()
@click.option("--racks", type=int, default=140, show_default=True, help="Racks of the cell.")
@click.option("--nodes-per-rack", type=int, default=18, show_default=True, help="Nodes of each.")
@click.option("--gpus-per-node", type=int, default=4, show_default=True, help="GPUs of a node.")
@click.option("--unavailable", type=float, help="Share of time a node is away, 0 to 1.")
@click.option("--node-mtbi-days", type=float, help="Days in service between faults of a node.")
@click.option("--repair-hours", type=float, help="Hours until a failed node is back.")
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
@click.option("--spares", type=int, default=3, show_default=True, help="Most spares a rack.")
@click.option(
    "--any-size", is_flag=True, help="Recommend any size, where groups need no power of two."
)
@click.option(
    "--tolerance",
    type=float,
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
@click.option("--gpu-hour-price", type=float, help="Turn GPU-hours into money: an estimate.")
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
    except (Impossible, Disagreement, NotEnough) as error:
        raise BadInput(str(error)) from error
    if plot is not None:
        from rackwright.cli.plan_plot import NoPlots, draw

        try:
            draw(found, plot)
        except NoPlots as error:
            raise Failure(str(error)) from error
        except OSError as error:
            raise Failure(f"{plot}: {error.strerror}") from error
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
    racks: int,
    nodes_per_rack: int,
    gpus_per_node: int,
    unavailable: float | None,
    node_mtbi_days: float | None,
    repair_hours: float | None,
    faults: tuple[RackFault, ...],
    sizes: tuple[int, ...],
    spares: int,
    any_size: bool,
    tolerance: float,
    survivors: str,
    gpu_hour_price: float | None,
    **job: float,
) -> Question:
    given = Given(unavailable=unavailable, mtbi_days=node_mtbi_days, repair_hours=repair_hours)
    share, node, more = figures(given, learnt)
    return Question(
        cell=Cell(racks=racks, nodes_per_rack=nodes_per_rack, gpus_per_node=gpus_per_node),
        unavailable=share,
        node=node,
        sizes=sizes,
        most_spares=spares,
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
