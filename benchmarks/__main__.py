"""`make bench`: every measurement, a table, and build/bench.json."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import click
import structlog
from rich.console import Console
from rich.table import Table

from benchmarks import contention, fold, placed, placement, simulated, swaps, workers
from benchmarks.measuring import Measure, Row, Scale, fsync_now, load, machine, python_loop_ns

TARGETS = {
    "placement_decision_p99_us at 140": "< 1000",
    "placement_decision_p99_us at 14000": "< 5000",
    "fold_entries_per_s": "> 50000",
    "simulated_year_s at 140": "< 120",
    "simulated_100000_jobs_s at 1400": "< 600",
    "placed_jobs_per_s": "> 500",
    "fault_to_swap_p50_ms": "< 10",
    "fault_to_swap_p99_ms": "< 30",
    "fault_to_swap_burst_p99_ms": "< 50",
    "restart_s": "< 2",
    "contention_place_p99_ms of 1": "< 16",
    "contention_place_p99_ms of 3": "< 52",
    "contention_swap_p50_ms of 1": "< 6.2",
    "contention_swap_p50_ms of 3": "< 14",
    "contention_swap_p99_ms of 1": "< 16",
    "contention_swap_p99_ms of 3": "< 36",
    "contention_burst_ms of 1": "< 110",
    "contention_burst_ms of 3": "< 250",
}
MEASURES: tuple[tuple[str, Measure], ...] = (
    ("placement", placement.measure),
    ("fold", fold.measure),
    ("simulated", simulated.measure),
    ("placed", placed.measure),
    ("swaps", swaps.measure),
    ("workers", workers.measure),
    ("contention", contention.measure),
)


def _machine(when: str) -> Iterator[Row]:
    params = {"load": load(), "when": when}
    yield Row(name="python_loop_ns", params=params, value=python_loop_ns(), unit="ns")
    yield Row(name="fsync_p50_ms", params=params, value=fsync_now(), unit="ms")


def _target(row: Row) -> str:
    of_size = f"{row.name} at {row.params.get('racks')}"
    of_copies = f"{row.name} of {row.params.get('replicas')}"
    return TARGETS.get(row.name) or TARGETS.get(of_size) or TARGETS.get(of_copies, "")


def _shown(row: Row) -> str:
    hidden = {"cores", "python", "nats_server", "seed"}
    return ", ".join(f"{key} {value}" for key, value in row.params.items() if key not in hidden)


@click.command()
@click.option("--quick", is_flag=True, help="Fewer and smaller, in two minutes.")
@click.option("--only", multiple=True, type=click.Choice([name for name, _ in MEASURES]))
@click.option("--seed", default=1, show_default=True)
@click.option("--out", default=Path("build/bench.json"), type=click.Path(path_type=Path))
def main(quick: bool, only: tuple[str, ...], seed: int, out: Path) -> None:
    """Measure, print a table with the targets beside, write the rows as JSON. Asserts nothing."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    console = Console()
    scale = Scale(quick=quick, seed=seed)
    rows = list(_machine("before"))
    for name, measure in MEASURES:
        if not only or name in only:
            with console.status(f"measuring {name}"):
                rows += measure(scale)
    rows += _machine("after")
    told = ", ".join(f"{key} {value}" for key, value in machine().items())
    table = Table("figure", "value", "target", "circumstances", title=f"On {told}; seed {seed}")
    for row in rows:
        table.add_row(row.name, f"{row.value:.4g} {row.unit}", _target(row), _shown(row))
    console.print(table)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([row.as_dict() for row in rows], indent=1) + "\n", encoding="utf-8")
    console.print(f"written to {out}")


if __name__ == "__main__":
    main()
