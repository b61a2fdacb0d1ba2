"""Paired differences between policies over seeds, with 95 % intervals of Student's t."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

# 97.5 % quantiles of Student's t by degrees of freedom.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL = 1.960


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of paired differences and half the width of its interval; None with one pair."""

    pairs: int
    mean: float
    half: float | None

    @property
    def clear(self) -> bool:
        """Does the interval leave out zero?"""
        return self.half is not None and abs(self.mean) > self.half


def paired(one: Sequence[float], other: Sequence[float]) -> Difference:
    """`one` minus `other`, pair by pair. Raises ValueError where they are not pairs."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    if not differences:
        raise ValueError("no pairs")
    count = len(differences)
    if count == 1:
        return Difference(pairs=1, mean=differences[0], half=None)
    free = count - 1
    quantile = STUDENT[free - 1] if free <= len(STUDENT) else NORMAL
    half = quantile * stdev(differences) / sqrt(count)
    return Difference(pairs=count, mean=fmean(differences), half=half)


def _wait(name: str, quantile: str) -> Callable[[Mapping[str, Any]], float | None]:
    def read(result: Mapping[str, Any]) -> float | None:
        found = result["wait_s"].get(name, {}).get(quantile)
        return None if found is None else found / 3600.0

    return read


FIGURES: dict[str, tuple[Callable[[Mapping[str, Any]], float | None], str, float]] = {
    "work done, % of installed": (lambda one: one["work_goodput"], "+.2f", 100.0),
    "lost, % of installed": (
        lambda one: one["gpu_s"]["lost"] / one["installed_gpu_s"],
        "+.2f",
        100.0,
    ),
    "stalled or restarting, % of installed": (
        lambda one: (one["gpu_s"]["stalled"] + one["gpu_s"]["restarting"]) / one["installed_gpu_s"],
        "+.2f",
        100.0,
    ),
    "wait of all, p90, h": (_wait("all", "p90"), "+.2f", 1.0),
    "wait of jobs over 64 GPUs, p90, h": (_wait("over 64 GPUs", "p90"), "+.2f", 1.0),
    "GPUs queued, % of installed": (
        lambda one: one["queued_gpus_mean"] * one["counted_s"] / one["installed_gpu_s"],
        "+.2f",
        100.0,
    ),
}
"""Figure: how it is read from a result, how it is written, and by what it is multiplied."""
