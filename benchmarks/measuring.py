"""What every measurement shares: rows, spreads, the machine, and how a module runs alone."""

import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeAlias

import click

from rackwright.bus.disk import fsync_p50_ms
from rackwright.bus.embedded import find_binary

LOOP_TURNS, LOOP_RUNS = 1_000_000, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure; `params` say under which circumstances."""

    name: str
    params: Mapping[str, Any]
    value: float
    unit: str

    def as_dict(self) -> dict[str, Any]:
        """As it stands in build/bench.json."""
        value = float(f"{self.value:.4g}")
        return {"name": self.name, "params": dict(self.params), "value": value, "unit": self.unit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How thorough: `quick` for a look in two minutes."""

    quick: bool = False
    seed: int = 1

    def pick(self, usual: int, quick: int) -> int:
        """A size."""
        return quick if self.quick else usual


Measure: TypeAlias = Callable[[Scale], Iterator[Row]]


def spread(
    stem: str, unit: str, values: Sequence[float], params: Mapping[str, Any]
) -> Iterator[Row]:
    """Median and 99th percentile as `<stem>_p50_<unit>` and `<stem>_p99_<unit>`."""
    cuts = quantiles(values, n=100, method="inclusive")
    told = {**params, "runs": len(values), "max": round(max(values), 3)}
    for name, value in (("p50", median(values)), ("p99", cuts[98])):
        yield Row(name=f"{stem}_{name}_{unit}", params=told, value=value, unit=unit)


@cache
def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    said = subprocess.run([find_binary(), "--version"], capture_output=True, text=True, check=True)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "nats_server": said.stdout.strip().rpartition(" ")[2].lstrip("v"),
    }


def load() -> float:
    """Runnable processes over the last minute: what else the machine was busy with."""
    return round(os.getloadavg()[0], 1)


def python_loop_ns() -> float:
    """Nanoseconds a turn of an empty loop, the best of some: how fast the machine is just now.

    A rented machine is not the same from one hour to the next; figures compare by this.
    """

    def turns() -> float:
        began = time.perf_counter()
        for _ in range(LOOP_TURNS):
            pass
        return time.perf_counter() - began

    return min(turns() for _ in range(LOOP_RUNS)) / LOOP_TURNS * 1e9


def fsync_now(directory: Path | None = None) -> float:
    """Median ms of an fsync, where a server's data would be."""
    where = directory if directory is not None else Path(tempfile.gettempdir())
    return fsync_p50_ms(where)


def alone(measure: Measure) -> None:
    """Run one module by itself: a row a line."""

    @click.command(help=measure.__doc__)
    @click.option("--quick", is_flag=True, help="Fewer and smaller.")
    @click.option("--seed", default=1, show_default=True)
    def command(quick: bool, seed: int) -> None:
        for row in measure(Scale(quick=quick, seed=seed)):
            click.echo(json.dumps(row.as_dict()))

    command()
