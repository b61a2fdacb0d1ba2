"""Which GPUs of a node stand idle, and since when, from readings now and then.

One reading tells of a moment only; so the mean of the last minutes counts, older readings less.
"""

from collections.abc import Iterable, Mapping
from math import exp

from rackwright.agent.nvml import NodeReading

IDLE = 0.05  # policy page, 1.12: in use for less than this share of the time
MEAN_S = 600.0  # a reading so old counts 1/e of a new one


class IdleGpus:
    """`since`: by index, since when (Unix time, s) each idle GPU is idle. Who does not tell what
    it does is not idle."""

    def __init__(self) -> None:
        self.since: Mapping[int, float] = {}
        self._means: dict[int, float] = {}
        self._at = 0.0

    def look(self, reading: NodeReading, now: float) -> bool:
        """One more reading; has a GPU become idle, or is one idle no more?"""
        old = exp(-max(0.0, now - self._at) / MEAN_S)
        self._at = now
        uses = {one.index: one.use for one in reading.gpus if one.use is not None}
        self._means = {
            gpu: use + old * (self._means.get(gpu, use) - use) for gpu, use in uses.items()
        }
        idle = [gpu for gpu, mean in self._means.items() if mean < IDLE]
        before, self.since = self.since, {gpu: self.since.get(gpu, now) for gpu in idle}
        return before != self.since


def idle_since(gpus: Iterable[int], since: Mapping[int, float], start: float) -> float | None:
    """Since when all of these GPUs are idle, at least since `start`; None: not all are, or none."""
    found = [since.get(gpu) for gpu in gpus]
    known = [at for at in found if at is not None]
    return max(start, *known) if found and len(known) == len(found) else None
