"""A plan as tables for people."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rackwright.core.experience import Experience
from rackwright.core.plural import digits
from rackwright.core.policy.advice import Crossing
from rackwright.core.policy.estimates import Estimate
from rackwright.core.policy.planning import (
    ASSUMPTIONS,
    Answer,
    SizeLine,
    money,
    year_gpu_h,
)


def draw_plan(found: Answer, learnt: Experience | None = None) -> RenderableType:
    """The cell, its slice sizes, what spares buy, and what to do."""
    parts: list[RenderableType] = [_cell(found), Text()]
    if learnt is not None:
        parts += [*_learnt(learnt), Text()]
    parts += [_sizes(found), Text()]
    chosen = found.size(found.recommendation.slice_nodes)
    if chosen.spares:
        parts += [_spares(found, chosen), Text()]
    parts += [_crossings(found), Text(), *_recommendation(found), Text()]
    parts += [Text(f"assumed: {one}", style="dim") for one in ASSUMPTIONS]
    return Group(*parts)


def _cell(found: Answer) -> Text:
    question, cell, between = found.question, found.question.cell, found.between
    text = (
        f"{cell.racks} racks of {cell.nodes_per_rack} nodes, {cell.nodes:,} nodes, {cell.gpus:,}"
        f" GPUs; a node is away {question.unavailable:.3%} of the time"
    )
    if question.node is not None and between is not None:
        text += (
            f" ({question.node.mtbf_days:g} days in service, {question.node.repair_days * 24:g} h"
            f" away)\nbetween interruptions: a node {between.node_days:.3g} days, a rack"
            f" {between.rack_days:.3g} days, the cell {between.cell_hours:.3g} hours"
        )
    for fault in question.faults:
        text += (
            f"\na rack's {fault.name} fault every {fault.mtbi_days:g} days, {fault.repair_hours:g}"
            " h to repair"
        )
    return Text(text)


def _learnt(learnt: Experience) -> Iterator[Text]:
    yield Text(
        f"learnt from the ledger: {learnt.node_faults} faults of nodes in"
        f" {learnt.node_days:,.1f} node-days, {learnt.node_repairs} of them ended;"
        f" {learnt.rack_faults} faults of racks in {learnt.rack_days:,.1f} rack-days"
    )
    yield Text(
        f"  days between a node's faults {_estimate(learnt.node_mtbi_days)}, hours away"
        f" {_estimate(learnt.node_repair_hours)} (95 % intervals)"
    )


def _estimate(one: Estimate) -> str:
    value = "unknown" if one.value is None else f"{one.value:.3g}"
    low = "?" if one.low is None else f"{one.low:.3g}"
    high = "no bound" if one.high is None else f"{one.high:.3g}"
    return f"{value} ({low} to {high})"


def _sizes(found: Answer) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    titles = ["slice", "a rack", "usable", "share", "p1", "p10", "p50", "against best", "group"]
    priced = found.question.gpu_hour_price is not None
    for title in [*titles, *(["value a year (estimate)"] if priced else [])]:
        table.add_column(title, justify="right", no_wrap=True)
    for line in found.sizes:
        style = "bold" if line.slice_nodes == found.recommendation.slice_nodes else ""
        table.add_row(*_size(found, line, priced), style=style)
    return table


def _size(found: Answer, line: SizeLine, priced: bool) -> Iterator[str]:
    yield str(line.slice_nodes)
    yield f"{line.slices_per_rack} + {line.leftover_nodes}"
    yield f"{line.usable.mean:,.0f}"
    yield f"{line.share:.1%}"
    yield from (f"{count:,}" for count in (line.usable.p1, line.usable.p10, line.usable.p50))
    yield f"-{line.lost_share:.1%}" if line.lost_share >= 0.0005 else "best"
    yield f"{line.group_gpus} GPUs"
    if priced:
        hours = year_gpu_h(line.usable.mean, found.question.cell.gpus_per_node)
        yield f"{money(found.question, hours):,.0f}"


def _spares(found: Answer, line: SizeLine) -> Group:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    titles = ("spares", "interruptions", "unswappable", "rack faults", "lost GPU-h, swap", "none")
    priced = found.question.gpu_hour_price is not None
    for title in (*titles, *(("swap saves (estimate)",) if priced else ()), ""):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for one in line.spares:
        saved = money(found.question, one.lost_without_swap_gpu_h - one.lost_with_swap_gpu_h)
        note = "" if one.fits else f"needs {one.running_nodes + one.spares} nodes a rack"
        if one.fits and one.slices_given_up:
            note = f"takes the place of {one.slices_given_up} slice"
        table.add_row(
            str(one.spares),
            f"{one.interruptions:,.0f}",
            digits(one.unswappable),
            digits(one.rack_faults),
            f"{one.lost_with_swap_gpu_h:,.0f}",
            f"{one.lost_without_swap_gpu_h:,.0f}",
            *((f"{saved:,.0f}",) if priced else ()),
            note,
            style="bold" if one.spares == found.recommendation.spares else "",
        )
    title = f"beside slices of {line.slice_nodes}, for the cell and a year"
    return Group(Text(title), Padding(table, (0, 0, 0, 2)))


def _crossings(found: Answer) -> Text:
    """Where two sizes change places, a line for each two: they may do so twice."""
    if not found.crossings:
        return Text("one slice size leaves most usable nodes, however often nodes are away")
    pairs: dict[frozenset[int], list[Crossing]] = {}
    for one in sorted(found.crossings, key=lambda one: one.unavailable):
        pairs.setdefault(frozenset((one.below, one.above)), []).append(one)
    told = ["of two slice sizes this one leaves more usable nodes, by how long nodes are away:"]
    for of_two in pairs.values():
        first, ends = of_two[0], [f" up to {one.unavailable:.2%}" for one in of_two[1:]]
        line = f"  {first.below} below {first.unavailable:.2%} of the time"
        for one, end in zip(of_two, [*ends, " above that"], strict=True):
            line += f", {one.above}{end}"
        told.append(line)
    return Text("\n".join(told))


def _recommendation(found: Answer) -> Iterator[Text]:
    made = found.recommendation
    spares = "" if made.spares is None else f", {made.spares} spares beside them"
    yield Text(f"recommended: slices of {made.slice_nodes} nodes{spares}", style="bold")
    yield from (Text(f"  {reason}") for reason in made.reasons)
