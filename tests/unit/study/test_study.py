"""The study: pairs and their intervals, and that it goes on where it was stopped."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.study.__main__ import study
from benchmarks.study.differences import paired
from benchmarks.study.going import run_missing
from benchmarks.study.grid import Cell, Grid, Point, arrivals
from benchmarks.study.page import page
from benchmarks.study.written import HEAD

SMALL = Grid(
    cell=Cell(racks=18, days=0.05, warm_days=0.01),
    loads=(0.5,),
    unavailable=(0.01,),
    repair_h=(24.0,),
    seeds=(1, 2),
    policies=("rackwright", "scatter"),
)


def test_pairs() -> None:
    """t of two degrees of freedom is 4.303; the standard deviation of 1, 2, 3 is 1."""
    found = paired([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half == pytest.approx(4.303 / 3**0.5)
    assert not found.clear
    assert paired([5.0, 5.1, 5.0], [1.0, 1.0, 1.0]).clear
    alone = paired([1.0], [3.0])
    assert (alone.mean, alone.half, alone.clear) == (-2.0, None, False)
    with pytest.raises(ValueError, match="no pairs"):
        paired([], [])
    with pytest.raises(ValueError, match="argument"):
        paired([1.0], [])


def test_the_whole_grid_is_what_was_asked_for() -> None:
    grid = Grid()
    assert len(grid.points()) == 45
    assert len(list(grid.runs())) == 45 * 10 * 8


def test_a_star_varies_one_thing_at_a_time() -> None:
    points = Grid(star=True).points()
    assert len(points) == 3 + 5 + 3 - 2
    middle = Point(load=0.8, unavailable=0.02, repair_h=24.0)
    for point in points:
        same = (point.load == middle.load) + (point.unavailable == middle.unavailable)
        assert same + (point.repair_h == middle.repair_h) >= 2


def test_all_settings_together_count_each_seed_once(tmp_path: Path) -> None:
    grid = replace(SMALL, loads=(0.4, 0.5))
    assert "## All settings" not in page(grid, tmp_path, tmp_path / "page.md")
    assert run_missing(grid, tmp_path, end=None) == (8, 8)
    text = page(grid, tmp_path, tmp_path / "page.md").split("## All settings together")[1]
    together, *points = text.split("## Load")
    (line,) = (line for line in together.splitlines() if line.startswith("| `rackwright` itself"))
    found = [
        float(one.split("| 2 | ")[1].split(" |")[0])
        for part in points
        for one in part.splitlines()
        if one.startswith("| `rackwright` itself")
    ]
    assert float(line.split("| 2 | ")[1].split(" |")[0]) == pytest.approx(sum(found) / 2, abs=0.011)


def test_it_goes_on_where_it_was_stopped_and_says_what_was_run(tmp_path: Path) -> None:
    first = next(iter(SMALL.runs()))
    assert run_missing(SMALL, tmp_path, end=0.0) == (0, 4)
    assert run_missing(SMALL, tmp_path, end=None, side=2) == (4, 4)
    kept = SMALL.file(tmp_path, *first)
    before = kept.stat().st_mtime_ns
    assert run_missing(SMALL, tmp_path, end=None) == (4, 4)
    assert kept.stat().st_mtime_ns == before
    where = tmp_path / "page.md"
    text = page(SMALL, tmp_path, where)
    assert "**This page shows 4 runs**: 18 racks" in text
    assert "| `scatter` | 2 | " in text
    head, tables = text.split("## Load", 1)
    where.write_text(f"{head}{HEAD}\n\nIt pays.\n\n## Load{tables}")
    again = page(SMALL, tmp_path, where)
    assert again.replace(f"{HEAD}\n\nIt pays.\n\n", "") == text


def test_a_smaller_cell_has_smaller_and_shorter_jobs() -> None:
    cell = Cell(racks=18, days=2.0, smaller=8, longest_days=0.5)
    assert (Cell(racks=18, days=2.0).name, cell.name) == ("18x18x4-2d", "18x18x4-2d-by8-to0.5d")
    point = Point(load=0.5, unavailable=0.01, repair_h=24.0)
    made = list(arrivals(cell, point, seed=1))
    assert max(job.gpus for job in made) == 128
    # All lengths are stretched a little, so that the work is exactly the load.
    assert max(job.work_s for job in made) == pytest.approx(0.5 * 86_400.0, rel=0.15)
    assert made == list(arrivals(cell, point, seed=1))


def test_an_unknown_policy() -> None:
    result = CliRunner().invoke(study, ["--policies", "best"])
    assert result.exit_code == 2
    assert "unknown: best" in result.output
