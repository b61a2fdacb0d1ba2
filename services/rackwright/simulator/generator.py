"""Jobs drawn from published distributions, with a seed.

Large: Kalos (Hu et al., NSDI 2024, arXiv:2403.07648, CC BY 4.0): counts of jobs by GPUs, and the
cumulative distribution of the length of pretraining jobs, both as read from the curves of its
repository. Small: ITP (ElasticFlow traces, ASPLOS 2023, MIT): counts by GPUs, and 10, 50 and 90 %
of the length by size, computed from its 69,351 jobs. Lengths are cut at seven days, a usual limit.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rackwright.simulator.stopping import Stop
from rackwright.simulator.workload import DAY, Row

LONGEST_S = 7 * DAY
LEAST_S = 10.0

Quantiles = tuple[tuple[float, float], ...]
"""(cumulative share, seconds), rising in both."""

# Hu et al., figure of GPU counts: 64, 128, 256, 512 (with 496 and 504) and 1,024 GPUs.
KALOS_SIZES = {64: 130, 128: 68, 256: 242, 512: 402, 1024: 207}
# The same paper, pretraining jobs of Kalos, at powers of two seconds.
KALOS_LENGTHS: Quantiles = (
    (0.0, 16.0),
    (0.042122, 32.0),
    (0.098284, 64.0),
    (0.143526, 128.0),
    (0.257410, 256.0),
    (0.438378, 512.0),
    (0.570983, 1024.0),
    (0.653666, 2048.0),
    (0.719189, 4096.0),
    (0.769111, 8192.0),
    (0.823713, 16384.0),
    (0.878315, 32768.0),
    (0.932917, 65536.0),
    (0.967239, 131072.0),
    (0.989080, 262144.0),
    (1.0, LONGEST_S),
)
ITP_SIZES = {1: 57682, 2: 1483, 4: 2371, 8: 7009, 16: 381, 32: 354, 64: 71}
ITP_LENGTHS: dict[int, Quantiles] = {
    size: ((0.0, LEAST_S), (0.1, low), (0.5, middle), (0.9, high), (1.0, LONGEST_S))
    for size, low, middle, high in (
        (1, 1288.0, 10132.0, 25322.0),
        (2, 844.0, 3478.0, 18640.0),
        (4, 1338.0, 8325.0, 118046.0),
        (8, 1972.0, 18320.0, 130331.0),
        (16, 928.0, 31780.0, 180777.0),
        (32, 1862.0, 77330.0, 198916.0),
        (64, 2326.0, 31372.0, 263856.0),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A kind of job: weights of its sizes in GPUs, lengths by size (0: of all sizes)."""

    name: str
    sizes: dict[int, int]
    lengths: dict[int, Quantiles]

    def draw(self, rng: random.Random) -> tuple[int, float]:
        """GPUs and seconds of one job."""
        (gpus,) = rng.choices(list(self.sizes), list(self.sizes.values()))
        return gpus, length(self.lengths.get(gpus) or self.lengths[0], rng.random())

    def mean_gpu_s(self) -> float:
        """GPU-seconds of a job, on average, by integrating the quantiles."""
        total = sum(self.sizes.values())
        return math.fsum(
            weight / total * gpus * mean_length(self.lengths.get(gpus) or self.lengths[0])
            for gpus, weight in self.sizes.items()
        )


KALOS = Source(name="kalos", sizes=KALOS_SIZES, lengths={0: KALOS_LENGTHS})
ITP = Source(name="itp", sizes=ITP_SIZES, lengths=ITP_LENGTHS)
SOURCES = {source.name: source for source in (KALOS, ITP)}


def length(known: Quantiles, share: float) -> float:
    """The length not exceeded by this share of jobs; between the points linear in its logarithm."""
    at = bisect_left(known, (share,))
    if at == 0:
        return known[0][1]
    (low, short), (high, long) = known[at - 1], known[min(at, len(known) - 1)]
    if high == low:
        return long
    part = (share - low) / (high - low)
    return math.exp((1 - part) * math.log(short) + part * math.log(long))


def mean_length(known: Quantiles) -> float:
    """The mean: between two points the logarithm is uniform."""
    total = 0.0
    for (low, short), (high, long) in pairwise(known):
        ratio = math.log(long / short)
        total += (high - low) * ((long - short) / ratio if ratio else short)
    return total


def arrivals(
    source: Source, *, gpu_s_per_s: float, span_s: float, rng: random.Random, stop: Stop
) -> Iterator[Row]:
    """Jobs of one source with Poisson arrivals, of so much work a second on average."""
    if gpu_s_per_s <= 0:
        return
    between = source.mean_gpu_s() / gpu_s_per_s
    at, number = rng.expovariate(1 / between), 0
    while at < span_s and not stop.asked:
        gpus, seconds = source.draw(rng)
        number += 1
        yield Row(
            row=number,
            name=f"{source.name}-{number}",
            submit_s=at,
            gpus=gpus,
            duration_s=seconds,
            kind=source.name,
        )
        at += rng.expovariate(1 / between)


def generated(
    shares: Sequence[tuple[Source, float]],
    *,
    load_gpus: float,
    span_s: float,
    seed: int,
    stop: Stop | None = None,
) -> list[Row]:
    """Jobs of several sources, each with its share of the work, by submit time; those that were
    drawn before `stop` was asked for.

    The lengths are scaled at the end (within the limit of seven days) so that the work offered is
    exactly `load_gpus` x `span_s`: chance alone would miss it by a tenth and more.
    """
    stop = stop or Stop()
    total = sum(share for _, share in shares)
    rows = [
        row
        for place, (source, share) in enumerate(shares)
        for row in arrivals(
            source,
            gpu_s_per_s=load_gpus * share / total,
            span_s=span_s,
            rng=random.Random(f"{seed}/{place}/{source.name}"),
            stop=stop,
        )
    ]
    rows = [] if stop.asked else scaled(rows, load_gpus * span_s)
    return sorted(rows, key=lambda row: (row.submit_s, row.name))


def scaled(rows: Sequence[Row], gpu_s: float) -> list[Row]:
    """The rows with their lengths scaled to so much work in all, none beyond seven days."""
    work = math.fsum(row.gpus * row.duration_s for row in rows)
    if not work:
        return list(rows)
    low, high = 0.0, 2.0 * gpu_s / work + 1.0
    while _work(rows, high) < gpu_s and high < 1e6:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _work(rows, middle) < gpu_s:
            low = middle
        else:
            high = middle
    return [_stretched(row, high) for row in rows]


def _work(rows: Sequence[Row], factor: float) -> float:
    return math.fsum(row.gpus * min(LONGEST_S, row.duration_s * factor) for row in rows)


def _stretched(row: Row, factor: float) -> Row:
    return Row(
        row=row.row,
        name=row.name,
        submit_s=row.submit_s,
        gpus=row.gpus,
        duration_s=min(LONGEST_S, row.duration_s * factor),
        kind=row.kind,
    )
