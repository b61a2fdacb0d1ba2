"""What the study runs: a grid of settings, and the file of each run."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.study.load import cut
from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.generator import ITP, KALOS, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import POLICIES
from rackwright.simulator.running import Plan
from rackwright.simulator.workload import DAY, SimJob

LARGE, SMALL = 0.7, 0.3  # shares of the work: Kalos-like and ITP-like jobs
LOADS = (0.7, 0.8, 0.9)
UNAVAILABLE = (0.005, 0.01, 0.02, 0.03, 0.05)
REPAIR_H = (4.0, 24.0, 72.0)
SEEDS = tuple(range(1, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting of the world, the same for every policy."""

    load: float
    unavailable: float
    repair_h: float

    @property
    def name(self) -> str:
        """For files and tables."""
        return f"load{self.load:g}-down{100 * self.unavailable:g}-repair{self.repair_h:g}h"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The machine and the time that is simulated; the first `warm_days` are not counted.

    A cell smaller than that of the whole study has large jobs `smaller` times smaller, and a
    shorter time none longer than `longest_days`.
    """

    racks: int = 140
    nodes: int = 18
    gpus: int = 4
    days: float = 16.0
    warm_days: float = 4.0
    smaller: int = 1
    longest_days: float | None = None

    @property
    def name(self) -> str:
        """For directories."""
        name = f"{self.racks}x{self.nodes}x{self.gpus}-{self.days:g}d"
        if self.smaller > 1:
            name += f"-by{self.smaller}"
        return name if self.longest_days is None else f"{name}-to{self.longest_days:g}d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """All that is to be run. `star`: only settings that differ from the middle one in one thing."""

    cell: Cell = Cell()
    loads: tuple[float, ...] = LOADS
    unavailable: tuple[float, ...] = UNAVAILABLE
    repair_h: tuple[float, ...] = REPAIR_H
    seeds: tuple[int, ...] = SEEDS
    policies: tuple[str, ...] = tuple(POLICIES)
    star: bool = False

    def points(self) -> list[Point]:
        """Settings, in order."""
        factors = (self.loads, self.unavailable, self.repair_h)
        middle = tuple(values[len(values) // 2] for values in factors)
        return [
            Point(load=load, unavailable=share, repair_h=hours)
            for load, share, hours in product(*factors)
            if not self.star or _apart((load, share, hours), middle) <= 1
        ]

    def runs(self) -> Iterator[tuple[Point, int, str]]:
        """Every run; all policies of a seed before the next seed, so that pairs are whole."""
        for seed in self.seeds:
            for point in self.points():
                for policy in self.policies:
                    yield point, seed, policy

    def file(self, root: Path, point: Point, seed: int, policy: str) -> Path:
        """Where the result of a run is."""
        return root / self.cell.name / point.name / f"{policy}-{seed}.json"


def _apart(one: tuple[float, ...], other: tuple[float, ...]) -> int:
    """In how many things two settings differ."""
    return sum(a != b for a, b in zip(one, other, strict=True))


def plan(cell: Cell, point: Point, seed: int) -> Plan:
    """The world of a run."""
    return Plan(
        racks=plain_racks(cell.racks, cell.nodes, cell.gpus),
        failures=FailureModel.of(unavailable=point.unavailable, repair_h=point.repair_h, seed=seed),
        seed=seed,
        span_s=cell.days * DAY,
        warm_s=cell.warm_days * DAY,
    )


def arrivals(cell: Cell, point: Point, seed: int) -> Iterator[SimJob]:
    """Its jobs: the work offered is exactly the load, whatever the seed."""
    installed = cell.racks * cell.nodes * cell.gpus
    rows = generated(
        (
            (cut(KALOS, cell.smaller, cell.longest_days), LARGE),
            (cut(ITP, 1, cell.longest_days), SMALL),
        ),
        load_gpus=point.load * installed,
        span_s=cell.days * DAY,
        seed=seed,
    )
    return jobs(rows, Habits(seed=seed, gpus_per_node=cell.gpus))
