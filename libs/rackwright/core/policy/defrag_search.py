"""Which racks to clear together: sets of ways in the order of their cost, cheapest first.

The order is exact. Sets are drawn by a bound that splits the price of a job over its racks
(`defrag_draw`), and are handed out when no set that is still to come can cost less.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, merge
from itertools import count, islice

from rackwright.core.policy.ask import Same
from rackwright.core.policy.defrag_cost import Blocked
from rackwright.core.policy.defrag_draw import drawn
from rackwright.core.policy.defrag_racks import Left, Survey, Way
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId
from rackwright.wire.quick import quick

DRAWN = 1_000  # sets drawn for one sort of nodes, after which the search gives up


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Ways in different racks that together let the whole job in; each victim is paid for once.

    `victims` are the slices that leave, by job.
    """

    same: Same
    ways: tuple[Way, ...]
    leaves: tuple[Left, ...]
    victims: dict[JobId, tuple[int, ...]]
    hold: float
    cost: float

    @property
    def racks(self) -> tuple[int, ...]:
        """The racks to clear, by number."""
        return tuple(sorted(way.rack for way in self.ways))


def cheapest_sets(case: Blocked, found: list[Survey], most: int | None = None) -> Iterator[Chosen]:
    """All sets that would do, the cheapest first, whatever the sort of nodes.

    `most`: with at most so many victims that have one slice each; those of several are not counted.
    """
    return merge(*(_sets(case, one, most) for one in found), key=_rank)


def least_cost(case: Blocked, found: list[Survey]) -> float | None:
    """GPU-hours that no plan for this job can cost less than: the cheapest set, as if every victim
    had a home at once and one plan might move as much as it likes. None: there is no set.

    Exact within the ways that are kept for each rack.
    """
    first = next(cheapest_sets(case, found), None)
    return None if first is None else first.cost


def _rank(chosen: Chosen) -> tuple[float, int, tuple[int, ...], tuple[Left, ...]]:
    return (chosen.cost, len(chosen.victims), chosen.racks, chosen.leaves)


def _sets(case: Blocked, survey: Survey, most: int | None) -> Iterator[Chosen]:
    """Sets of one sort of nodes in the order of their cost."""
    ready: list[tuple[tuple[float, int, tuple[int, ...], tuple[Left, ...]], int, Chosen]] = []
    seen: set[tuple[Left, ...]] = set()
    turn = count()
    for bound, ways in islice(drawn(case, survey, most), DRAWN):
        while ready and ready[0][0][0] <= bound:
            yield heappop(ready)[2]
        made = _made(case, survey, ways)
        if made is not None and made.leaves not in seen:
            seen.add(made.leaves)
            heappush(ready, (_rank(made), next(turn), made))
    while ready:
        yield heappop(ready)[2]


def _made(case: Blocked, survey: Survey, ways: tuple[Way, ...]) -> Chosen | None:
    """The set of these ways; None when two are in one rack, or they let in too few slices."""
    if len({way.rack for way in ways}) < len(ways):
        return None
    for size, missing in survey.missing:
        pieces = [way.pieces for way in ways if way.size == size]
        # One that could be left out makes another, cheaper set.
        if sum(pieces) < missing or sum(pieces) - min(pieces) >= missing:
            return None
    leaves = tuple(sorted({left for way in ways for left in way.leaves}))
    victims: dict[JobId, tuple[int, ...]] = {}
    for name, index in leaves:
        victims[name] = (*victims.get(name, ()), index)
    hold = sum(way.hold for way in ways)
    prices = [case.price(name) for name in victims]
    cost = hold + sum(price.total for price in prices if isinstance(price, CostTerms))
    return Chosen(same=survey.same, ways=ways, leaves=leaves, victims=victims, hold=hold, cost=cost)
