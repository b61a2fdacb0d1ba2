"""What a cell can promise: exact arithmetic over racks whose nodes fail independently.

Sources: the policy page, section 1.6, and the figures of the article the project started from
(128 racks of 18 nodes, 2 % down, 490 days between the failures of a node). Independence is the
model's assumption: a fault of a whole rack is not in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb, isclose

DAYS_PER_YEAR = 365.0
HOURS_PER_DAY = 24.0
NEGLIGIBLE = 1e-15  # probability below which the end of a tail is cut off
GRID = 1e-4  # step in which a break-even is looked for, before it is bisected
AGREE = 0.01  # relative difference up to which three given figures are taken to agree


class Impossible(ValueError):
    """A question that has no answer: which figure is wrong, and what would be right."""

    def __init__(self, figure: str, value: float, rule: str) -> None:
        super().__init__(f"{figure}: {value:g} is not possible: {rule}")
        self.figure = figure
        self.value = value
        self.rule = rule


class Disagreement(ValueError):
    """Three figures were given where two decide the third."""

    def __init__(self, figure: str, given: float, implied: float) -> None:
        super().__init__(f"{figure}: {given:g} was given, the other two make it {implied:g}")
        self.figure = figure
        self.given = given
        self.implied = implied


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How often a node fails and how long it is away. Times in days; `unavailable` 0 to 1."""

    mtbf_days: float
    repair_days: float
    unavailable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """Nodes that whole slices can use: on average, and what is undercut in so many % of time."""

    mean: float
    p1: int
    p10: int
    p50: int
    p90: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Mean time between failures, in days, seen from a node, a rack and the whole cell."""

    node_days: float
    rack_days: float
    cell_days: float

    @property
    def cell_hours(self) -> float:
        """The same for the cell, in hours."""
        return self.cell_days * HOURS_PER_DAY


def reliability(
    *,
    mtbf_days: float | None = None,
    repair_days: float | None = None,
    unavailable: float | None = None,
) -> Reliability:
    """The third figure from any two: unavailable = repair / (MTBF + repair).

    Raises Impossible on fewer than two figures or one out of range, Disagreement if all three are
    given and differ by more than 1 %.
    """
    _check_range("mtbf_days", mtbf_days, above=0)
    _check_range("repair_days", repair_days, above=0)
    _check_range("unavailable", unavailable, above=0, below=1)
    match mtbf_days, repair_days, unavailable:
        case float() | int() as mtbf, float() | int() as repair, _:
            implied = repair / (mtbf + repair)
            if unavailable is not None and not isclose(unavailable, implied, rel_tol=AGREE):
                raise Disagreement("unavailable", unavailable, implied)
            return Reliability(mtbf_days=mtbf, repair_days=repair, unavailable=implied)
        case float() | int() as mtbf, None, float() as share:
            repair = mtbf * share / (1 - share)
            return Reliability(mtbf_days=mtbf, repair_days=repair, unavailable=share)
        case None, float() | int() as repair, float() as share:
            mtbf = repair * (1 - share) / share
            return Reliability(mtbf_days=mtbf, repair_days=repair, unavailable=share)
        case _:
            given = sum(figure is not None for figure in (mtbf_days, repair_days, unavailable))
            raise Impossible("figures given", given, "two of MTBF, repair time, unavailability")


def usable_nodes(
    *,
    racks: int,
    nodes_per_rack: int,
    slice_nodes: int,
    unavailable: float,
    rack_up: float = 1.0,
) -> Usable:
    """Nodes usable in whole slices: each rack gives slice x floor(healthy / slice).

    Healthy nodes of a rack are binomial; racks are independent. A rack is up as a whole for
    `rack_up` of the time and gives nothing else. 128 x 18 at 2 % gives 2,037 for slices of 16 and
    1,602 for 18. Raises Impossible.
    """
    _check_shape(racks, nodes_per_rack, slice_nodes, unavailable)
    _check_range("rack up", rack_up, above=-1e-9, below=1 + 1e-9)
    slices = [rack_up * share for share in slices_of_rack(nodes_per_rack, slice_nodes, unavailable)]
    slices[0] += 1 - rack_up
    mean = racks * slice_nodes * sum(count * share for count, share in enumerate(slices))
    first, cell = _power(slices, racks)
    cumulated = list(accumulate(cell))
    return Usable(
        mean=mean,
        p1=slice_nodes * (first + _quantile(cumulated, 0.01)),
        p10=slice_nodes * (first + _quantile(cumulated, 0.10)),
        p50=slice_nodes * (first + _quantile(cumulated, 0.50)),
        p90=slice_nodes * (first + _quantile(cumulated, 0.90)),
    )


def mean_time_between_failures(*, node_days: float, nodes_per_rack: int, racks: int) -> Interval:
    """490 days a node are 27 a rack of 18, and 5 hours a cell of 128 racks. Raises Impossible."""
    _check_range("node_days", node_days, above=0)
    _check_shape(racks, nodes_per_rack, 1, 0.0)
    rack_days = node_days / nodes_per_rack
    return Interval(node_days=node_days, rack_days=rack_days, cell_days=rack_days / racks)


def unswappable_per_year(
    *, racks: int, slice_nodes: int, spares: int, mtbf_days: float, unavailable: float
) -> float:
    """Failures a year in running slices that find no spare left in their rack.

    n/MTBF x Binom(n+s-1, s, q) x racks (policy page 1.6): one of the n nodes fails while exactly
    s of the n+s-1 others are down. Raises Impossible.
    """
    _check_range("mtbf_days", mtbf_days, above=0)
    _check_range("spares", spares, above=-1)
    _check_shape(racks, slice_nodes + spares, slice_nodes, unavailable)
    failures = racks * slice_nodes / mtbf_days * DAYS_PER_YEAR
    return failures * binomial(slice_nodes + spares - 1, spares, unavailable)


def break_even(
    *, nodes_per_rack: int, slice_nodes: int, other: int, shortfall: float = 0.0
) -> float | None:
    """The unavailability at which one slice size stops (or starts) beating another; None: never.

    Compared are mean usable nodes; `shortfall` is the part of the other's that may be missing:
    16 stays within 1 % of 8 until 3.3 % are down. The first such point above zero. Raises
    Impossible.
    """
    _check_shape(1, nodes_per_rack, slice_nodes, 0.0)
    _check_shape(1, nodes_per_rack, other, 0.0)
    _check_range("shortfall", shortfall, above=-1e-9, below=1)

    def lead(unavailable: float) -> float:
        mine = mean_of_rack(nodes_per_rack, slice_nodes, unavailable)
        return mine - (1 - shortfall) * mean_of_rack(nodes_per_rack, other, unavailable)

    ahead = lead(GRID) > 0
    for step in range(2, round(1 / GRID)):
        if (lead(step * GRID) > 0) != ahead:
            return _bisect(lead, (step - 1) * GRID, step * GRID, ahead=ahead)
    return None


def _bisect(lead: Callable[[float], float], low: float, high: float, *, ahead: bool) -> float:
    while high - low > 1e-9:
        middle = (low + high) / 2
        if (lead(middle) > 0) == ahead:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _check_range(
    figure: str, value: float | None, *, above: float, below: float = float("inf")
) -> None:
    if value is not None and not above < value < below:
        limit = "" if below == float("inf") else f" and below {below:g}"
        raise Impossible(figure, value, f"must be above {above:g}{limit}")


def _check_shape(racks: int, nodes_per_rack: int, slice_nodes: int, unavailable: float) -> None:
    if racks < 1:
        raise Impossible("racks", racks, "must be at least 1")
    if nodes_per_rack < 1:
        raise Impossible("nodes per rack", nodes_per_rack, "must be at least 1")
    if not 1 <= slice_nodes <= nodes_per_rack:
        raise Impossible("slice nodes", slice_nodes, f"1 to {nodes_per_rack}, the nodes of a rack")
    if not 0 <= unavailable <= 1:
        raise Impossible("unavailable", unavailable, "a share, 0 to 1")


def binomial(trials: int, hits: int, chance: float) -> float:
    """The chance of exactly so many hits in so many trials."""
    return comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)


def slices_of_rack(nodes: int, slice_nodes: int, unavailable: float) -> list[float]:
    """The chance that a rack gives 0, 1, 2 ... whole slices."""
    chances = [0.0] * (nodes // slice_nodes + 1)
    for healthy in range(nodes + 1):
        chances[healthy // slice_nodes] += binomial(nodes, healthy, 1 - unavailable)
    return chances


def mean_of_rack(nodes: int, slice_nodes: int, unavailable: float) -> float:
    """Nodes that whole slices can use in one rack, on average."""
    chances = slices_of_rack(nodes, slice_nodes, unavailable)
    return slice_nodes * sum(count * chance for count, chance in enumerate(chances))


def _convolve(one: Sequence[float], other: Sequence[float]) -> list[float]:
    total = [0.0] * (len(one) + len(other) - 1)
    for at, share in enumerate(one):
        for offset, chance in enumerate(other, at):
            total[offset] += share * chance
    return total


def _trim(first: int, chances: list[float]) -> tuple[int, list[float]]:
    """Without the ends that never happen; what is left starts at the returned number."""
    likely = [at for at, chance in enumerate(chances) if chance > NEGLIGIBLE]
    return first + likely[0], chances[likely[0] : likely[-1] + 1]


def _power(chances: list[float], times: int) -> tuple[int, list[float]]:
    """The distribution of the sum of `times` independent racks, and the number it starts at."""
    sum_first, total = 0, [1.0]
    base_first, base = _trim(0, chances)
    while times:
        if times & 1:
            sum_first, total = _trim(sum_first + base_first, _convolve(total, base))
        times >>= 1
        if times:
            base_first, base = _trim(2 * base_first, _convolve(base, base))
    return sum_first, total


def _quantile(cumulated: Sequence[float], share: float) -> int:
    """The least count that is not exceeded in `share` of the time."""
    return next((at for at, sum_ in enumerate(cumulated) if sum_ >= share), len(cumulated) - 1)
