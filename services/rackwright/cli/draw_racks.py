"""Racks as pictures: one character a node, a letter a job."""

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.draw_spares import spares_text
from rackwright.cli.show import stale
from rackwright.core.occupancy import NodeUse
from rackwright.gateway.views import NodeCell, RacksAnswer, RackView

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
COLOURS = ("green", "cyan", "magenta", "blue", "bright_green", "bright_cyan", "bright_magenta")
OTHERS = "#"
SEVERAL = "*"

MARKS: dict[str, tuple[str, str, str]] = {
    NodeUse.FREE: (".", "dim", "free"),
    NodeUse.SPARE: ("+", "bold yellow", "spare"),
    NodeUse.HELD: ("=", "dim", "held"),
    NodeUse.KEPT: ("&", "yellow", "kept for the owner of a failed job"),
    NodeUse.PROBATION: ("^", "yellow", "on probation"),
    NodeUse.CLEANING: ("~", "yellow", "being cleaned"),
    NodeUse.CORDONED: ("-", "yellow", "cordoned"),
    NodeUse.DRAINING: (">", "yellow", "draining"),
    NodeUse.SUSPECTED: ("?", "red", "suspected"),
    NodeUse.UNFIT: ("%", "bold red", "unfit"),
    NodeUse.FAILED: ("!", "bold red", "failed"),
    NodeUse.ABSENT: ("_", "dim", "not joined"),
}


def draw_racks(view: RacksAnswer) -> RenderableType:
    """All racks, then what the letters and marks mean."""
    letters = letters_of(view.racks)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="bold")
    for title in ("rack", "state", "nodes", "spares"):
        table.add_column(title, no_wrap=True)
    for rack in view.racks:
        table.add_row(rack.rack, state(rack), picture(rack, letters), spares(rack))
    parts: list[RenderableType] = [table, Text(), *legend(view.racks, letters)]
    for rack in view.racks:
        parts += [Text(f"{rack.rack}: {one.job} stays, {one.waits.text}") for one in rack.stays]
    if view.next is not None:
        shown = f"{len(view.racks)} racks shown; more with --after {view.next}"
        parts.append(Text(shown, style="dim"))
    warning = stale(view)
    return Group(*parts, *([warning] if warning else []))


def letters_of(racks: Iterable[RackView]) -> dict[str, str]:
    """A letter for each job, in the order in which they are met; `#` when there are no more."""
    met = dict.fromkeys(job for rack in racks for node in rack.nodes for job in node.jobs)
    return {
        job: LETTERS[place] if place < len(LETTERS) else OTHERS for place, job in enumerate(met)
    }


def state(rack: RackView) -> Text:
    """Fitness of the rack, or what is worse."""
    if rack.isolated:
        return Text("isolated", style="bold red")
    if rack.held_by is not None:
        return Text(f"held by {rack.held_by}", style="yellow")
    return Text(rack.fitness, style="" if rack.fitness == "good" else "red")


def picture(rack: RackView, letters: dict[str, str]) -> Text:
    """The nodes of a rack in their order."""
    text = Text()
    for node in rack.nodes:
        mark, style = _mark(node, letters)
        text.append(mark, style=style)
    return text


def _mark(node: NodeCell, letters: dict[str, str]) -> tuple[str, str]:
    known = MARKS.get(node.state)
    if known is not None:
        return known[0], known[1]
    if len(node.jobs) > 1:
        return SEVERAL, "green"
    job = node.jobs[0] if node.jobs else ""
    style = _style(letters, job)
    faint = node.state in (NodeUse.PART, NodeUse.LENT)
    return letters.get(job, OTHERS), f"{style} underline" if faint else style


def _style(letters: dict[str, str], job: str) -> str:
    place = list(letters).index(job) if job in letters else 0
    return COLOURS[place % len(COLOURS)]


def spares(rack: RackView) -> Text:
    """Spares that are there of those wanted; what is lent and what is missing."""
    return Text(spares_text(rack.spares), style="red" if rack.spares.short else "")


def legend(racks: Iterable[RackView], letters: dict[str, str]) -> Iterator[Text]:
    """What is in the picture, and only that."""
    nodes = [node for rack in racks for node in rack.nodes]
    for job, letter in letters.items():
        if letter == OTHERS:
            yield Text(f"{OTHERS} further jobs")
            break
        mine = [node for node in nodes if job in node.jobs]
        yield Text.assemble((letter, _style(letters, job)), f" {job} ({_size(mine)})")
    if any(len(node.jobs) > 1 for node in nodes):
        yield Text(f"{SEVERAL} several jobs on one node")
    used = {node.state for node in nodes}
    marks = [f"{mark} {text}" for name, (mark, _, text) in MARKS.items() if name in used]
    if marks:
        yield Text("  ".join(marks), style="dim")


def _size(nodes: list[NodeCell]) -> str:
    part = all(node.state == NodeUse.PART for node in nodes)
    words = "part of a node" if part and len(nodes) == 1 else f"{len(nodes)} nodes"
    words = words.replace("1 nodes", "1 node") if len(nodes) == 1 else words
    return f"{words}, lent" if any(node.state == NodeUse.LENT for node in nodes) else words
