"""The load of a smaller cell: the published jobs as much smaller as the cell is."""

from rackwright.simulator.generator import Source
from rackwright.simulator.workload import DAY


def cut(source: Source, by: int, longest_days: float | None) -> Source:
    """Its jobs `by` times smaller, and none longer than that many days: for a run of days to be a
    steady state."""
    longest = float("inf") if longest_days is None else longest_days * DAY
    lengths = {
        size: tuple(
            (share, min(seconds, longest * (0.999 + share / 1000))) for share, seconds in known
        )
        for size, known in source.lengths.items()
    }
    sizes: dict[int, int] = {}
    for gpus, count in source.sizes.items():
        sizes[max(1, gpus // by)] = sizes.get(max(1, gpus // by), 0) + count
    return Source(name=source.name, sizes=sizes, lengths=lengths)
