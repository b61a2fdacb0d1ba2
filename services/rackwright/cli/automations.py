"""Commands that stop an automation for a while, and let it act again."""

import click

from rackwright.cli.durations import duration
from rackwright.cli.session import Where, json_option, reaching
from rackwright.cli.show import ago, wish
from rackwright.wire.policy import Automation
from rackwright.wire.wishes import Pause, Unpause

NAMES = click.Choice([automation.value for automation in Automation])


@click.command()
@click.argument("automation", type=NAMES)
@click.option(
    "--for", "for_s", callback=duration, required=True, help="How long, such as 30m or 2h."
)
@click.option("--why", default="", help="Kept with the pause.")
@json_option
@reaching
def pause(where: Where, automation: str, for_s: float, why: str, as_json: bool) -> None:
    """Stop an AUTOMATION (placement, swap, defrag, health) for a while; there is always an end.

    \b
    Example:
      rackwright pause defrag --for 2h --why "benchmark night"
    """
    wish(
        where,
        Pause(automation=Automation(automation), for_s=for_s, why=why),
        lambda _: f"{automation} is paused for {ago(for_s)}",
        as_json=as_json,
    )


@click.command()
@click.argument("automation", type=NAMES)
@json_option
@reaching
def unpause(where: Where, automation: str, as_json: bool) -> None:
    """Let an AUTOMATION act again before its pause ends.

    \b
    Example:
      rackwright unpause defrag
    """
    wish(
        where,
        Unpause(automation=Automation(automation)),
        lambda _: f"{automation} acts again",
        as_json=as_json,
    )
