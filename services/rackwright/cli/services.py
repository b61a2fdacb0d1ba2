"""`rackwright services`: which copies of which services answer, and what is missing."""

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.session import Where, json_option, reaching
from rackwright.cli.show import show
from rackwright.gateway.views import CopyView, ServicesAnswer, ServiceView


@click.command()
@json_option
@reaching
def services(where: Where, as_json: bool) -> None:
    """Which copies of which services answer, and how far each has read the ledger.

    \b
    Examples:
      rackwright services
      rackwright services --json | jq '.services[] | select(.missing != "")'
    """
    show(where, as_json, "services", ServicesAnswer, draw_services)


def draw_services(view: ServicesAnswer) -> RenderableType:
    """A line a copy, and one for a service of which there is none."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title, side in (("service", "left"), ("copy", "right"), ("read to", "right")):
        table.add_column(title, justify="right" if side == "right" else "left", no_wrap=True)
    table.add_column("version", no_wrap=True)
    table.add_column("state")
    for service in view.services:
        for copy in service.copies:
            seq = str(copy.seq)
            table.add_row(service.service, str(copy.copy), seq, copy.version, _state(copy))
        if not service.copies:
            table.add_row(service.service, "-", "-", "-", _none(service))
    return table


def _state(copy: CopyView) -> Text:
    if copy.ready:
        return Text("ready", style="green")
    if copy.stopped_at is not None:
        return Text(f"stopped at {copy.stopped_at}: {copy.why}", style="bold red")
    return Text(f"not ready: {copy.why or 'it is starting'}", style="yellow")


def _none(service: ServiceView) -> Text:
    if service.silent_s is None:
        return Text("has not answered yet", style="yellow")
    return Text(f"none for {service.silent_s:g} s", style="bold red")
