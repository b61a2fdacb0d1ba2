"""`python -m benchmarks.study`: run what is not run yet, then write the page."""

import os
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.study.going import run_missing
from benchmarks.study.grid import LOADS, REPAIR_H, SEEDS, UNAVAILABLE, Cell, Grid
from benchmarks.study.page import page
from rackwright.simulator.policies import POLICIES

PAGE = Path("docs/studies/policies.md")
NICE = 10


def _floats(ctx: click.Context, param: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: numbers with commas between") from error


def _names(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(value.split(","))
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; one of {', '.join(POLICIES)}")
    return names


def _told(values: tuple[Any, ...]) -> str:
    return ",".join(str(value) for value in values)


@click.command()
@click.option("--racks", type=int, default=Cell().racks, show_default=True)
@click.option("--days", type=float, default=Cell().days, show_default=True)
@click.option("--warm-days", type=float, default=Cell().warm_days, show_default=True)
@click.option("--smaller", type=int, default=1, show_default=True, help="Divides large jobs.")
@click.option("--longest-days", type=float, help="No job takes longer.")
@click.option("--loads", callback=_floats, default=_told(LOADS), show_default=True)
@click.option("--unavailable", callback=_floats, default=_told(UNAVAILABLE), show_default=True)
@click.option("--repair-h", callback=_floats, default=_told(REPAIR_H), show_default=True)
@click.option("--star", is_flag=True, help="Vary one thing at a time about the middle setting.")
@click.option("--seeds", type=int, default=len(SEEDS), show_default=True, help="How many.")
@click.option("--policies", callback=_names, default=_told(tuple(POLICIES)), show_default=True)
@click.option("--jobs", type=click.IntRange(1, 256), default=1, help="Runs side by side.")
@click.option("--minutes", type=float, help="Begin no further run after that long.")
@click.option("--results", type=click.Path(path_type=Path), default="build/study")
@click.option("--page", "where", type=click.Path(path_type=Path), default=PAGE, show_default=True)
def study(minutes: float | None, results: Path, where: Path, seeds: int, **options: Any) -> None:
    """Run the study of policies, or a part of it."""
    of_cell = ("racks", "days", "warm_days", "smaller", "longest_days")
    cell = Cell(**{name: options[name] for name in of_cell})
    grid = Grid(
        cell=cell,
        loads=options["loads"],
        unavailable=options["unavailable"],
        repair_h=options["repair_h"],
        seeds=tuple(range(1, seeds + 1)),
        policies=options["policies"],
        star=options["star"],
    )
    os.nice(NICE)
    end = None if minutes is None else time.monotonic() + 60 * minutes
    done, everything = run_missing(grid, results, end, options["jobs"])
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(page(grid, results, where), encoding="utf-8")
    click.echo(f"{done} of {everything} runs are there; {where}")


if __name__ == "__main__":
    study()
