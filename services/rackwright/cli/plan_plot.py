"""Usable share against unavailability, a line for each slice size."""

from pathlib import Path

from rackwright.core.policy.capacity import mean_of_rack
from rackwright.core.policy.planning import Answer
from rackwright.core.policy.rackfaults import rack_up

POINTS = 200
LEAST_SPAN = 0.05  # of unavailability that is drawn
COLOURS = ("#1f5fa8", "#d1495b", "#2a9d5c", "#e07a00", "#7b4fa3", "#555555", "#00a6a6")


class NoPlots(Exception):
    """The plotting library is not installed."""


def draw(found: Answer, path: Path) -> None:
    """Write the picture; its kind is the name's ending. Raises NoPlots, OSError."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoPlots("plots need matplotlib: pip install 'rackwright[plots]'") from error

    question = found.question
    nodes, up = question.cell.nodes_per_rack, rack_up(question.faults)
    span = min(1.0, max(LEAST_SPAN, 2 * question.unavailable))
    points = [span * step / POINTS for step in range(POINTS + 1)]
    figure = Figure(figsize=(8, 4.5))
    axes = figure.add_subplot()
    for place, line in enumerate(found.sizes):
        size = line.slice_nodes
        axes.plot(
            [100 * at for at in points],
            [100 * up * mean_of_rack(nodes, size, at) / nodes for at in points],
            color=COLOURS[place % len(COLOURS)],
            linewidth=2.4 if size == found.recommendation.slice_nodes else 1.2,
            label=f"slices of {size}",
        )
    axes.axvline(100 * question.unavailable, color="#888888", linewidth=0.8, linestyle="--")
    axes.set_xlabel("a node is away, % of the time (dashed: this cell)")
    axes.set_ylabel("nodes usable in whole slices, %")
    axes.set_xlim(0, 100 * span)
    axes.set_title(
        f"{question.cell.racks} racks of {nodes} nodes; independent failures, exact", fontsize=10
    )
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120, bbox_inches="tight")
