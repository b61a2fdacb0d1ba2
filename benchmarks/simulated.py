"""How fast the simulator runs: jobs and events a second, where the time goes, and what a whole run
of the promised size would take at that pace.

The load is ITP's (11 % of 140 racks: 1.63 million GPU-hours in 60 days, its sizes and lengths). A
few days are run and the time of a year is reckoned from those after the first; shares come from a
profiled run, which is slower by itself.
"""

import cProfile
import pstats
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring import Row, Scale, alone, load
from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.generator import ITP, generated
from rackwright.simulator.mixture import Habits, jobs
from rackwright.simulator.policies import POLICIES
from rackwright.simulator.running import Plan, run
from rackwright.simulator.workload import DAY

ITP_GPUS = 1_632_720 / (59.88 * 24)  # busy at any time, on average
YEAR_DAYS = 365.0
PARTS = {"policy": "handle", "fold": "fold", "accounts": "take"}
PLACES = {"policy": "machine.py", "fold": "fold/__init__.py", "accounts": "core/accounts.py"}


def measure(scale: Scale) -> Iterator[Row]:
    """Rows of the simulator's own speed."""
    days, first = scale.pick(6, 1), scale.pick(4, 1) / 4
    seconds, result = _run(140, days, scale.seed)
    begun, _ = _run(140, first, scale.seed)
    submitted, engine = result["jobs"]["submitted"], result["engine"]
    told = {"racks": 140, "days": days, "jobs": submitted, "load": load()}
    yield Row(
        name="simulated_events_per_s",
        params={**told, "memory_mb": engine["memory_mb"]},
        value=engine["events"] / seconds,
        unit="/s",
    )
    yield Row(name="simulated_jobs_per_s", params=told, value=submitted / seconds, unit="/s")
    yield Row(
        name="simulated_year_s",
        params={**told, "reckoned": True},
        value=begun + (seconds - begun) * (YEAR_DAYS - first) / (days - first),
        unit="s",
    )
    yield from _large(scale)
    yield from _shares(scale)


def _large(scale: Scale) -> Iterator[Row]:
    days = scale.pick(1, 1) / scale.pick(2, 10)
    seconds, result = _run(1400, days, scale.seed)
    submitted = result["jobs"]["submitted"]
    yield Row(
        name="simulated_100000_jobs_s",
        params={"racks": 1400, "jobs": submitted, "reckoned": True, "load": load()},
        value=100_000 * seconds / submitted,
        unit="s",
    )


def _run(racks: int, days: float, seed: int) -> tuple[float, dict[str, Any]]:
    """CPU seconds, and the result."""
    rows = generated(((ITP, 1.0),), load_gpus=ITP_GPUS * racks / 140, span_s=days * DAY, seed=seed)
    plan = Plan(
        racks=plain_racks(racks, 18, 4),
        failures=FailureModel.of(unavailable=0.002, repair_h=24.0, seed=seed),
        seed=seed,
        span_s=days * DAY,
    )
    began = time.process_time()
    made = run(POLICIES["rackwright"], jobs(rows, Habits(seed=seed)), plan)
    return time.process_time() - began, made.result


def _shares(scale: Scale) -> Iterator[Row]:
    profile = cProfile.Profile(time.process_time)
    days = 0.5
    seconds, _ = profile.runcall(_run, 140, days, scale.seed)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rest = 1.0
    for part, function in PARTS.items():
        spent = sum(
            entry[3]
            for (file, _, name), entry in stats.items()
            if name == function and file.endswith(PLACES[part])
        )
        share = spent / seconds
        rest -= share
        yield _share(part, share, days)
    yield _share("engine", max(0.0, rest), days)


def _share(part: str, share: float, days: float) -> Row:
    return Row(
        name=f"simulated_share_{part}",
        params={"racks": 140, "days": days, "profiled": True},
        value=100 * share,
        unit="%",
    )


if __name__ == "__main__":
    alone(measure)
