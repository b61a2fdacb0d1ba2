"""`rackwright deadletters`: what nobody could read, and why."""

import time
from collections import deque
from dataclasses import dataclass

import click
from rich.text import Text

from rackwright.bus.ports import Ready, Stored
from rackwright.cli.durations import duration
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, json_option, reaching, run
from rackwright.cli.show import clock, console
from rackwright.wire.codec import to_json
from rackwright.wire.message import Part

STREAMS = ("wish", "signal", "status")
BYTES_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter(Part):
    """One message that was set aside. `seq` is its place in the dead letters, `at` the server's
    time; `original` its sequence in `stream`; `source` the copy that could not read it."""

    seq: int
    at: float
    stream: str
    subject: str
    original: int
    why: str
    source: str
    body: str


@click.command()
@click.argument("stream", required=False, type=click.Choice(STREAMS))
@click.option(
    "--since", callback=duration, default="7d", show_default=True, help="How old at most."
)
@click.option("--limit", type=Whole(1, 10_000), default=50, show_default=True)
@json_option
@reaching
def deadletters(where: Where, stream: str | None, since: float, limit: int, as_json: bool) -> None:
    """Messages that nobody could read, the newest last: who sent each, and what would be right.

    They are kept for seven days. With --json one a line. Only operators may read them.

    \b
    Examples:
      rackwright deadletters
      rackwright deadletters wish --since 1h --json | jq -r .why
    """
    found = run(_read(where, time.time() - since, stream, limit))
    if as_json:
        for letter in found:
            click.echo(to_json(letter))
        return
    screen = console()
    for letter in found:
        screen.print(_drawn(letter))
    if not found:
        click.echo("nothing was set aside")


async def _read(
    where: Where, since: float, stream: str | None, limit: int
) -> tuple[DeadLetter, ...]:
    """The newest `limit` of those kept."""
    kept: deque[DeadLetter] = deque(maxlen=limit)
    async with where.reach() as cell, cell.bus.dead.follow(since) as feed:
        async for item in feed:
            if isinstance(item, Ready):
                break
            letter = _letter(item)
            if stream is None or letter.stream == stream:
                kept.append(letter)
    return tuple(kept)


def _letter(stored: Stored) -> DeadLetter:
    told = stored.headers
    original = told.get("Rackwright-Seq", "0")
    return DeadLetter(
        seq=stored.seq,
        at=stored.at,
        stream=stored.subject.rpartition(".")[2],
        subject=told.get("Rackwright-Subject", ""),
        original=int(original) if original.isdecimal() else 0,
        why=told.get("Rackwright-Why", ""),
        source=told.get("Rackwright-Source", ""),
        body=stored.data.decode("utf-8", errors="replace"),
    )


def _drawn(letter: DeadLetter) -> Text:
    body = letter.body if len(letter.body) <= BYTES_SHOWN else letter.body[:BYTES_SHOWN] + "..."
    return Text.assemble(
        (f"{letter.seq:>6} ", "dim"),
        (clock(letter.at), "dim"),
        f" {letter.subject} ",
        (letter.why, "yellow"),
        f"\n       {body!r}",
    )
