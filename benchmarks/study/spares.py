"""Where spares are kept and what they are lent for: two in every rack, only beside protected
slices, lent to small jobs, and each of these with defragmentation; on the same arrivals and faults.

`python -m benchmarks.study.spares` runs what is not run yet, then writes the page.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks.study.differences import Difference, paired
from benchmarks.study.load import cut
from benchmarks.study.written import kept
from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.generator import ITP, KALOS, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import Setup
from rackwright.simulator.running import Plan, as_json, run
from rackwright.simulator.workload import DAY, SimJob

PAGE = Path("docs/studies/spares.md")
NICE = 19
RACKS, NODES, GPUS = 12, 18, 4
DAYS, WARM_DAYS, LONGEST_DAYS = 1.5, 0.375, 0.375
LOADS = (0.78, 0.86)
LARGE, SMALL, SMALLER = 0.7, 0.3, 8
BASE = "beside"
SETUPS = {
    one.name: one
    for one in (
        Setup(
            name="everywhere",
            text="two in every rack, not lent; no defragmentation",
            settings={"lend_spares": False, "spares_idle": 2},
            defrag=False,
        ),
        Setup(
            name="beside",
            text="only beside protected slices, not lent; no defragmentation",
            settings={"lend_spares": False},
            defrag=False,
        ),
        Setup(name="lent", text="beside protected slices, lent to small jobs", defrag=False),
        Setup(
            name="beside-defrag",
            text="beside protected slices, not lent; with defragmentation",
            settings={"lend_spares": False},
        ),
        Setup(name="lent-defrag", text="lent, with defragmentation: the default"),
    )
}


def _hours(found: Mapping[str, float]) -> float | None:
    value = found.get("p90")
    return None if value is None else value / 3600.0


FIGURES = {
    "work done, % of installed": lambda one: 100.0 * one["work_goodput"],
    "idle while somebody waits, % of installed": lambda one: 100.0 * one["idle_while_waiting"],
    "wait of jobs over 64 GPUs, p90, h": lambda one: _hours(one["wait_s"].get("over 64 GPUs", {})),
    "wait of all, p90, h": lambda one: _hours(one["wait_s"].get("all", {})),
    "GPUs queued, % of installed": lambda one: (
        100.0 * one["queued_gpus_mean"] / (RACKS * NODES * GPUS)
    ),
    "lost, % of installed": lambda one: 100.0 * one["gpu_s"]["lost"] / one["installed_gpu_s"],
}


def arrivals(load: float, seed: int) -> Iterator[SimJob]:
    """Jobs of one run: the work offered is exactly the load."""
    rows = generated(
        ((cut(KALOS, SMALLER, LONGEST_DAYS), LARGE), (cut(ITP, 1, LONGEST_DAYS), SMALL)),
        load_gpus=load * RACKS * NODES * GPUS,
        span_s=DAYS * DAY,
        seed=seed,
    )
    return jobs(rows, Habits(seed=seed, gpus_per_node=GPUS))


def file(root: Path, name: str, load: float, seed: int) -> Path:
    """Where the result of a run is."""
    return root / "spares" / f"load{load:g}" / f"{name}-{seed}.json"


def run_missing(root: Path, seeds: int, end: float | None) -> None:
    """Every setup of a seed and a load before the next, so that pairs are whole."""
    for seed in range(1, seeds + 1):
        for load in LOADS:
            for name, setup in SETUPS.items():
                path = file(root, name, load, seed)
                if path.exists():
                    continue
                if end is not None and time.monotonic() >= end:
                    return
                plan = Plan(
                    racks=plain_racks(RACKS, NODES, GPUS),
                    failures=FailureModel.of(unavailable=0.006, repair_h=24.0, seed=seed),
                    seed=seed,
                    span_s=DAYS * DAY,
                    warm_s=WARM_DAYS * DAY,
                )
                made = run(setup, arrivals(load, seed), plan)
                if made.partial:
                    return
                path.parent.mkdir(parents=True, exist_ok=True)
                half = path.with_suffix(".part")
                half.write_text(as_json(made.result), encoding="utf-8")
                half.replace(path)
                click.echo(f"{load:g} seed {seed} {name}: {made.result['cpu_s']:.0f} s", err=True)


def page(root: Path, seeds: int, where: Path = PAGE) -> str:
    """The page, from what is there; what somebody wrote into the one at `where` is kept."""
    return "\n".join(_lines(root, seeds, where)) + "\n"


def _lines(root: Path, seeds: int, where: Path) -> Iterator[str]:
    yield "# Where spares are kept, and what else they may do"
    yield ""
    yield (
        f"Written by `make study-spares` ({RACKS} racks of {NODES} nodes with {GPUS} GPUs,"
        f" {DAYS:g} days of which {DAYS - WARM_DAYS:g} are counted, 0.6 % of nodes down and repairs"
        " of a day). Kalos-like jobs are 70 % of the work, an eighth of their published size"
        " (8 to 128 GPUs), as the cell is small; ITP-like ones are 30 %; all are cut at about"
        f" {24 * LONGEST_DAYS:g} hours, so that a run of days is a steady state. The work offered"
        " is exactly the load and the same for every setup, as are the faults."
    )
    there = sum(
        file(root, name, load, seed).exists()
        for name in SETUPS
        for load in LOADS
        for seed in range(1, seeds + 1)
    )
    planned = len(SETUPS) * len(LOADS) * seeds
    yield ""
    yield f"**{there} of {planned} runs are there.** Where a row has one seed it decides nothing."
    yield from kept(where)
    for load in LOADS:
        yield ""
        yield f"## Load {load:g}"
        yield ""
        yield "| | seeds | " + " | ".join(FIGURES) + " |"
        yield "|---" * (len(FIGURES) + 2) + "|"
        yield from _rows(root, load, seeds)
    yield ""
    yield (
        f"Levels are means over the seeds; in brackets the difference from `{BASE}`, paired by"
        " seed, with a 95 % interval (Student's t), in bold where it leaves out zero."
    )
    yield ""
    yield from (f"- `{name}`: {setup.text}" for name, setup in SETUPS.items())


def _rows(root: Path, load: float, seeds: int) -> Iterator[str]:
    base = read(root, BASE, load, seeds)
    for name in SETUPS:
        found = read(root, name, load, seeds)
        pairs = sorted(set(found) & set(base))
        if not pairs:
            continue
        cells = [_told(found, base, pairs, figure) for figure in FIGURES.values()]
        yield f"| `{name}` | {len(pairs)} | " + " | ".join(cells) + " |"


def read(root: Path, name: str, load: float, seeds: int) -> dict[int, Mapping[str, Any]]:
    """Results that are there, by seed."""
    paths = {seed: file(root, name, load, seed) for seed in range(1, seeds + 1)}
    return {
        seed: json.loads(path.read_text(encoding="utf-8"))
        for seed, path in paths.items()
        if path.exists()
    }


def _told(found: Mapping[int, Any], base: Mapping[int, Any], seeds: list[int], figure: Any) -> str:
    pairs = [(figure(found[seed]), figure(base[seed])) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "-"
    mean = sum(a for a, _ in known) / len(known)
    if found is base or all(a == b for a, b in known):
        return f"{mean:.2f}"
    return f"{mean:.2f} ({_difference(paired([a for a, _ in known], [b for _, b in known]))})"


def _difference(found: Difference) -> str:
    if found.half is None:
        return f"{found.mean:+.2f}"
    text = f"{found.mean:+.2f} ± {found.half:.2f}"
    return f"**{text}**" if found.clear else text


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--minutes", type=float, help="Begin no further run after that long.")
@click.option("--results", type=click.Path(path_type=Path), default="build/study")
@click.option("--page", "where", type=click.Path(path_type=Path), default=PAGE, show_default=True)
def study(seeds: int, minutes: float | None, results: Path, where: Path) -> None:
    """Run the study of spares, or a part of it."""
    os.nice(NICE)
    run_missing(results, seeds, None if minutes is None else time.monotonic() + 60 * minutes)
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(page(results, seeds, where), encoding="utf-8")


if __name__ == "__main__":
    study()
