"""A comparison of policies as one HTML page, with its pictures inside, and as JSON beside it."""

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rackwright.simulator.metrics import Happening
from rackwright.simulator.running import Outcome, as_json
from rackwright.simulator.workload import DAY, HOUR

STATE_COLOURS = {
    "useful": "#1f5fa8",
    "lent_useful": "#5aa9e6",
    "lost": "#7a1f1f",
    "restarting": "#f2c14e",
    "stalled": "#d1495b",
    "spare": "#6fae84",
    "fragment": "#b4bac1",
    "whole_free": "#e3e8ec",
    "held": "#9d8ec7",
    "draining": "#f78154",
    "cleaning": "#e0b38a",
    "probation": "#c9ada7",
    "suspected": "#8d6a9f",
    "down_node": "#2b2b2b",
    "down_rack": "#555555",
    "maintenance": "#888888",
}
COLOURS = ("#1f5fa8", "#d1495b", "#2a9d5c", "#e07a00", "#7b4fa3", "#555555", "#00a6a6", "#a8741f")
LINES = ("-", "--", "-.", ":")  # lines of policies that do the same lie upon each other
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rackwright simulation</title><link rel="icon" href="data:,">
<style>
body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;padding:0 1em;max-width:1100px;
color:#222;background:#fff}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:1em 0}
td,th{padding:3px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:#fff}
.events td,.events th{text-align:left;white-space:normal}
img{display:block;width:100%;min-width:680px}
.bad{background:#fde8e8;padding:.6em}
small{color:#595959}
summary{padding:.4em 0;cursor:pointer}
</style>"""
TIMELINE = 400  # lines of each policy that are shown
NOTES = (
    "Placer, healer and defragmenter are the machines of a living cell on the same fold; nodes,"
    " workers and what a monitor would observe are simulated.",
    "slurm-block-like and kueue-like are stand-ins with the named rule on this cell's placer, not"
    " those schedulers.",
    "Speed is a model calibrated to one published pair (1.59 s scattered, 1.39 s by rack, 512"
    " GPUs), habits of owners and failures are assumptions unless a source is named.",
)


class NoPlots(Exception):
    """The plotting library is not installed."""


def write(
    outcomes: Sequence[Outcome], about: dict[str, Any], out: Path, *, not_run: Sequence[str] = ()
) -> None:
    """`results.json`, `events.jsonl` of each policy, and `report.html`. `not_run`: policies that
    were to be compared too. Raises NoPlots, OSError."""
    out.mkdir(parents=True, exist_ok=True)
    results = [outcome.result for outcome in outcomes]
    partial = bool(not_run) or any(outcome.partial for outcome in outcomes)
    whole = {"about": about, "partial": partial, "not_run": [*not_run], "policies": results}
    (out / "results.json").write_text(as_json(whole) + "\n", encoding="utf-8")
    for outcome in outcomes:
        path = out / f"events-{outcome.setup.name}.jsonl"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(_line(one) + "\n" for one in outcome.happenings)
    (out / "report.html").write_text(page(outcomes, about, not_run), encoding="utf-8")


def _line(one: Happening) -> str:
    import json

    return json.dumps({"at": one.at, "kind": one.kind, "job": one.job, "text": one.text})


def page(outcomes: Sequence[Outcome], about: dict[str, Any], not_run: Sequence[str]) -> str:
    """The page. Raises NoPlots."""
    parts = [HEAD, "<h1>Simulation of policies</h1>"]
    parts += _partial(outcomes, not_run)
    told = ", ".join(f"{key}: {_plain(value)}" for key, value in about.items())
    parts.append(f"<p><small>{escape(told)}</small></p>")
    parts += [f"<p><small>{escape(note)}</small></p>" for note in NOTES]
    parts.append(_table(outcomes))
    pictures = (("GPU-time by state", _states), ("Waiting", _queue), ("Fragmentation", _broken))
    for title, draw in pictures:
        parts.append(f"<h2>{title}</h2>{draw(outcomes)}")
    parts.append("<h2>Events</h2>")
    parts += [_timeline(outcome) for outcome in outcomes]
    return "\n".join(parts)


def what_is_missing(outcomes: Sequence[Outcome], not_run: Sequence[str]) -> str:
    """Which runs were stopped when, and what was not run; empty if nothing is missing."""
    missing = [
        f"{one.setup.name} was stopped after {one.result['seconds'] / DAY:.2f} days"
        for one in outcomes
        if one.partial
    ]
    if not_run:
        missing.append(f"not run: {', '.join(not_run)}")
    return "; ".join(missing)


def _partial(outcomes: Sequence[Outcome], not_run: Sequence[str]) -> list[str]:
    missing = escape(what_is_missing(outcomes, not_run))
    return [f"<p class='bad'><b>Partial:</b> {missing}.</p>"] if missing else []


def _plain(value: object) -> str:
    """A value of the settings as a person would write it."""
    if isinstance(value, dict):
        return " and ".join(f"{name} {share:g}" for name, share in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(outcomes: Sequence[Outcome]) -> str:
    """Policies from left to right: there are fewer of them than figures."""
    rows = [row_of(outcome.result) for outcome in outcomes]
    lines = "".join(
        f"<tr><t{kind}>{escape(title if title != 'policy' else '')}</t{kind}>"
        + "".join(f"<t{kind}>{escape(row[title])}</t{kind}>" for row in rows)
        + "</tr>"
        for title in rows[0]
        for kind in ("h" if title == "policy" else "d",)
    )
    return f"<div class='wide'><table>{lines}</table></div>"


def row_of(result: dict[str, Any]) -> dict[str, str]:
    """The figures of one policy that are compared at a glance."""
    waits, jobs = result["wait_s"].get("all", {}), result["jobs"]
    recovery, defrag = result["recovery"], result["defragmentation"]
    return {
        "policy": result["policy"],
        "work done": f"{result['work_goodput']:.1%}",
        "goodput": f"{result['goodput']:.1%}",
        "utilisation": f"{result['utilisation']:.1%}",
        "of it useful": f"{result['training_goodput']:.1%}",
        "days": f"{result['seconds'] / DAY:.2f}",
        "submitted": str(jobs["submitted"]),
        "rejected": str(jobs.get("rejected", 0)),
        "finished": str(jobs.get("finished", 0)),
        "never placed": str(jobs["never_placed"]),
        "wait p50": _hours(waits.get("p50")),
        "wait p90": _hours(waits.get("p90")),
        "wait p99": _hours(waits.get("p99")),
        "queued GPUs": f"{result['queued_gpus_mean']:,.0f}",
        "swaps": str(recovery["swaps"]),
        "moves": str(recovery["moves"]),
        "requeues": str(recovery["requeues"]),
        "plans": str(defrag["plans"]),
        "interactive touched": str(result["interactive_touched"]),
        "groups across racks": str(result["cross_rack_slices"]),
        "fragmentation": f"{result['fragmentation_mean']:.2f}",
    }


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / HOUR:.2f} h"


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoPlots("reports need matplotlib: pip install 'rackwright[plots]'") from error
    return Figure(figsize=(width, height))


def _image(figure: Any, alt: str) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130, bbox_inches="tight")
    source = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    return f"<div class='wide'><img alt='{escape(alt)}' src='{source}'></div>"


def _states(outcomes: Sequence[Outcome]) -> str:
    figure = _figure(10, 0.5 * len(outcomes) + 1.5)
    axes = figure.add_subplot()
    names = [outcome.setup.name for outcome in outcomes]
    left = [0.0] * len(outcomes)
    for state, colour in STATE_COLOURS.items():
        shares = [
            100 * one.result["gpu_s"][state] / (one.result["installed_gpu_s"] or 1.0)
            for one in outcomes
        ]
        label = state.replace("_", " ") if any(shares) else None
        axes.barh(names, shares, left=left, color=colour, label=label, edgecolor="w", linewidth=0.3)
        left = [begin + share for begin, share in zip(left, shares, strict=True)]
    axes.set_xlabel("% of installed GPU-time")
    axes.set_xlim(0, 100)
    axes.invert_yaxis()
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", frameon=False, fontsize=9)
    return _image(figure, "Share of installed GPU-time in each state, by policy")


def _over_time(outcomes: Sequence[Outcome], what: str, label: str) -> str:
    figure = _figure(10, 2.8)
    axes = figure.add_subplot()
    for place, outcome in enumerate(outcomes):
        samples = outcome.samples
        axes.plot(
            [one.at / DAY for one in samples],
            [getattr(one, what) for one in samples],
            color=COLOURS[place % len(COLOURS)],
            linestyle=LINES[place % len(LINES)],
            linewidth=1.3,
            label=outcome.setup.name,
        )
    axes.set_xlabel("days")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend(
        bbox_to_anchor=(0, 1.02), loc="lower left", frameon=False, fontsize=9, ncol=4, borderpad=0
    )
    return _image(figure, f"{label}, over days, by policy")


def _queue(outcomes: Sequence[Outcome]) -> str:
    return _over_time(outcomes, "queued_gpus", "GPUs asked for and not given")


def _broken(outcomes: Sequence[Outcome]) -> str:
    return _over_time(outcomes, "fragmentation", "fragmentation (0 to 1)") + _over_time(
        outcomes, "block_fragmentation", "Slurm's block metric"
    )


def _timeline(outcome: Outcome) -> str:
    shown = outcome.happenings[:TIMELINE]
    rows = "".join(
        f"<tr><td>{one.at / HOUR:.2f} h</td><td>{escape(one.kind)}</td>"
        f"<td>{escape(one.job)}</td><td>{escape(one.text)}</td></tr>"
        for one in shown
    )
    left = len(outcome.happenings) - len(shown)
    more = f"<p><small>{left} more in the file of events</small></p>" if left > 0 else ""
    name, count = escape(outcome.setup.name), len(outcome.happenings)
    head = "<tr><th>after</th><th>what</th><th>job</th><th></th></tr>"
    table = f"<div class='wide'><table class='events'>{head}{rows}</table></div>" if shown else ""
    return f"<details><summary>{name}: {count} events</summary>{table}{more}</details>"
