"""The cell's metrics for people: a table per topic, one line for each metric and its labels."""

from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackwright.gateway.views import MetricValue, MetricView

PREFIX = "rackwright_"
TITLES = {
    "cell": "The cell now",
    "time": "What became of GPU time",
    "waiting": "What waits",
    "room": "Room, and where jobs sit",
    "spares": "Spares",
    "recovery": "Recovery",
    "defrag": "Defragmentation and evictions",
    "health": "Health",
    "system": "The ledger (each service's own are in its /metrics)",
}


def draw_metrics(metrics: tuple[MetricView, ...]) -> RenderableType:
    """By topic, in the order of the answer."""
    parts: list[RenderableType] = []
    for group, found in groupby(metrics, lambda one: one.group):
        parts += [Text(f"\n{TITLES.get(group, group)}", style="bold"), _table(list(found))]
    return Group(*parts)


def _table(metrics: list[MetricView]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_column(style="dim")
    for metric in metrics:
        name = metric.name.removeprefix(PREFIX)
        table.add_row(name, _values(metric), metric.text)
    return table


def _values(metric: MetricView) -> str:
    """All values; of those by labels only what is not nought."""
    told = [_one(metric, value) for value in metric.values if _counts(metric, value)]
    if metric.more:
        told.append(f"and {metric.more} more")
    return ", ".join(told) or ("none yet" if metric.kind == "histogram" else "none")


def _counts(metric: MetricView, value: MetricValue) -> bool:
    if metric.kind == "histogram":
        return bool(value.count)
    return bool(value.value) or not value.labels


def _one(metric: MetricView, value: MetricValue) -> str:
    labels = "/".join(text or "-" for text in value.labels.values())
    said = _spread(value) if value.count is not None else f"{value.value:.10g}"
    return f"{labels}: {said}" if labels else said


def _spread(value: MetricValue) -> str:
    bounds = "/".join(
        "-" if one is None else f"{one:g}" for one in (value.p50, value.p90, value.p99)
    )
    return f"{value.count} of mean {value.value:.4g}, p50/p90/p99 at most {bounds}"
