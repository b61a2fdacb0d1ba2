"""How answers are shown: as JSON for programs, drawn for people."""

import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType
from rich.text import Text

from rackwright.cli import asking
from rackwright.cli.asking import Answer, Cell
from rackwright.cli.failures import Refused, Unanswered
from rackwright.cli.session import Where, run
from rackwright.core.reasons import sentence
from rackwright.gateway.views import Answer as Told
from rackwright.wire.codec import read_json, to_json
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import Wish

A = TypeVar("A", bound=Told)
PATIENCE_S = 10.0
MAX_ANSWER = 1_048_576
NO_TERMINAL = 160  # columns, where nobody says how wide it is


def console() -> Console:
    """Standard output; wide enough for programs that read it."""
    width = None if sys.stdout.isatty() else NO_TERMINAL
    return Console(highlight=False, width=width, soft_wrap=False)


async def ask(cell: Cell, name: str, kind: type[A], **parameters: Any) -> tuple[A, bytes]:
    """The gateway's answer to a question, and its bytes. Raises what the bus raises."""
    given = {key: value for key, value in parameters.items() if value is not None}
    subject = cell.subjects.query(name)
    message = await cell.bus.core.request(subject, to_json(given), patience=PATIENCE_S)
    return read_json(kind, message.data, MAX_ANSWER), message.data


def show(
    where: Where,
    as_json: bool,
    name: str,
    kind: type[A],
    draw: Callable[[A], RenderableType],
    **parameters: Any,
) -> A:
    """Ask one question and print the answer."""

    async def work() -> tuple[A, bytes]:
        async with where.reach() as cell:
            return await ask(cell, name, kind, **parameters)

    view, data = run(work())
    if as_json:
        click.echo(data)
    else:
        screen = console()
        for notice in view.notices:
            screen.print(Text(notice, style="bold yellow"))
        screen.print(draw(view))
    return view


def wish(
    where: Where,
    wished: Wish,
    said: Callable[[Answer], str],
    *,
    as_json: bool = False,
    patience_s: float = PATIENCE_S,
) -> Answer:
    """Wish for something and print the answer. Raises Failure if it is refused or late."""

    async def work() -> Answer:
        async with where.reach() as cell:
            return await wished_for(cell, wished, patience_s)

    answer = run(work())
    tell(answer, said, as_json=as_json)
    return answer


async def wished_for(cell: Cell, wished: Wish, patience_s: float = PATIENCE_S) -> Answer:
    """Publish a wish and wait for its answer. Raises Failure if there is none in time."""
    try:
        return await cell.wish(wished, patience_s=patience_s)
    except asking.Unanswered as error:
        raise Unanswered(
            f"{error}; it will be answered as soon as somebody can (`rackwright"
            " services` tells who is there)"
        ) from error


def tell(answer: Answer, said: Callable[[Answer], str], *, as_json: bool = False) -> None:
    """Print an answer. Raises Refused if it is a no."""
    told = {"type": answer.type, "granted": answer.granted, "entry": answer.entry}
    if answer.granted:
        click.echo(to_json(told) if as_json else said(answer))
        return
    reason: Reason = answer.entry.reason  # type: ignore[attr-defined]
    raise Refused(
        f"refused: {sentence(reason)}",
        code=reason.code,
        field=str(reason.numbers.get("field", "")),
        answer=to_json(told),
    )


def stale(view: Told) -> Text | None:
    """A warning where the answer is older than it should be."""
    if view.age_s < 30.0:
        return None
    return Text(f"as of {ago(view.age_s)} ago: nothing has been decided since", style="yellow")


def ago(seconds: float) -> str:
    """A duration for people: the two largest units."""
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    left = max(0, int(seconds))
    if left == 0:
        return "0s"
    parts = []
    for name, size in units:
        if left >= size:
            parts.append(f"{left // size}{name}")
            left %= size
        if len(parts) == 2:
            break
    return "".join(parts)


def clock(at: float) -> str:
    """A time of day, in this machine's zone."""
    return time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at % 1 * 1000):03d}"
