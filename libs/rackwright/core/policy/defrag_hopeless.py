"""Ways by which somebody would have to leave who can have no home: no set with them is tried.

Once a set is cleared and the blocked job sits, no rack takes another slice of the size it lacked.
Whoever needs more nodes than such a slice leaves in a rack needs one that has them now.
"""

from collections import Counter
from dataclasses import replace
from functools import cache

from rackwright.core.policy.defrag_cost import Blocked
from rackwright.core.policy.defrag_homes import evicted
from rackwright.core.policy.defrag_racks import Survey
from rackwright.wire.ids import JobId


def with_homes(case: Blocked, survey: Survey) -> Survey:
    """The survey without such ways. Says nothing where a rack takes two slices of the job, or where
    slices of several sizes are missing."""
    if len(survey.missing) != 1:
        return survey
    ((size, _),) = survey.missing
    fleet, ways = case.fleet, survey.ways[size]
    left = max((len(fleet.racks[way.rack].nodes) - size for way in ways), default=0)
    if left >= size:
        return survey

    @cache
    def has_rack(nodes: int) -> bool:
        """Could any rack take so many, beside the job?"""
        return any(
            shape.usable >= nodes and (racks & ~survey.fits or shape.usable >= size + nodes)
            for shape, racks in fleet.index.by_shape.items()
        )

    @cache
    def may_wait(name: JobId) -> bool:
        return evicted(case, fleet.jobs[name], Counter()) is not None

    @cache
    def hopeless(name: JobId, index: int) -> bool:
        nodes = fleet.jobs[name].part(index).size
        return nodes > max(1, left) and not has_rack(nodes) and not may_wait(name)

    kept = tuple(way for way in ways if not any(hopeless(*one) for one in way.leaves))
    return survey if len(kept) == len(ways) else replace(survey, ways={size: kept})
