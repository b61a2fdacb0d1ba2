"""Commands about racks: the picture, and operators' holds."""

import time

import click

from rackwright.cli.asking import Answer
from rackwright.cli.draw_racks import draw_racks
from rackwright.cli.durations import duration
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, explained, json_option, reaching
from rackwright.cli.show import ago, show, wish
from rackwright.core.reasons import sentence
from rackwright.gateway.views import RacksAnswer
from rackwright.wire.ids import JobId, RackId, check_name
from rackwright.wire.wishes import HoldRack, LetGo, ReleaseRack, ScheduleMaintenance


@click.command()
@click.argument("rack", required=False)
@click.option("--limit", type=Whole(1, 200), default=50, show_default=True)
@click.option("--after", help="Go on after this rack.")
@json_option
@reaching
def racks(where: Where, rack: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """A picture of each rack (or of RACK): a character a node, a letter a job.

    \b
    Examples:
      rackwright racks
      rackwright racks r01
      watch -c rackwright racks
    """
    for name in (rack, after):
        if name is not None:
            _checked(name)
    show(
        where,
        as_json,
        "racks",
        RacksAnswer,
        draw_racks,
        rack=rack,
        limit=limit,
        after=after,
    )


def _checked(rack: str) -> RackId:
    with explained():
        return RackId(check_name("rack", rack))


@click.command()
@click.argument("rack")
@click.option(
    "--for", "for_s", callback=duration, required=True, help="How long, such as 30m or 4h."
)
@click.option("--why", default="", help="Kept with the hold.")
@json_option
@reaching
def hold(where: Where, rack: str, for_s: float, why: str, as_json: bool) -> None:
    """Give RACK's free nodes to nobody for a while; what runs there goes on.

    \b
    Example:
      rackwright hold r07 --for 4h --why "switch tray is being changed"
    """
    name = _checked(rack)
    wish(
        where,
        HoldRack(rack=name, for_s=for_s, why=why),
        lambda _: f"rack {name} is held for {ago(for_s)}",
        as_json=as_json,
    )


@click.command()
@click.argument("rack", required=False)
@click.option("--job", help="Instead: the nodes that are kept since this job failed.")
@json_option
@reaching
def release(where: Where, rack: str | None, job: str | None, as_json: bool) -> None:
    """End the hold of RACK, or let the nodes go that are kept for a failed job.

    \b
    Examples:
      rackwright release r07
      rackwright release --job train
    """
    if (rack is None) == (job is None):
        raise click.UsageError("name a RACK or, with --job, a job: one of the two")
    if job is not None:
        with explained():
            kept = JobId(check_name("job", job))
        wish(where, LetGo(job=kept), lambda _: f"the nodes of {kept} are free", as_json=as_json)
        return
    name = _checked(rack or "")
    wish(where, ReleaseRack(rack=name), lambda _: f"rack {name} is released", as_json=as_json)


@click.command()
@click.argument("racks", metavar="RACK...", nargs=-1, required=True)
@click.option("--in", "in_s", callback=duration, required=True, help="When it begins, from now.")
@click.option("--for", "for_s", callback=duration, required=True, help="How long it lasts.")
@click.option(
    "--notice", callback=duration, default="30m", show_default=True, help="Work leaves so early."
)
@click.option("--why", default="", help="Kept with the window.")
@json_option
@reaching
def maintain(
    where: Where,
    racks: tuple[str, ...],
    in_s: float,
    for_s: float,
    notice: float,
    why: str,
    as_json: bool,
) -> None:
    """Plan the absence of each RACK: work leaves in good time, and may come back afterwards.

    Nothing is placed there that would not have ended before.

    \b
    Example:
      rackwright maintain r07 --in 4h --for 2h --why "switch tray"
    """
    begin = time.time() + in_s
    wished = ScheduleMaintenance(
        racks=tuple(_checked(name) for name in racks),
        begin=begin,
        end=begin + for_s,
        notice_s=notice,
        why=why,
    )
    names = ", ".join(racks)
    said = f"maintenance of {names} begins in {ago(in_s)} and lasts {ago(for_s)}"

    def told(answer: Answer) -> str:
        missing = getattr(answer.entry, "missing", None)
        return said if missing is None else f"{said}\nwarning: {sentence(missing)}"

    wish(where, wished, told, as_json=as_json)
