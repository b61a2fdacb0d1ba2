"""How long one placement decision takes, by size of the cell: 70 % full, mixed sizes."""

import random
import time
from collections.abc import Iterator
from statistics import quantiles

from benchmarks.fleets import filled_cell, mixed_spec, queued, seated
from benchmarks.measuring import Row, Scale, alone, load, machine
from rackwright.core.fleet import Fleet
from rackwright.core.fold import apply
from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.placement import place
from rackwright.wire.entries.job import JobFinished
from rackwright.wire.ids import JobId

SHARE = 0.7
SEED = 1


def decisions(racks: int, count: int, seed: int) -> Iterator[float]:
    """Seconds of each of `count` decisions. Jobs come and go, so that the cell stays as full."""
    rng = random.Random(seed)
    fleet = filled_cell(racks, SHARE, seed)
    full = fleet.index.usable
    running = sorted(fleet.jobs)
    for turn in range(count):
        name = f"bench-{turn}"
        fleet = queued(fleet, name, mixed_spec(rng, racks * 2))
        job = fleet.jobs[JobId(name)]
        began = time.perf_counter()
        slices = place(fleet, job)
        yield time.perf_counter() - began
        if slices is not None:
            assert check_placement(fleet, job, slices) == []
            fleet = seated(fleet, name, slices)
            running.append(job.id)
        fleet = _relieve(fleet, running, full, rng)


def _relieve(fleet: Fleet, running: list[JobId], full: int, rng: random.Random) -> Fleet:
    """End jobs at random until as many nodes are free as at the start."""
    while fleet.index.usable < full and running:
        turn = rng.randrange(len(running))
        running[turn], running[-1] = running[-1], running[turn]
        fleet = apply(fleet, JobFinished(job=running.pop()))
    return fleet


def rows(racks: int, count: int, seed: int) -> Iterator[Row]:
    """The figures of one size of cell."""
    taken = list(decisions(racks, count, seed))
    cuts = quantiles(taken, n=100)
    params = {
        "racks": racks,
        "full": SHARE,
        "decisions": count,
        "seed": seed,
        "load": load(),
        **machine(),
    }
    for name, seconds in (("p50", cuts[49]), ("p99", cuts[98]), ("max", max(taken))):
        yield Row(
            name=f"placement_decision_{name}_us", params=params, value=seconds * 1e6, unit="us"
        )


def measure(scale: Scale) -> Iterator[Row]:
    """One placement decision in cells of several sizes, 70 % full, mixed jobs."""
    for racks in (8, 140, 1_400, 14_000):
        yield from rows(racks, scale.pick(2_000, 200), scale.seed)


if __name__ == "__main__":
    alone(measure)
