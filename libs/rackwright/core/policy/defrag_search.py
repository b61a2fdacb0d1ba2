"""Which racks to clear together: sets of ways in the order of their cost, cheapest first.

The order is exact. Sets are drawn by a bound that splits the price of a job over its racks, and are
handed out when no set that is still to come can cost less.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, merge
from itertools import count, islice

from rackwright.core.policy.ask import Same
from rackwright.core.policy.defrag_cost import Blocked
from rackwright.core.policy.defrag_racks import Left, Survey, Way
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId
from rackwright.wire.quick import quick

DRAWN = 1_000  # sets drawn for one sort of nodes, after which the search gives up

Column = list[tuple[float, int, Way]]
"""Alternatives of one rack with the bound of their cost, the lowest first."""
Pick = tuple[tuple[int, int], ...]
"""Columns, rising, and the alternative taken of each."""


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


def cheapest_sets(case: Blocked, found: list[Survey]) -> Iterator[Chosen]:
    """All sets that would do, the cheapest first, whatever the sort of nodes."""
    return merge(*(_sets(case, one) for one in found), key=_rank)


def least_cost(case: Blocked, found: list[Survey]) -> float | None:
    """GPU-hours that no plan for this job can cost less than: the cheapest set, as if every victim
    had a home at once and one plan might move as much as it likes. None: there is no set.

    Exact within the ways that are kept for each rack.
    """
    first = next(cheapest_sets(case, found), None)
    return None if first is None else first.cost


def _rank(chosen: Chosen) -> tuple[float, int, tuple[int, ...], tuple[Left, ...]]:
    return (chosen.cost, len(chosen.victims), chosen.racks, chosen.leaves)


def _sets(case: Blocked, survey: Survey) -> Iterator[Chosen]:
    """Sets of one sort of nodes in the order of their cost."""
    ready: list[tuple[tuple[float, int, tuple[int, ...], tuple[Left, ...]], int, Chosen]] = []
    seen: set[tuple[Left, ...]] = set()
    turn = count()
    for bound, ways in islice(_drawn(case, survey), DRAWN):
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


def _drawn(case: Blocked, survey: Survey) -> Iterator[tuple[float, tuple[Way, ...]]]:
    """Tuples of ways, enough of each size, in the order of a lower bound of their cost."""
    columns = [_columns(case, survey.ways[size]) for size, _ in survey.missing]
    heap: list[tuple[float, tuple[Pick, ...]]] = []
    known: set[tuple[Pick, ...]] = set()
    for start in _starts(survey, columns):
        _push(heap, known, columns, start)
    while heap:
        bound, picks = heappop(heap)
        yield (
            bound,
            tuple(
                of_size[at][place][2]
                for of_size, pick in zip(columns, picks, strict=True)
                for at, place in pick
            ),
        )
        for turn, pick in enumerate(picks):
            for moved in _next(pick, columns[turn]):
                _push(heap, known, columns, (*picks[:turn], moved, *picks[turn + 1 :]))


def _columns(case: Blocked, ways: tuple[Way, ...]) -> list[Column]:
    """The ways of one rack that let in as many slices are alternatives: at most one is taken."""
    by_rack: dict[tuple[int, int], Column] = {}
    for place, way in enumerate(ways):
        by_rack.setdefault((way.rack, way.pieces), []).append((_bound(case, way), place, way))
    columns = [sorted(column, key=_first) for column in by_rack.values()]
    return sorted(columns, key=lambda column: _first(column[0]))


def _first(one: tuple[float, int, Way]) -> tuple[float, int]:
    return one[0], one[1]


def _bound(case: Blocked, way: Way) -> float:
    """The way's cost if each victim paid for this rack only its share of all its racks."""
    total = way.hold
    for name in sorted({name for name, _ in way.leaves}):
        price = case.price(name)
        racks = {part.rack for part in case.fleet.jobs[name].slices}
        total += price.total / len(racks) if isinstance(price, CostTerms) else 0.0
    return total


def _starts(survey: Survey, columns: list[list[Column]]) -> list[tuple[Pick, ...]]:
    """The first tuples: as many ways as slices are missing, or fewer where one lets in several."""
    starts: list[tuple[Pick, ...]] = [()]
    for (_, missing), of_size in zip(survey.missing, columns, strict=True):
        most = max((column[0][2].pieces for column in of_size), default=1)
        numbers = range(-(-missing // most), min(missing, len(of_size)) + 1)
        picks = [tuple((at, 0) for at in range(number)) for number in numbers]
        starts = [(*start, pick) for start in starts for pick in picks]
    return starts


def _push(
    heap: list[tuple[float, tuple[Pick, ...]]],
    known: set[tuple[Pick, ...]],
    columns: list[list[Column]],
    picks: tuple[Pick, ...],
) -> None:
    if picks not in known:
        known.add(picks)
        bound = sum(
            of_size[at][place][0]
            for of_size, pick in zip(columns, picks, strict=True)
            for at, place in pick
        )
        heappush(heap, (bound, picks))


def _next(pick: Pick, columns: list[Column]) -> Iterator[Pick]:
    """The pick with one column moved on by one, or one column's alternative."""
    fresh = all(place == 0 for _, place in pick)
    for turn, (at, place) in enumerate(pick):
        before, after = pick[:turn], pick[turn + 1 :]
        if fresh and at + 1 < (after[0][0] if after else len(columns)):
            yield (*before, (at + 1, 0), *after)
        if place + 1 < len(columns[at]):
            yield (*before, (at, place + 1), *after)
