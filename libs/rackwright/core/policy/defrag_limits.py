"""How much one plan may move, and the ways that no set within that limit can hold.

A slice sits in one rack, so what a set moves is the sum over its ways: a way that leaves too little
for the lightest others is left out before any set is drawn. Nothing that could be chosen is lost.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rackwright.core.policy.defrag_cost import Blocked, slice_gpus
from rackwright.core.policy.defrag_racks import Left, Survey, Way
from rackwright.wire.ids import JobId

ROUNDING = 1e-6


def most_moved(case: Blocked) -> float:
    """GPUs that one plan may move.

    A share of the cell, but always as much as one slice of the job: a small cell has no other way.
    Where lower priority has what the job lacks, twice what it asks for: jobs go as a whole.
    """
    policy, per_node = case.fleet.policy, case.fleet.topology.gpus_per_node
    slice_ = max(piece.gpus or piece.nodes * per_node for piece in case.made.pieces)
    least = 2 * case.gpus if case.evicts else slice_
    return max(policy.defrag_max_share * case.fleet.installed_gpus, least)


def moved(case: Blocked, leaves: Sequence[Left]) -> int:
    """GPUs of these slices."""
    jobs = case.fleet.jobs
    return sum(slice_gpus(case.fleet, jobs[name].part(index)) for name, index in leaves)


def shares_of_victims(case: Blocked, leaves: Sequence[Left]) -> float:
    """No more than the victims of these slices: each slice counts its share of its job."""
    return sum(1.0 / len(case.fleet.jobs[name].slices) for name, _ in leaves)


def within(case: Blocked, survey: Survey) -> Survey:
    """The survey without ways that are in no set within the limits."""
    for measure, most in (
        (moved, most_moved(case)),
        (shares_of_victims, float(case.fleet.policy.defrag_max_victims)),
    ):
        weights = {way: measure(case, way.leaves) for ways in survey.ways.values() for way in ways}
        survey = _within(survey, weights, most)
    return survey


def avoiding(survey: Survey, names: Collection[JobId]) -> Survey:
    """The survey without the ways by which one of these jobs has to leave."""
    ways = {
        size: tuple(way for way in found if not any(name in names for name, _ in way.leaves))
        for size, found in survey.ways.items()
    }
    return replace(survey, ways=ways)


def _within(survey: Survey, weights: Mapping[Way, float], most: float) -> Survey:
    """Without ways that weigh so much that those a set needs beside them are beyond the limit."""
    least = {size: _least(survey.ways[size], weights, missing) for size, missing in survey.missing}
    if any(not found for found in least.values()):
        return replace(survey, ways=dict.fromkeys(survey.ways, ()))
    total = sum(found[-1] for found in least.values())
    ways = {
        size: tuple(
            way
            for way in survey.ways[size]
            if weights[way]
            + (total - least[size][missing])
            + least[size][max(0, missing - way.pieces)]
            <= most + ROUNDING
        )
        for size, missing in survey.missing
    }
    return replace(survey, ways=ways)


def _least(ways: Sequence[Way], weights: Mapping[Way, float], missing: int) -> list[float]:
    """For 0 up to `missing` slices: no set lets in so many and weighs less. Empty: none does.

    Each rack gives its slices at the rate of its lightest way, so the sum is never too high.
    """
    rates: dict[int, tuple[float, int]] = {}
    for way in ways:
        rate, pieces = weights[way] / way.pieces, way.pieces
        known = rates.get(way.rack)
        if known is not None:
            rate, pieces = min(rate, known[0]), max(pieces, known[1])
        rates[way.rack] = (rate, pieces)
    found = [0.0]
    for rate, pieces in sorted(rates.values()):
        for _ in range(min(pieces, missing + 1 - len(found))):
            found.append(found[-1] + rate)
    return found if len(found) == missing + 1 else []
