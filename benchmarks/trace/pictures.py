"""Pictures of a run: who had the GPUs, every node over time, the queue, and what happened when."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.trace.states import State
from benchmarks.trace.story import Happening, Story
from benchmarks.trace.workload import DAY

COLOURS = {
    State.LARGE: "#1f5fa8",
    State.SMALL: "#5aa9e6",
    State.LENT: "#9fd3c7",
    State.INTERACTIVE: "#7b4fa3",
    State.RESTARTING: "#f2c14e",
    State.STALLED: "#d1495b",
    State.DRAINING: "#f78154",
    State.SPARE: "#b8c4bb",
    State.FRAGMENT: "#dfe3e6",
    State.WHOLE_FREE: "#ffffff",
    State.PROBATION: "#c9ada7",
    State.DOWN: "#2b2b2b",
}
NAMES = {
    State.LARGE: "jobs of several slices",
    State.SMALL: "other batch jobs",
    State.LENT: "on lent spares",
    State.INTERACTIVE: "interactive",
    State.RESTARTING: "placed, not all ranks up",
    State.STALLED: "stalled by a lost node",
    State.DRAINING: "an old worker ends",
    State.SPARE: "spare",
    State.FRAGMENT: "free, no room for a slice",
    State.WHOLE_FREE: "free, room for a slice",
    State.PROBATION: "probation",
    State.DOWN: "out of service",
}
MARKS = {
    "slice.swapped": ("^", "#d1495b", "swap"),
    "slice.moved": ("o", "#111111", "slice move"),
    "defrag.planned": ("s", "#e07a00", "rack cleared for a blocked job"),
}
ROWS = (
    ("blocked", "blocked by topology"),
    ("defrag.planned", "defragmentation"),
    ("defrag.withdrawn", "withdrawn"),
    ("node.unfit", "node unfit"),
    ("node.failed", "node silent, fenced"),
    ("slice.swapped", "swap in the rack"),
    ("slice.moved", "slice moved"),
    ("job.requeued", "job requeued"),
)
WIDTH = 11.0  # inches
DPI = 100

mpl.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})


def draw(story: Story, speed: float, out: Path) -> list[Path]:
    """Draw all pictures into `out`; their paths."""
    day = speed / DAY
    made = {
        "occupancy.png": occupancy(story, day),
        "racks.png": rack_map(story, day),
        "queue.png": queue(story, day),
        "events.png": events(story, day),
    }
    for name, figure in made.items():
        figure.savefig(out / name, dpi=DPI, bbox_inches="tight")
    return [out / name for name in made]


def _days(story: Story, day: float) -> list[float]:
    return [(sample.at - story.begins) * day for sample in story.samples]


def _axes(height: float, story: Story, day: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_subplot()
    axes.set_xlabel("days of the trace")
    axes.set_xlim(0, (story.ends - story.begins) * day)
    return figure, axes


def occupancy(story: Story, day: float) -> Figure:
    """GPUs by state over time; they add up to what is installed."""
    figure, axes = _axes(3.6, story, day)
    series = [[sample.gpus.get(state, 0) for sample in story.samples] for state in State]
    axes.stackplot(
        _days(story, day),
        series,
        colors=[COLOURS[state] for state in State],
        labels=[NAMES[state] for state in State],
        linewidth=0,
    )
    axes.set_ylabel("GPUs")
    axes.set_ylim(0, sum(story.samples[0].gpus.values()))
    _legend(axes)
    return figure


def rack_map(story: Story, day: float) -> Figure:
    """Every node a line, racks from bottom to top, time to the right."""
    figure, axes = _axes(8.0, story, day)
    shown = np.array([list(sample.nodes) for sample in story.samples], dtype=np.uint8).T
    end = (story.ends - story.begins) * day
    axes.imshow(
        shown,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        cmap=ListedColormap([COLOURS[state] for state in State]),
        vmin=-0.5,
        vmax=len(State) - 0.5,
        extent=(0, end, 0, story.racks),
    )
    for rack in range(story.racks + 1):
        axes.axhline(rack, color="#888888", linewidth=0.3)
    for kind, (mark, colour, label) in MARKS.items():
        points = [
            ((one.at - story.begins) * day, rack + 0.5)
            for one in story.of_kind(kind)
            for rack in one.racks[:4]
        ]
        if points:
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, mark, color=colour, mec="white", mew=0.5, ms=5.5, label=label)
    axes.set_ylabel("racks of 18 nodes")
    _legend(axes, [Patch(facecolor=COLOURS[s], edgecolor="#999999", label=NAMES[s]) for s in State])
    return figure


def queue(story: Story, day: float) -> Figure:
    """GPUs and jobs that wait."""
    figure, axes = _axes(2.4, story, day)
    days = _days(story, day)
    axes.fill_between(
        days, [one.queued_gpus for one in story.samples], color="#b8c4d6", label="GPUs asked for"
    )
    axes.fill_between(
        days,
        [one.blocked_gpus for one in story.samples],
        color="#e07a00",
        label="of these, blocked by topology",
    )
    axes.set_ylabel("GPUs waiting")
    other = axes.twinx()
    other.plot(days, [one.queued for one in story.samples], color="#111111", linewidth=0.6)
    other.set_ylabel("jobs waiting (line)")
    _legend(axes)
    return figure


def events(story: Story, day: float) -> Figure:
    """What happened, a row for each kind."""
    figure, axes = _axes(2.6, story, day)
    rows: list[list[float]] = []
    for kind, _ in ROWS:
        found: list[Happening] = story.of_kind(kind)
        rows.append([(one.at - story.begins) * day for one in found])
    axes.eventplot(rows[::-1], linelengths=0.7, linewidths=1.0, colors="#1f5fa8")
    labels = [f"{label} ({len(row)})" for (_, label), row in zip(ROWS, rows, strict=True)]
    axes.set_yticks(range(len(ROWS)), labels[::-1])
    return figure


def _legend(axes: Axes, handles: list[Patch] | None = None) -> None:
    if handles is not None:
        marks, labels = axes.get_legend_handles_labels()
        everything = [*marks, *handles]
        names = [*labels, *(str(patch.get_label()) for patch in handles)]
        axes.legend(everything, names, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        return
    axes.legend(loc="upper left", bbox_to_anchor=(1.06, 1.0), frameon=False)
