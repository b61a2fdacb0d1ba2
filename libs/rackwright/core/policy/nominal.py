"""Whether a cut job would fit if all racks were empty and all their nodes healthy."""

from collections.abc import Iterable

from rackwright.core.policy.cut import Cut
from rackwright.core.policy.refusing import Numbers
from rackwright.core.topology import Topology
from rackwright.wire.jobs import JobSpec, TopologyNeed
from rackwright.wire.reasons import Cause, Reason

Bins = dict[tuple[int, int], int]
"""Number of racks by (nodes still free, slices already in them)."""


def bins_of(sizes: Iterable[tuple[int, int]]) -> Bins:
    """Empty racks from pairs of (nodes, number of racks that have so many)."""
    bins: Bins = {}
    for nodes, racks in sizes:
        bins[nodes, 0] = bins.get((nodes, 0), 0) + racks
    return bins


def fitting(bins: Bins, asked: Iterable[int], most: int | None) -> int:
    """How many slices of these sizes go into the racks, the largest first and each where it leaves
    least, at most `most` to a rack. Uses up `bins`.
    """
    placed = 0
    for size in sorted(asked, reverse=True):
        found = min(
            (bin for bin in bins if bin[0] >= size and (most is None or bin[1] < most)),
            default=None,
        )
        if found is None:
            return placed
        left, slices = found
        bins[found] -= 1
        if not bins[found]:
            del bins[found]
        after = (left - size, slices + 1)
        bins[after] = bins.get(after, 0) + 1
        placed += 1
    return placed


def scattered(made: Cut) -> bool:
    """May every slice be cut anew where whole ones do not fit?"""
    return all(need is not TopologyNeed.REQUIRED for need in made.needs)


def shortage(topology: Topology, spec: JobSpec, made: Cut) -> Reason | None:
    """None if the job fits the cell as it was built, else the cause `never` with its numbers."""
    models = [
        (nodes, racks.bit_count())
        for (nodes, gpus), racks in sorted(topology.models.items())
        if not made.node_gpus or gpus == made.node_gpus
    ]
    asked = [piece.nodes for piece in made.pieces]
    total = sum(nodes * racks for nodes, racks in models)
    field = "nodes" if spec.nodes is not None else "gpus" if spec.gpus is not None else "groups"
    numbers: Numbers = {
        "field": field,
        "asked_nodes": sum(asked),
        "cell_nodes": total,
    }
    if sum(asked) > total:
        return Reason(code=Cause.NEVER, numbers=numbers | {"ask": f"{total} nodes or fewer"})
    if scattered(made):
        return None
    largest = max(nodes for nodes, _ in models)
    if max(asked) > largest:
        more: Numbers = {
            "slice_nodes": max(asked),
            "rack": largest,
            "ask": f"slices of {largest} or fewer",
        }
        return Reason(code=Cause.NEVER, numbers=numbers | more)
    fits = fitting(bins_of(models), asked, spec.max_per_rack)
    if fits == len(asked):
        return None
    slices: Numbers = {
        "slices": len(asked),
        "slice_nodes": max(asked),
        "fits": fits,
        "ask": f"{fits} slices or fewer",
    }
    return Reason(code=Cause.NEVER, numbers=numbers | slices)
