"""`rackwright stats`: the cell in numbers."""

from collections.abc import Mapping
from functools import partial

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.cli.draw_metrics import TITLES, draw_metrics
from rackwright.cli.draw_spares import spares_text
from rackwright.cli.session import Where, json_option, reaching
from rackwright.cli.show import ago, show, stale
from rackwright.core.plural import singular
from rackwright.gateway.views import StatsAnswer


@click.command()
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, type=click.Choice(list(TITLES)))
@click.option("--all", "everything", is_flag=True, help="Every line, then every metric by topic.")
@click.option("--brief", is_flag=True, help="With --json: without the metrics.")
@json_option
@reaching
def stats(
    where: Where, topics: tuple[str, ...], everything: bool, as_json: bool, brief: bool
) -> None:
    """The cell in numbers: what an operator looks at first, the metrics of each TOPIC, or all.

    docs/api.md defines the metrics; labels come in its order, and of histograms mean and bounds of
    p50, p90 and p99 are told. With --json all of them are.

    \b
    Examples:
      rackwright stats
      rackwright stats spares recovery
      rackwright stats --all
      rackwright stats --json | jq '.gpus, .work.goodput'
      rackwright stats --json | jq '.metrics[] | select(.group == "recovery")'
    """
    asked = True if everything or topics or (as_json and not brief) else None
    draw = partial(draw_stats, everything=everything, topics=topics)
    show(where, as_json, "stats", StatsAnswer, draw, metrics=asked)


def draw_stats(
    view: StatsAnswer, *, everything: bool = False, topics: tuple[str, ...] = ()
) -> RenderableType:
    """One subject a line, or the metrics of some topics, or both of all."""
    parts: list[RenderableType] = []
    if not topics:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for title, text in (*_first(view), *(_more(view) if everything else ()), *_troubles(view)):
            table.add_row(title, singular(text))
        parts.append(table)
    if everything or topics:
        chosen = (one for one in view.metrics if everything or one.group in topics)
        parts.append(draw_metrics(tuple(chosen)))
    else:
        more = f"more: rackwright stats --all, or of {', '.join(TITLES)}"
        parts.append(Text(more, style="dim"))
    warning = stale(view)
    return Group(*parts, *([warning] if warning else []))


def _first(view: StatsAnswer) -> list[tuple[str, str]]:
    """What an operator looks at first."""
    spares = view.spares
    without = f"; {spares.racks_without} racks have none free" if spares.racks_without else ""
    return [
        (
            "cell",
            f"{view.cell}, {view.racks} racks, {view.installed_nodes} nodes,"
            f" {view.installed_gpus} GPUs; ledger at {view.seq}",
        ),
        ("jobs", _counts(view.jobs)),
        ("nodes", _counts(view.nodes)),
        ("GPUs", f"{_counts(view.gpus)}; {view.occupancy:.0%} of the schedulable at work"),
        ("queue", _queue(view)),
        ("spares", f"{spares_text(spares) or 'none wanted'}{without}"),
    ]


def _more(view: StatsAnswer) -> list[tuple[str, str]]:
    """What has become of it all."""
    room = view.fragmentation
    return [
        (
            "room",
            f"{room.whole_racks} whole racks, {room.broken_racks} broken, {room.pinned_racks}"
            f" pinned; fragmentation {room.fragmentation:.2f}; could start by nodes:"
            f" {_counts(room.startable, ' x ')}",
        ),
        ("time", _time(view)),
        ("waits", _waits(view)),
        ("recovery", _recovery(view)),
        ("defrag", _defrag(view)),
        *_reliability(view),
    ]


def _counts(counts: Mapping[str, int], between: str = " ") -> str:
    told = [f"{count}{between}{name}" for name, count in counts.items() if count]
    return ", ".join(told) or "none"


def _queue(view: StatsAnswer) -> str:
    told = [
        f"{one.jobs} by {cause} ({one.gpus} GPUs)" if cause != "none" else f"{one.jobs} new"
        for cause, one in view.queue.items()
    ]
    return ", ".join(told) or "empty"


def _time(view: StatsAnswer) -> str:
    """GPU-hours by what became of them, the largest first."""
    work = view.work
    told = sorted(work.gpu_hours.items(), key=lambda one: -one[1])
    hours = ", ".join(f"{count:g} {state}" for state, count in told) or "none"
    return (
        f"{work.installed_gpu_hours:g} GPU-h: {hours}; goodput {work.goodput:.1%},"
        f" of the jobs' own {work.training_goodput:.1%}; {work.availability:.1%} available"
    )


