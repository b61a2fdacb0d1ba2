"""Jobs as a table, and one job as a page."""

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.draw_spares import spares_text
from rackwright.cli.show import ago, clock, stale
from rackwright.core.plural import singular
from rackwright.gateway.views import JobAnswer, JobRow, JobsAnswer, Line, RankView, SliceView

ALIKE = 4  # entries of one commit, or ranks that wait, that are shown
STYLES = {
    "running": "green",
    "placed": "cyan",
    "finishing": "cyan",
    "queued": "yellow",
    "suspended": "red",
    "failed": "red",
    "rejected": "red",
}


def draw_jobs(view: JobsAnswer) -> RenderableType:
    """One job a line."""
    if not view.jobs:
        return Text("no jobs")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("job", "owner", "queue", "prio", "state", "nodes", "gpus", "age", "where"):
        right = title in ("prio", "nodes", "gpus", "age")
        table.add_column(title, no_wrap=title != "where", justify="right" if right else "left")
    for row in view.jobs:
        age = ago(view.time - (row.submitted_at or row.state_at))
        table.add_row(
            row.id,
            row.owner,
            row.queue,
            str(row.priority) if row.queue else "",
            Text(row.state, style=STYLES.get(row.state, "")),
            str(row.nodes or ""),
            str(row.gpus) if row.nodes else "",
            age,
            where(row),
        )
    parts: list[RenderableType] = [table]
    if view.next is not None:
        shown = f"{len(view.jobs)} of {view.total} jobs; more with --after {view.next}"
        parts.append(Text(shown, style="dim"))
    warning = stale(view)
    return Group(*parts, *([warning] if warning else []))


def where(row: JobRow) -> str:
    """Racks of a placed job, the cause of a waiting one."""
    if row.racks:
        marks = {"wounded": row.wounded, "pinned": row.pinned_by}
        told = ", ".join(mark for mark, is_so in marks.items() if is_so)
        more = " ..." if row.slices > len(row.racks) == 16 else ""
        return ", ".join(row.racks) + more + (f" ({told})" if told else "")
    return f"waits: {row.blocked}" if row.blocked else ""


def draw_job(view: JobAnswer, *, story: bool = True) -> RenderableType:
    """All about one job."""
    parts: list[RenderableType] = [_head(view)]
    if view.slices:
        parts += [Text(), _slices(view)]
    if view.story and story:
        parts += [Text(), *draw_story(view.story, view.left_out)]
        if not view.complete:
            parts.append(Text("the ledger is still being read back", style="dim"))
    warning = stale(view)
    return Group(*parts, *([warning] if warning else []))


def _head(view: JobAnswer) -> Text:
    row = view.job
    gpus = f"{row.gpus} GPUs" if row.gpus else "without GPUs"
    size = singular(f"{row.nodes} nodes, {gpus}") if row.nodes else "ended"
    text = Text.assemble(
        (row.id, "bold"), "  ", (row.state, STYLES.get(row.state, "")), f"  {size}\n"
    )
    facts = [f"owner {row.owner}"]
    if row.queue:
        facts += [f"queue {row.queue}", f"class {row.job_class}", f"priority {row.priority}"]
    if row.membership:
        facts.append(f"membership {row.membership}")
    counted = (("swaps", view.swaps), ("moves", view.moves), ("requeues", view.requeues))
    facts += [f"{name} {count}" for name, count in counted if count]
    text.append(", ".join(facts))
    for line in _why(view):
        text.append("\n" + line)
    return text


