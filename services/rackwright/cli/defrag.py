"""`rackwright defrag --dry-run`: what defragmentation would do, without doing it."""

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.asking import Cell
from rackwright.cli.failures import BadInput
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import ask, console
from rackwright.core.plural import singular
from rackwright.core.reasons import known, sentence
from rackwright.gateway.views import DefragAnswer, JobsAnswer
from rackwright.wire.ids import check_name
from rackwright.wire.reasons import Cause, Reason


@click.command()
@click.argument("job", required=False)
@click.option("--dry-run", is_flag=True, help="Only look; required, nothing else is possible.")
@json_option
@reaching
def defrag(where: Where, job: str | None, dry_run: bool, as_json: bool) -> None:
    """What defragmentation would do now for JOB, or for every job that waits for movable topology.

    A row per rack: what is free, who is there, what moving them would cost in GPU-hours or what
    forbids it; then the cheapest set with a home for everybody, and whether it pays.

    \b
    Examples:
      rackwright defrag --dry-run
      rackwright defrag --dry-run big-job
    """
    if not dry_run:
        raise BadInput("plans are made by the defragmenter alone; say --dry-run to look")
    if job is not None:
        with explained():
            check_name("job", job)
    run(_defrag(where, job, as_json))


async def _defrag(where: Where, job: str | None, as_json: bool) -> None:
    screen = console()
    async with where.reach() as cell:
        names = [job] if job is not None else await _blocked(cell)
        for name in names:
            view, data = await ask(cell, "defrag", DefragAnswer, job=name)
            if as_json:
                click.echo(data)
            else:
                screen.print(draw_defrag(view))
        if not names and not as_json:
            click.echo("no job waits for movable topology")


async def _blocked(cell: Cell) -> list[str]:
    found: list[str] = []
    after: str | None = None
    while True:
        view, _ = await ask(cell, "jobs", JobsAnswer, state="queued", limit=1000, after=after)
        found += [row.id for row in view.jobs if row.blocked == Cause.TOPOLOGY_MOVABLE]
        after = view.next
        if after is None:
            return found


def draw_defrag(view: DefragAnswer) -> RenderableType:
    """The table of racks, the chosen set, the verdict."""
    told = view.explanation
    head = Text.assemble((view.job, "bold"), f"  {view.outcome}: {view.text}")
    parts: list[RenderableType] = [head]
    rows = told.get("rows") or []
    if rows:
        parts += [Text(), _racks(rows, told.get("racks") or [])]
    for home in told.get("homes") or []:
        text = f"{home['job']} slice {home['slice']} goes to {home['rack']}, {home['nodes']} nodes"
        parts.append(Text(singular(text)))
    parts += [
        Text(f"{name} goes into the queue, at the head of its priority")
        for name in told.get("evicted") or []
    ]
    if told.get("next_best") is not None:
        racks = ", ".join(told.get("next_racks") or [])
        parts.append(Text(f"next best: {racks} at {told['next_best']:.2f} GPU-h"))
    return Group(*parts)


def _racks(rows: list[dict[str, object]], chosen: list[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("rack", "free", "who is there", "GPU-h"):
        table.add_column(title, no_wrap=title != "who is there")
    for row in rows:
        cost = row["cost"]
        price = "-" if cost is None else f"{float(str(cost)):.2f}"
        mark = "* " if row["rack"] in chosen else ""
        table.add_row(f"{mark}{row['rack']}", str(row["free"]), _tenants(row["tenants"]), price)
    return table


def _tenants(tenants: object) -> str:
    assert isinstance(tenants, list)
    return "; ".join(map(_tenant, tenants))


def _tenant(tenant: dict[str, object]) -> str:
    text = singular(f"{tenant['job']} ({tenant['nodes']} nodes")
    cost, forbidden = tenant["cost"], tenant["forbidden"]
    if isinstance(cost, dict):
        text += f", {float(cost['total']):.2f}"
    elif isinstance(forbidden, str):
        text += f", {sentence(Reason(code=forbidden)) if known(forbidden) else forbidden}"
    return text + (", leaves)" if tenant["leaves"] else ")")
