"""`rackwright events`: what has happened, and what happens."""

from functools import partial

import click

from rackwright.cli.asking import Cell
from rackwright.cli.draw_jobs import draw_line
from rackwright.cli.following import answer, something
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, json_option, reaching, run
from rackwright.cli.show import ask, console
from rackwright.gateway.views import EventsAnswer
from rackwright.wire.codec import to_json
from rackwright.wire.subjects import ROOT


@click.command()
@click.argument("pattern", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--since", type=Whole(0), help="Only after this sequence of the ledger.")
@click.option("--job", help="Only what touched this job.")
@click.option("--node", help="Only what touched this node.")
@click.option("--limit", type=Whole(1, 500), default=50, show_default=True)
@json_option
@reaching
def events(
    where: Where,
    pattern: str | None,
    follow: bool,
    since: int | None,
    job: str | None,
    node: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Entries of the ledger: the newest, or those of a type that matches PATTERN.

    With --json one entry a line.

    \b
    Examples:
      rackwright events -f
      rackwright events 'slice.*' --limit 10
      rackwright events 'node.failed' -f --json
    """
    asked = {"type": pattern, "job": job, "node": node, "limit": limit}
    run(_events(where, asked, since, follow, as_json))


async def _events(
    where: Where,
    asked: dict[str, str | int | None],
    since: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    async with where.reach() as cell:
        if not follow:
            await _page(cell, asked, since, as_json)
            return
        async with await cell.bus.core.subscribe(f"{ROOT}.{cell.bus.cell}.told.>") as feed:
            first = True
            while True:
                page = partial(_page, cell, asked, since, as_json)
                found = await answer(page, again=not first)
                since, first = found.next, False
                if found.next >= found.seq:
                    await something(feed)


async def _page(
    cell: Cell, asked: dict[str, str | int | None], since: int | None, as_json: bool
) -> EventsAnswer:
    found, _ = await ask(cell, "events", EventsAnswer, since=since, **asked)
    screen = console()
    for line in found.events:
        if as_json:
            click.echo(to_json(line))
        else:
            screen.print(draw_line(line))
    return found
