"""The page of the study: what was run, and each policy against `rackwright`, point by point."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.study.differences import FIGURES, Difference, paired
from benchmarks.study.grid import LOADS, REPAIR_H, UNAVAILABLE, Cell, Grid, Point
from benchmarks.study.written import kept
from rackwright.simulator.policies import POLICIES

BASE = "rackwright"
Results = dict[int, Mapping[str, Any]]
Means = Mapping[int, Mapping[str, float | None]]


def read(grid: Grid, root: Path, point: Point, policy: str) -> Results:
    """The results that are there, by seed."""
    found: Results = {}
    for seed in grid.seeds:
        path = grid.file(root, point, seed, policy)
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            counted = result["seconds"] - result["warm_s"]
            found[seed] = {**result, "counted_s": counted}
    return found


def page(grid: Grid, root: Path, where: Path) -> str:
    """All of it, as Markdown; what somebody wrote into the page at `where` is kept."""
    return "\n".join(_lines(grid, root, where)) + "\n"


def _lines(grid: Grid, root: Path, where: Path) -> Iterator[str]:
    cell = grid.cell
    planned = len(LOADS) * len(UNAVAILABLE) * len(REPAIR_H)
    runs = sum(grid.file(root, *one).exists() for one in grid.runs())
    yield "# Policies compared"
    yield ""
    yield (
        "Written by `make study`; every run's result is kept, and the command goes on where it was"
        " stopped. The whole study has 140 racks, 16 days of which 12 are counted, loads 0.7, 0.8"
        " and 0.9, 0.5 to 5 % of nodes down, repairs of 4, 24 and 72 h, 10 seeds and 8 policies"
        f" ({planned * 10 * 8:,} runs)."
    )
    yield ""
    yield (
        f"**This page shows {runs} runs**: {cell.racks} racks of {cell.nodes} nodes,"
        f" {cell.days:g} days of which {cell.days - cell.warm_days:g} are counted,"
        f" {len(grid.points())} of {planned} settings"
        f"{', one thing varied at a time' if grid.star else ''}.{_smaller(cell)}"
    )
    yield ""
    yield (
        "Kalos-like large jobs are 70 % of the work and ITP-like small ones 30 %. For one seed"
        " every policy sees the same arrivals and the same faults, and the work offered is exactly"
        " the load. Differences are the policy minus `rackwright`, paired by seed, with 95 %"
        " intervals; those in bold leave out zero. What is modelled is in"
        " [simulation.md](../simulation.md)."
    )
    yield from kept(where)
    if len(grid.points()) > 1:
        yield from _together(grid, root)
    for point in grid.points():
        yield from _point(grid, root, point)
    yield ""
    yield "Policies:"
    yield ""
    yield from (f"- `{name}`: {POLICIES[name].text}" for name in grid.policies)


def _smaller(cell: Cell) -> str:
    """How its jobs differ from those of the whole study."""
    text = f" Large jobs have 1/{cell.smaller} of their size." if cell.smaller > 1 else ""
    if cell.longest_days is None:
        return text
    return f"{text} Work is cut at about {24 * cell.longest_days:g} hours."


def _together(grid: Grid, root: Path) -> Iterator[str]:
    """Each seed counts once, with the mean over all settings: they share what chance it brings."""
    base = _means(grid, root, BASE)
    if not base:
        return
    yield ""
    yield "## All settings together"
    yield ""
    yield (
        f"The mean over the {len(grid.points())} settings, seed by seed; only seeds for which a"
        " policy has run in all of them."
    )
    yield ""
    yield from _head()
    yield f"| `{BASE}` itself | {len(base)} | " + " | ".join(_mean_level(base)) + " |"
    for policy in grid.policies:
        means = _means(grid, root, policy)
        seeds = sorted(set(means) & set(base))
        if policy != BASE and seeds:
            cells = [_mean_cell(means, base, seeds, name) for name in FIGURES]
            yield f"| `{policy}` | {len(seeds)} | " + " | ".join(cells) + " |"


def _means(grid: Grid, root: Path, policy: str) -> dict[int, dict[str, float | None]]:
    """By seed each figure's mean over the settings, where all have run."""
    found = [read(grid, root, point, policy) for point in grid.points()]
    return {
        seed: {name: _mean(name, [one[seed] for one in found]) for name in FIGURES}
        for seed in grid.seeds
        if all(seed in one for one in found)
    }


def _mean(name: str, results: Sequence[Mapping[str, Any]]) -> float | None:
    """None where a result has no such figure."""
    figure, _, scale = FIGURES[name]
    values = [value for one in results if (value := figure(one)) is not None]
    return scale * fmean(values) if len(values) == len(results) else None


def _mean_level(means: Means) -> Iterator[str]:
    for name, (_, form, _) in FIGURES.items():
        values = [value for one in means.values() if (value := one[name]) is not None]
        yield format(fmean(values), form.removeprefix("+")) if values else "-"


def _mean_cell(means: Means, base: Means, seeds: Sequence[int], name: str) -> str:
    pairs = [(means[seed][name], base[seed][name]) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "-"
    return _told(paired([a for a, _ in known], [b for _, b in known]), FIGURES[name][1])


def _head() -> Iterator[str]:
    yield "| | pairs | " + " | ".join(FIGURES) + " |"
    yield "|---" * (len(FIGURES) + 2) + "|"


def _point(grid: Grid, root: Path, point: Point) -> Iterator[str]:
    base = read(grid, root, point, BASE)
    if not base:
        return
    yield ""
    yield (
        f"## Load {point.load:g}, {100 * point.unavailable:g} % of nodes down, repairs of"
        f" {point.repair_h:g} h"
    )
    yield ""
    yield from _head()
    yield f"| `{BASE}` itself | {len(base)} | " + " | ".join(_level(base)) + " |"
    for policy in grid.policies:
        results = read(grid, root, point, policy)
        seeds = sorted(set(results) & set(base))
        if policy != BASE and seeds:
            cells = [_cell(results, base, seeds, name) for name in FIGURES]
            yield f"| `{policy}` | {len(seeds)} | " + " | ".join(cells) + " |"


def _level(base: Results) -> Iterator[str]:
    for figure, form, scale in FIGURES.values():
        values = [value for one in base.values() if (value := figure(one)) is not None]
        mean = scale * sum(values) / len(values) if values else None
        yield "-" if mean is None else format(mean, form.removeprefix("+"))


def _cell(results: Results, base: Results, seeds: list[int], name: str) -> str:
    figure, form, scale = FIGURES[name]
    pairs = [(figure(results[seed]), figure(base[seed])) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "-"
    return _told(paired([scale * a for a, _ in known], [scale * b for _, b in known]), form)


def _told(found: Difference, form: str) -> str:
    if found.half is None:
        return f"{found.mean:{form}} (one pair)"
    text = f"{found.mean:{form}} ± {found.half:{form.removeprefix('+')}}"
    return f"**{text}**" if found.clear else text
