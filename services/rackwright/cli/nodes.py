"""Commands about nodes: look at one, and what operators order."""

import click

from rackwright.cli.asking import Answer
from rackwright.cli.draw_node import draw_node
from rackwright.cli.durations import duration
from rackwright.cli.session import Where, explained, json_option, reaching
from rackwright.cli.show import ago, show, wish
from rackwright.gateway.views import NodeAnswer
from rackwright.wire.entries.node import NodeCheckAsked
from rackwright.wire.ids import NodeId, check_name
from rackwright.wire.nodes import RepairAction
from rackwright.wire.wishes import Cordon, Drain, Repaired, Repairing, Uncordon, Wish


def _checked(name: str) -> NodeId:
    with explained():
        return NodeId(check_name("node", name))


@click.command()
@click.argument("name", metavar="NODE")
@json_option
@reaching
def node(where: Where, name: str, as_json: bool) -> None:
    """All about NODE: hardware, fitness, who is on it, its faults, its story.

    \b
    Example:
      rackwright node r01-n03
    """
    show(where, as_json, "node", NodeAnswer, draw_node, node=_checked(name))


@click.command()
@click.argument("name", metavar="NODE")
@click.option("--why", default="", help="Kept in its story.")
@json_option
@reaching
def cordon(where: Where, name: str, why: str, as_json: bool) -> None:
    """No new work on NODE; what runs there goes on.

    \b
    Example:
      rackwright cordon r01-n03 --why "strange noise"
    """
    _order(where, Cordon(node=_checked(name), why=why), "takes no new work", as_json)


@click.command()
@click.argument("name", metavar="NODE")
@click.option("--why", default="", help="Kept in its story.")
@json_option
@reaching
def drain(where: Where, name: str, why: str, as_json: bool) -> None:
    """No new work on NODE, and what runs there leaves it, as recovery would move it.

    \b
    Example:
      rackwright drain r01-n03 --why "tray is being changed at two"
    """
    _order(where, Drain(node=_checked(name), why=why), "is being drained", as_json)


@click.command()
@click.argument("name", metavar="NODE")
@json_option
@reaching
def uncordon(where: Where, name: str, as_json: bool) -> None:
    """Take work again on NODE; ends a cordon and a drain.

    \b
    Example:
      rackwright uncordon r01-n03
    """
    _order(where, Uncordon(node=_checked(name)), "takes work again", as_json)


@click.command()
@click.argument("name", metavar="NODE")
@click.option(
    "--action",
    type=click.Choice([action.value for action in RepairAction if action.value != "none"]),
    default=RepairAction.INSPECT.value,
    show_default=True,
    help="What was done.",
)
@click.option("--serial", help="Serial of the hardware, when it was changed.")
@click.option("--why", default="", help="Kept in its story.")
@json_option
@reaching
def repaired(
    where: Where, name: str, action: str, serial: str | None, why: str, as_json: bool
) -> None:
    """Say that NODE was repaired; it comes back on probation. Its agent must have joined again.

    \b
    Examples:
      rackwright repaired r01-n03 --action reset
      rackwright repaired r01-n03 --action replace --serial 1650124012345
    """
    wished = Repaired(node=_checked(name), action=RepairAction(action), serial=serial, why=why)
    _order(where, wished, "is back, on probation first", as_json)


def _order(where: Where, wished: Wish, done: str, as_json: bool) -> None:
    def said(answer: Answer) -> str:
        if isinstance(answer.entry, NodeCheckAsked):
            return f"{answer.entry.node} is being checked: it is back when that has passed"
        return f"{getattr(answer.entry, 'node', 'the node')} {done}"

    wish(where, wished, said, as_json=as_json)


@click.command()
@click.argument("name", metavar="NODE")
@click.option("--in", "in_s", callback=duration, required=True, help="How long it will take.")
@json_option
@reaching
def repairing(where: Where, name: str, in_s: float, as_json: bool) -> None:
    """Say when NODE will be repaired: jobs that could use it are told, or wait for it.

    \b
    Example:
      rackwright repairing r01-n03 --in 4h
    """
    node = _checked(name)
    said = f"{node} is expected back in {ago(in_s)}"
    wish(where, Repairing(node=node, in_s=in_s), lambda _: said, as_json=as_json)