def _waits(view: StatsAnswer) -> str:
    work = view.work
    text = f"to first start at most {_seconds(work.wait_s)}" if work.wait_s else "nothing started"
    if work.blocked_gpu_hours:
        hours = (f"{count:g} by {cause}" for cause, count in work.blocked_gpu_hours.items())
        text += f"; blocked GPU-h: {', '.join(hours)}"
    return text + (f"; {work.starved} starved" if work.starved else "")


def _recovery(view: StatsAnswer) -> str:
    done = view.recoveries
    text = (
        f"{done.swaps} swaps of {done.swapped_nodes} nodes, {done.moves} moves,"
        f" {done.restarts} restarts, {done.requeues} requeues"
    )
    if "p50" in done.swap_s:
        text += f"; to swap at most {_seconds(done.swap_s)}"
    if "p50" in done.rejoin_s:
        text += f"; until all ranks are back at most {_seconds(done.rejoin_s)}"
    if "p50" in done.progress_s:
        text += f"; until there is progress at most {_seconds(done.progress_s)}"
    if done.stalled_gpu_hours:
        hours = (f"{count:g} by {rung}" for rung, count in done.stalled_gpu_hours.items())
        text += f"; stalled GPU-h: {', '.join(hours)}"
    return text


def _seconds(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g} s ({name})" for name, value in shares.items())


def _defrag(view: StatsAnswer) -> str:
    plans = view.defrags
    flying = f", in flight {', '.join(plans.in_flight)}" if plans.in_flight else ""
    known = plans.optimality_gap
    gap = "" if known is None else f", {known:.1%} of it beyond what none could cost less than"
    over = ""
    if plans.over:
        over = (
            f", the {plans.over} that are over cost {plans.actual_gpu_h:g} of {plans.over_gpu_h:g}"
        )
    return (
        f"{plans.planned} plans with {plans.victims} victims, {plans.withdrawn} withdrawn,"
        f" {plans.finished} carried out, {plans.cost_gpu_h:g} GPU-h estimated{gap}{over}{flying}"
    )


def _breaker(view: StatsAnswer) -> str:
    found = view.breaker
    said = f"{'open' if found.open else 'closed'}, {found.culprits} culprits of {found.limit}"
    if found.closed_at is not None:
        said += f"; closed by {found.closed_by} {ago(view.time - found.closed_at)} ago"
    return said


def _reliability(view: StatsAnswer) -> list[tuple[str, str]]:
    """Of 30 days, once anything has failed in them."""
    found = next((one for one in view.reliability if one.node_mtbf_days["value"]), None)
    if found is None:
        return []
    mtbf, away = found.node_mtbf_days, found.node_mttr_hours
    high = "more" if mtbf["high"] is None else f"{mtbf['high']:g}"
    text = f"a node fails every {mtbf['value']:g} d ({mtbf['low']:g} to {high}, 95 %)"
    if away["value"] is not None:
        text += f", is away {away['value']:g} h"
    text += f"; {found.rack_faults} racks failed in {found.days} d"
    return [("faults", f"{text}; {view.lemon_share:.1%} of the nodes are lemons")]


def _paused(view: StatsAnswer) -> list[tuple[str, str]]:
    named = {one: "everything" if one == "all" else one for one in view.paused}
    return [
        ("paused", f"{named[one]} for {ago(until - view.time)} more")
        for one, until in view.paused.items()
    ]


def _troubles(view: StatsAnswer) -> list[tuple[str, str]]:
    """What somebody should know, only where there is something."""
    rows = _paused(view)
    if view.breaker.open or view.breaker.closed_at is not None:
        rows.append(("breaker", _breaker(view)))
    if view.unanswered_failures:
        rows.append(("failures", f"{view.unanswered_failures} not answered yet"))
    if view.stopped_at is not None:
        rows.append(("stopped", f"the fold stopped at {view.stopped_at}: {view.stopped_why}"))
    if view.work.repair_overdue:
        rows.append(("repairs", f"{view.work.repair_overdue} unanswered for too long"))
    if view.work.checkpoint_overdue:
        rows.append(("checkpoints", f"{view.work.checkpoint_overdue} jobs are overdue with theirs"))
    if view.interactive_touched:
        rows.append(("interactive", f"{view.interactive_touched} jobs were touched"))
    if not view.complete:
        rows.append(("counted", "the ledger is still being read back: counts are too low"))
    elif view.since > 1:
        rows.append(("counted", f"since {view.since}: what came before is archived"))
    return rows
