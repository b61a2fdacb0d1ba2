"""Runs of the study side by side, each in a process: what has a file is not run again."""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import click

from benchmarks.study.grid import Grid, Point, arrivals, plan
from rackwright.simulator.policies import POLICIES
from rackwright.simulator.running import as_json, run
from rackwright.simulator.stopping import stopping


def run_missing(grid: Grid, root: Path, end: float | None, side: int = 1) -> tuple[int, int]:
    """Run what has no file yet, `side` runs side by side, and begin none after `end` (monotonic);
    how many files there are, of how many."""
    runs = list(grid.runs())
    missing = [one for one in runs if not grid.file(root, *one).exists()]
    going: set[Future[str]] = set()
    with ProcessPoolExecutor(max_workers=side, mp_context=get_context("spawn")) as pool:
        while missing or going:
            try:
                while missing and len(going) < side and not _late(end):
                    going.add(pool.submit(run_one, grid, root, *missing.pop(0)))
                if not going:
                    break
                done, going = wait(going, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                missing.clear()  # those that run were told as well, and end
                continue
            for one in done:
                click.echo(one.result(), err=True)
    return sum(grid.file(root, *one).exists() for one in runs), len(runs)


def _late(end: float | None) -> bool:
    return end is not None and time.monotonic() >= end


def run_one(grid: Grid, root: Path, point: Point, seed: int, policy: str) -> str:
    """Run this one and keep its result in its file; a line that says so."""
    path = grid.file(root, point, seed, policy)
    jobs, how = arrivals(grid.cell, point, seed), plan(grid.cell, point, seed)
    with stopping() as stop:
        made = run(POLICIES[policy], jobs, how, stop=stop)
    work, seconds = made.result["work_goodput"], made.result["cpu_s"]
    told = f"{point.name} seed {seed} {policy}: work {work:.2%}, {seconds:.0f} s"
    if made.partial:
        return f"{told}, stopped: not kept"
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(as_json(made.result), encoding="utf-8")
    half.replace(path)
    return told
