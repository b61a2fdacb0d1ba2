"""Tuples of ways in the order of a lower bound of their cost, none that needs too many victims.

A search from the best end (A*): what the rest costs at least, for so many slices still missing and
so many victims still allowed, is in a table, so no tuple is begun that could not be finished.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf

from rackwright.core.policy.defrag_cost import Blocked
from rackwright.core.policy.defrag_racks import Survey, Way
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId

Row = Sequence[float]
"""The least cost by the number of victims that are still allowed."""
Rows = list[list[Row]]
"""By the number of the first column not decided on, then by the slices that are still missing."""
Step = tuple[int, int, int, int]
"""Where a tuple stands: size, column, slices still missing of that size, victims still allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One way of a column; `victims` are the jobs that leave by no other way as well."""

    bound: float
    pieces: int
    victims: int
    way: Way


Column = tuple[_Choice, ...]
"""The ways of one rack that let in as many slices, cheapest first: at most one is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """The slices of one size that are missing, what lets them in, and what that costs at least."""

    missing: int
    columns: list[Column]
    rows: Rows


def drawn(
    case: Blocked, survey: Survey, most: int | None
) -> Iterator[tuple[float, tuple[Way, ...]]]:
    """Tuples of ways that let in all that is missing, with a lower bound of their cost, rising.

    `most`: victims that a tuple may have; None: any number. A job of several slices does not count,
    as it may leave by several ways.
    """
    sizes = _sizes(case, survey, most)
    heap: list[tuple[float, int, float, Step, tuple[Way, ...]]] = []
    turn = count()
    least = sizes[0].rows[0][sizes[0].missing][most or 0] if sizes else 0.0
    if least < inf:
        start = (0, 0, sizes[0].missing if sizes else 0, most or 0)
        heappush(heap, (least, next(turn), 0.0, start, ()))
    while heap:
        bound, _, spent, step, ways = heappop(heap)
        found: tuple[float, float, Step, tuple[Way, ...]] | None = (bound, spent, step, ways)
        while found is not None:
            bound, spent, step, ways = found
            if step[0] == len(sizes):
                yield bound, ways
                break
            found = None
            for one in _next(sizes, spent, step, ways):
                if found is None or one[0] < found[0]:
                    found, one = one, found
                if one is not None:
                    heappush(heap, (one[0], next(turn), *one[1:]))


def _next(
    sizes: list[_Size], spent: float, step: Step, ways: tuple[Way, ...]
) -> Iterator[tuple[float, float, Step, tuple[Way, ...]]]:
    """One way of the next column taken, or the column passed over, with the least cost of each."""
    turn, at, missing, victims = step
    size = sizes[turn]
    rows = size.rows[at + 1]
    for choice in size.columns[at]:
        left = victims - choice.victims
        if left < 0:
            continue
        lacks = max(0, missing - choice.pieces)
        after = spent + choice.bound
        least = after + rows[lacks][left]
        if least == inf:
            continue
        then = (turn, at + 1, lacks, left)
        if not lacks:
            then = (turn + 1, 0, sizes[turn + 1].missing if turn + 1 < len(sizes) else 0, left)
        yield least, after, then, (*ways, choice.way)
    least = spent + rows[missing][victims]
    if least < inf:
        yield least, spent, (turn, at + 1, missing, victims), ways


def _sizes(case: Blocked, survey: Survey, most: int | None) -> list[_Size]:
    """All sizes that are missing, each with the least cost of what is left from any point on."""
    beyond: Row = (0.0,) * (1 + (most or 0))
    found: list[_Size] = []
    for size, missing in reversed(survey.missing):
        columns = _columns(case, survey.ways[size], count_victims=most is not None)
        rows = _rows(columns, missing, beyond)
        beyond = rows[0][missing]
        found.append(_Size(missing=missing, columns=columns, rows=rows))
    found.reverse()
    return found


def _columns(case: Blocked, ways: Sequence[Way], *, count_victims: bool) -> list[Column]:
    racks: dict[JobId, int] = {}
    by_rack: dict[tuple[int, int], list[_Choice]] = {}
    for way in ways:
        names = dict.fromkeys(name for name, _ in way.leaves)
        alone = sum(len(case.fleet.jobs[name].slices) == 1 for name in names)
        choice = _Choice(
            bound=way.hold + sum(_share(case, name, racks) for name in names),
            pieces=way.pieces,
            victims=alone if count_victims else 0,
            way=way,
        )
        by_rack.setdefault((way.rack, way.pieces), []).append(choice)
    columns = [tuple(sorted(column, key=_bound)) for column in by_rack.values()]
    return sorted(columns, key=lambda column: column[0].bound)


def _bound(choice: _Choice) -> float:
    return choice.bound


def _share(case: Blocked, name: JobId, racks: dict[JobId, int]) -> float:
    """What a victim pays for one rack if it pays only its share of all its racks."""
    price = case.price(name)
    if not isinstance(price, CostTerms):
        return 0.0
    if name not in racks:
        racks[name] = len({part.rack for part in case.fleet.jobs[name].slices})
    return price.total / racks[name]


def _rows(columns: list[Column], missing: int, beyond: Row) -> Rows:
    """What the columns from each on cost at least; `beyond`: what comes after the last of them."""
    last: list[Row] = [beyond, *((inf,) * len(beyond) for _ in range(missing))]
    rows = [last]
    for column in reversed(columns):
        least = _least(column)
        now: list[Row] = [beyond]
        for lacks in range(1, missing + 1):
            row = last[lacks]
            for (pieces, victims), bound in least.items():
                after = last[lacks - pieces] if lacks > pieces else beyond
                taken = (inf,) * victims + tuple(cost + bound for cost in after)
                row = tuple(map(min, row, taken))
            now.append(row)
        rows.append(now)
        last = now
    rows.reverse()
    return rows


def _least(column: Column) -> Mapping[tuple[int, int], float]:
    """The least bound by slices let in and victims, without those that fewer victims undercut."""
    found: dict[tuple[int, int], float] = {}
    fewest = inf
    for choice in column:
        if choice.victims < fewest:
            fewest = choice.victims
            found[choice.pieces, choice.victims] = choice.bound
    return found