def _why(view: JobAnswer) -> Iterator[str]:
    if view.waits is not None:
        yield f"waits ({view.waits.code}): {view.waits.text}"
    if view.reason is not None:
        yield f"because ({view.reason.code}): {view.reason.text}"
    if view.job.pinned_by:
        yield f"pinned by {view.job.pinned_by}: nobody moves or evicts it for another"
    if view.kept_until is not None:
        left = ago(view.kept_until - view.time)
        yield f"its nodes are kept for {left}: {nodes_text(list(view.kept_nodes))}"
    if view.plan is not None:
        yield f"part of plan {view.plan}"
    for wound in view.wounds:
        waits = "" if wound.waits is None else f"; {wound.waits.text}"
        yield f"wounded: rank {wound.rank} ({wound.kind}, {wound.code}){waits}"
    waiting = [rank for rank in view.ranks if rank.waits_for]
    for rank in waiting[:ALIKE]:
        notice = f", which has {ago(rank.waits_notice_s)} notice" if rank.waits_notice_s else ""
        place = f"{rank.waits_for[0]} on {rank.waits_on}{notice}"
        yield f"rank {rank.rank} starts on {rank.node} when nothing is left of {place}"
    if len(waiting) > ALIKE:
        yield f"and so do {len(waiting) - ALIKE} more"
    for warning in view.warnings:
        yield f"warning: {warning.text}"


def _slices(view: JobAnswer) -> Table:
    """Slices by rack, with their ranks in runs of alike ones."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("slice", "rack", "ranks", "nodes", "spares", "workers"):
        table.add_column(title, no_wrap=title != "workers")
    ranks: dict[int, list[RankView]] = {}
    for rank in view.ranks:
        ranks.setdefault(rank.slice, []).append(rank)
    for part in view.slices:
        mine = ranks.get(part.index, [])
        table.add_row(
            str(part.index),
            part.rack + (" (lent)" if part.lent else ""),
            _ranks(part),
            nodes_text([rank.node for rank in mine]) or str(part.size),
            "" if part.spares is None else spares_text(part.spares),
            ", ".join(_workers(mine)),
        )
    return table


def _ranks(part: SliceView) -> str:
    last = part.first_rank + part.size - 1
    return str(part.first_rank) if part.size == 1 else f"{part.first_rank}-{last}"


def nodes_text(names: list[str]) -> str:
    """Names of nodes, runs of consecutive numbers in short: `r01-n[01-16]`."""
    runs: list[tuple[str, int, int, int]] = []
    plain = []
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if not digits:
            plain.append(name)
            continue
        number, width = int(digits), len(digits)
        if runs and runs[-1][0] == stem and runs[-1][2] + 1 == number and runs[-1][3] == width:
            runs[-1] = (stem, runs[-1][1], number, width)
        else:
            runs.append((stem, number, number, width))
    told = [
        f"{stem}{first:0{width}}" if first == last else f"{stem}[{first:0{width}}-{last:0{width}}]"
        for stem, first, last, width in runs
    ]
    return ", ".join(plain + told)


def _workers(ranks: list[RankView]) -> Iterator[str]:
    """How many workers are in which state; those that are not from the first start by name."""
    counts: dict[str, int] = {}
    for rank in ranks:
        state = "waits" if rank.waits_for else (rank.state or "not reported")
        state = "ready" if rank.ready and state == "running" else state
        state += " (pretended)" if rank.pretended else ""
        counts[state] = counts.get(state, 0) + 1
    for state, count in counts.items():
        yield f"{count} {state}"
    if ranks:
        usual = min(rank.incarnation for rank in ranks)
        if usual > 1:
            yield f"incarnation {usual}"
        for rank in ranks:
            if rank.incarnation != usual:
                yield f"rank {rank.rank} is incarnation {rank.incarnation}"


def draw_story(lines: tuple[Line, ...], left_out: int = 0) -> Iterator[Text]:
    """Entries, one a line."""
    if left_out:
        yield Text(f"({left_out} entries are left out)", style="dim")
    for _, run in groupby(lines, key=lambda line: (line.seq, line.void)):
        alike = list(run)
        for line in alike[:ALIKE]:
            yield draw_line(line)
        if len(alike) > ALIKE:
            yield Text(f"       and {len(alike) - ALIKE} more in the same commit", style="dim")


def draw_line(line: Line) -> Text:
    """One entry."""
    style = "dim" if line.void else ""
    text = Text.assemble(
        (f"{line.seq:>6} ", "dim"),
        (clock(line.at), "dim"),
        f" {line.type:<21} ",
        (line.text, style),
    )
    return text
