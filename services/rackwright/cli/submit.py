"""`rackwright submit`: a job file becomes a wish, and the wish is answered."""

from pathlib import Path

import click

from rackwright.bus.errors import BusAway, NoResponder, RequestFailed
from rackwright.cli.asking import Answer, Cell
from rackwright.cli.failures import Failure, Unanswered
from rackwright.cli.following import follow_job
from rackwright.cli.given import read_given
from rackwright.cli.jobtext import read
from rackwright.cli.numbers import Number
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import ask, tell, wished_for
from rackwright.core.reasons import sentence
from rackwright.gateway.views import JobAnswer
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.wishes import Submit

MAX_FILE = 1_048_576


@click.command()
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the file, such as nodes=32 or checkpoint.interval_s=600. Repeatable.",
)
@click.option("--wait", is_flag=True, help="Wait until it runs or has ended.")
@click.option("--follow", is_flag=True, help="Tell what happens to it until it has ended.")
@click.option(
    "--patience",
    type=Number(min=0.1),
    default=10.0,
    show_default=True,
    help="Seconds to wait for the answer.",
)
@json_option
@reaching
def submit(
    where: Where,
    file: Path,
    settings: tuple[str, ...],
    wait: bool,
    follow: bool,
    patience: float,
    as_json: bool,
) -> None:
    """Submit the job in FILE (YAML or JSON; - reads standard input).

    Prints the id of the job, and warnings on standard error. The id is the job's name unless the
    file gives one; the same id with the same specification is the same job.

    \b
    A job file:
      name: train
      num_nodes: 32
      checkpoint: {interval_s: 1800, on_notice_s: 60}
      run: torchrun --nnodes $NNODES --node-rank $NODE_RANK train.py

    \b
    Examples:
      rackwright submit train.yaml
      rackwright submit train.yaml --set nodes=16 --set id=train-2 --wait
      echo '{"name": "nap", "nodes": 2, "pretend_s": 60}' | rackwright submit -
    """
    name, spec = _read(file, settings)
    if follow or wait:
        run(_watched(where, name, spec, patience, as_json, follow))
        return
    run(_submit(where, name, spec, patience, as_json))


def _read(file: Path, settings: tuple[str, ...]) -> tuple[JobId, JobSpec]:
    data, name = read_given(file, MAX_FILE)
    with explained():
        return read(data, name, settings)


async def _submit(where: Where, name: JobId, spec: JobSpec, patience: float, as_json: bool) -> None:
    async with where.reach() as cell:
        await _wish(cell, name, spec, patience, as_json)


async def _wish(cell: Cell, name: JobId, spec: JobSpec, patience: float, as_json: bool) -> None:
    """Wish, and print the answer. A wish that was granted before gets none: the job shows it."""
    try:
        answer = await wished_for(cell, Submit(job=name, spec=spec), patience)
    except Unanswered:
        state = await _known(cell, name)
        if state is None:
            raise
        click.echo(f"warning: submitted before as the same job, which is {state}", err=True)
        known = {"job": name, "state": state, "submitted_before": True}
        click.echo(to_json(known).decode() if as_json else name)
        return
    _warn(answer)
    tell(answer, lambda _: str(name), as_json=as_json)


async def _known(cell: Cell, name: JobId) -> str | None:
    """The state of this user's job of that id; None if there is none."""
    try:
        view, _ = await ask(cell, "job", JobAnswer, job=name, ranks=0, story=0)
    except (RequestFailed, NoResponder, BusAway):
        return None
    return view.job.state if view.job.owner == cell.user else None


def _warn(answer: Answer) -> None:
    for warning in getattr(answer.entry, "warnings", ()):
        click.echo(f"warning: {sentence(warning)}", err=True)


async def _watched(
    where: Where, name: JobId, spec: JobSpec, patience: float, as_json: bool, follow: bool
) -> None:
    async with where.reach() as cell:
        await _wish(cell, name, spec, patience, as_json)
        state = await follow_job(
            cell, name, quiet=not follow, until_running=not follow, answered=True
        )
    if state in ("failed", "cancelled", "rejected", "suspended"):
        raise Failure(f"job {name} is {state}: see `rackwright job {name}`")
