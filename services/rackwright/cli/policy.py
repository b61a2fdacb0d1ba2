"""`rackwright policy`: the settings of the cell, which are an entry in its ledger."""

from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import RenderableType
from rich.table import Table

from rackwright.cli.asking import Answer
from rackwright.cli.failures import BadInput
from rackwright.cli.given import read_given
from rackwright.cli.policyfile import MAX_POLICY_FILE, read_policy
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import ask, show, tell, wished_for
from rackwright.gateway.views import PolicyAnswer
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import SetPolicy


@click.group()
def policy() -> None:
    """Show or set the settings of the cell: slice sizes, spares, leases, defragmentation.

    They are an entry in the ledger, so every service decides with the same ones.
    """


@policy.command("show")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--changed", is_flag=True, help="Only those that differ from the default.")
@json_option
@reaching
def show_policy(where: Where, names: tuple[str, ...], changed: bool, as_json: bool) -> None:
    """Every setting (or those named): its value, its unit and the reason for its default.

    \b
    Examples:
      rackwright policy show
      rackwright policy show slice_nodes spares_large
      rackwright policy show --json | jq .policy
    """
    known = set(Policy.__dataclass_fields__)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInput(f"there is no setting {unknown[0]!r}: `rackwright policy show` lists all")
    show(where, as_json, "policy", PolicyAnswer, lambda view: draw_policy(view, names, changed))


def draw_policy(
    view: PolicyAnswer, names: Iterable[str] = (), changed: bool = False
) -> RenderableType:
    """One setting a line."""
    wanted = set(names)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("setting", "value", "unit", "why"):
        table.add_column(title, no_wrap=title != "why")
    for name, knob in view.knobs.items():
        value = getattr(view.policy, name)
        usual = knob.default == (list(value) if isinstance(value, tuple) else value)
        if (wanted and name not in wanted) or (changed and usual):
            continue
        text = _value(value) if usual else f"{_value(value)} (default {_value(knob.default)})"
        table.add_row(name, text, knob.unit, knob.why)
    return table


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case dict():
            return ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) or "-"
        case list() | tuple():
            return ", ".join(map(str, value)) or "-"
        case _:
            return str(value)


@policy.command("set")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@json_option
@reaching
def set_policy(where: Where, file: Path, as_json: bool) -> None:
    """Change the settings that FILE (YAML or JSON; - is standard input) names; the others stay as
    they are.

    \b
    Examples:
      rackwright policy set slower.yaml
      echo 'fence_after_s: 60' | rackwright policy set -
    """
    data, name = read_given(file, MAX_POLICY_FILE + 1)
    with explained():
        read_policy(data, name=name)  # before anybody is asked
    answer = run(_set(where, data, name))
    tell(answer, lambda _: "the settings are in force", as_json=as_json)


async def _set(where: Where, data: bytes, name: str) -> Answer:
    async with where.reach() as cell:
        view, _ = await ask(cell, "policy", PolicyAnswer)
        changed = read_policy(data, name=name, base=view.policy)
        return await wished_for(cell, SetPolicy(policy=changed))
