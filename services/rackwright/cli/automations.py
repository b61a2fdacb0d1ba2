"""Commands about the whole cell: stop an automation for a while, believe faults, upgrade it."""

import click

from rackwright.cli.asking import Answer
from rackwright.cli.durations import duration
from rackwright.cli.session import Where, json_option, reaching
from rackwright.cli.show import ago, wish
from rackwright.wire.policy import Automation
from rackwright.wire.versions import FOLD_VERSION
from rackwright.wire.wishes import CloseBreaker, Pause, Unpause, Upgrade

ALL = Automation.ALL.value
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

    `all` makes the cell read only: nothing is decided, no wish but a pause is granted. Workers run
    on, and what nodes say of themselves is recorded.

    \b
    Examples:
      rackwright pause defrag --for 2h --why "benchmark night"
      rackwright pause all --for 20m --why "what happens here?"
    """
    wish(
        where,
        Pause(automation=Automation(automation), for_s=for_s, why=why),
        lambda _: f"{_named(automation)} paused for {ago(for_s)}",
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
        lambda _: "the cell acts again" if automation == ALL else f"{automation} acts again",
        as_json=as_json,
    )


def _named(automation: str) -> str:
    return "the cell is read only: everything" if automation == ALL else f"{automation} is"


@click.command("close-breaker")
@click.option("--why", default="", help="Kept with the entry.")
@json_option
@reaching
def close_breaker(where: Where, why: str, as_json: bool) -> None:
    """Say that the faults which opened the breaker are real: recovery acts on them at once.

    `rackwright stats` shows whether it is open, and when it would close by itself.

    \b
    Example:
      rackwright close-breaker --why "the cooling failed, the nodes are down"
    """

    def said(answer: Answer) -> str:
        return f"the breaker is closed after {getattr(answer.entry, 'culprits', 0)} culprits"

    wish(where, CloseBreaker(why=why), said, as_json=as_json)


@click.command()
@json_option
@reaching
def upgrade(where: Where, as_json: bool) -> None:
    """Use what this release brought, when every copy of every service runs it.

    A new release keeps the rules of the ledger of the one before until it is told so. From then on
    a copy of an older release stops at that entry and decides nothing.

    \b
    Example:
      rackwright upgrade
    """
    told = f"the cell is at fold version {FOLD_VERSION}"
    wish(where, Upgrade(fold_version=FOLD_VERSION), lambda _: told, as_json=as_json)
