"""The whole answer of the planner: usable nodes, interruptions, money and a recommendation.

Exact arithmetic, nothing is sampled. Nodes fail independently of each other; faults of whole racks
are added with rates of their own. What breaks this is in `ASSUMPTIONS` and belongs in every output.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.core.plural import digits
from rackwright.core.policy.advice import (
    Crossing,
    Rule,
    Stretch,
    advised,
    crossings,
    default_sizes,
    power_of_two,
    stretches,
)
from rackwright.core.policy.capacity import (
    DAYS_PER_YEAR,
    HOURS_PER_DAY,
    Impossible,
    Interval,
    Reliability,
    Usable,
    break_even,
    usable_nodes,
)
from rackwright.core.policy.interruptions import Habits, SpareLine, held_gpu_h, spare_lines
from rackwright.core.policy.rackfaults import RackFault, rack_up

ASSUMPTIONS = (
    "nodes fail independently of each other, at a constant rate, and so does each kind of rack"
    " fault; what breaks that: early life, a bad batch, one power feed or cooling loop, a driver"
    " roll-out, nodes that fail again and again",
    "a rack gives whole slices only; smaller jobs beside them are not counted as usable",
    "usable nodes do not depend on spares: spares make interruptions shorter, not fewer",
)
RARE = 1.0  # exhaustions of one rack in ten years up to which a number of spares is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The machine that is planned."""

    racks: int
    nodes_per_rack: int
    gpus_per_node: int

    def __post_init__(self) -> None:
        for name in ("racks", "nodes_per_rack", "gpus_per_node"):
            if getattr(self, name) < 1:
                raise Impossible(name.replace("_", " "), getattr(self, name), "must be at least 1")

    @property
    def nodes(self) -> int:
        """Installed nodes."""
        return self.racks * self.nodes_per_rack

    @property
    def gpus(self) -> int:
        """Installed GPUs."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked. `node` is None where only `unavailable` is known: then no rates are told."""

    cell: Cell
    unavailable: float
    node: Reliability | None = None
    sizes: tuple[int, ...] = ()
    most_spares: int = 3
    faults: tuple[RackFault, ...] = ()
    habits: Habits = Habits()
    rule: Rule = Rule()
    gpu_hour_price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLine:
    """One slice size. `share` of installed nodes; `lost_share` against the best size compared."""

    slice_nodes: int
    slices_per_rack: int
    usable: Usable
    share: float
    lost_share: float
    group_gpus: int
    leftover_nodes: int
    spares: tuple[SpareLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to do, and why: each reason is a sentence. `spares` is None where rates are unknown."""

    slice_nodes: int
    spares: int | None
    any_size: int
    group_gpus: int
    lost_share: float
    reasons: tuple[str, ...]
    sensitivity: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All of it. `between` is None where rates are unknown."""

    question: Question
    sizes: tuple[SizeLine, ...]
    between: Interval | None
    crossings: tuple[Crossing, ...]
    recommendation: Recommendation

    def size(self, slice_nodes: int) -> SizeLine:
        """The line of one size. Raises StopIteration."""
        return next(line for line in self.sizes if line.slice_nodes == slice_nodes)


def answer(question: Question) -> Answer:
    """Plan a cell. Raises Impossible."""
    cell = question.cell
    sizes = sorted(set(question.sizes)) or default_sizes(cell.nodes_per_rack)
    for size in sizes:
        if not 1 <= size <= cell.nodes_per_rack:
            rule = f"1 to {cell.nodes_per_rack}, the nodes of a rack"
            raise Impossible("slice nodes", size, rule)
    if question.gpu_hour_price is not None and not 0 <= question.gpu_hour_price < float("inf"):
        raise Impossible("GPU-hour price", question.gpu_hour_price, "must not be below 0")
    lines = _lines(question, sizes)
    if max(line.usable.mean for line in lines) < 1:
        rule = (
            "not one node is in a whole slice then; fewer nodes may be away, or slices be smaller"
        )
        raise Impossible("unavailable", question.unavailable, rule)
    return Answer(
        question=question,
        sizes=lines,
        between=_between(question),
        crossings=tuple(crossings(cell.nodes_per_rack, sizes)),
        recommendation=_recommended(question, sizes, lines),
    )


def _lines(question: Question, sizes: Sequence[int]) -> tuple[SizeLine, ...]:
    cell, up = question.cell, rack_up(question.faults)
    usable = {
        size: usable_nodes(
            racks=cell.racks,
            nodes_per_rack=cell.nodes_per_rack,
            slice_nodes=size,
            unavailable=question.unavailable,
            rack_up=up,
        )
        for size in sizes
    }
    best = max(one.mean for one in usable.values())
    return tuple(
        SizeLine(
            slice_nodes=size,
            slices_per_rack=cell.nodes_per_rack // size,
            usable=usable[size],
            share=usable[size].mean / cell.nodes,
            lost_share=1 - usable[size].mean / best if best else 0.0,
            group_gpus=power_of_two(size * cell.gpus_per_node),
            leftover_nodes=cell.nodes_per_rack % size,
            spares=_spares(question, size),
        )
        for size in sizes
    )


def _spares(question: Question, size: int) -> tuple[SpareLine, ...]:
    if question.node is None:
        return ()
    return tuple(
        spare_lines(
            racks=question.cell.racks,
            nodes_per_rack=question.cell.nodes_per_rack,
            slice_nodes=size,
            most=question.most_spares,
            node=question.node,
            faults=question.faults,
            habits=question.habits,
        )
    )


def _between(question: Question) -> Interval | None:
    """Time between interruptions; faults of the whole rack interrupt the rack and the cell too."""
    if question.node is None:
        return None
    cell = question.cell
    rate = cell.nodes_per_rack / question.node.mtbf_days
    rate += sum(1 / fault.mtbi_days for fault in question.faults)
    return Interval(
        node_days=question.node.mtbf_days, rack_days=1 / rate, cell_days=1 / rate / cell.racks
    )


def _recommended(
    question: Question, sizes: Sequence[int], lines: Sequence[SizeLine]
) -> Recommendation:
    cell, rule = question.cell, question.rule
    nodes = cell.nodes_per_rack
    chosen = advised(nodes, sizes, question.unavailable, rule)
    free = Rule(groups=False, tolerance=rule.tolerance)
    any_size = advised(nodes, sizes, question.unavailable, free)
    line = next(one for one in lines if one.slice_nodes == chosen)
    spares, why_spares = _spares_advised(question, line)
    sensitivity = stretches(nodes, sizes, rule)
    reasons = [
        _why_size(question, line, any_size, lines),
        *why_spares,
        _flips(sensitivity, question.unavailable),
    ]
    held = _stays_near(nodes, chosen, sizes)
    return Recommendation(
        slice_nodes=chosen,
        spares=spares,
        any_size=any_size,
        group_gpus=line.group_gpus,
        lost_share=line.lost_share,
        reasons=tuple(reasons + held),
        sensitivity=tuple(sensitivity),
    )


def _why_size(question: Question, line: SizeLine, any_size: int, lines: Sequence[SizeLine]) -> str:
    gpus = line.slice_nodes * question.cell.gpus_per_node
    best = max(lines, key=lambda one: one.usable.mean)
    text = f"{line.slice_nodes} nodes are {gpus} GPUs in one rack"
    if question.rule.groups and line.slice_nodes == power_of_two(line.slice_nodes):
        text += ", the largest power of two for tensor- and expert-parallel groups that loses at"
        text += f" most {question.rule.tolerance:.0%} of usable nodes against the best power of two"
    if best.slice_nodes != line.slice_nodes:
        text += f"; {best.slice_nodes} would have {_more(best, line):.1%} more usable nodes"
    if any_size not in (line.slice_nodes, best.slice_nodes):
        other = next(one for one in lines if one.slice_nodes == any_size)
        text += (
            f"; of the sizes from half a rack up {any_size} has the most, {_more(other, line):+.1%}"
        )
    return text


def _more(one: SizeLine, other: SizeLine) -> float:
    return one.usable.mean / other.usable.mean - 1 if other.usable.mean else 0.0


def _spares_advised(question: Question, line: SizeLine) -> tuple[int | None, list[str]]:
    """The fewest spares with which a rack runs out once in ten years, of those that cost no
    slice."""
    if not line.spares:
        return None, ["spares: say how often nodes fail or how long repairs take"]
    costless = [one for one in line.spares if one.fits and not one.slices_given_up]
    enough = [one for one in costless if one.exhaustions_per_rack_decade <= RARE]
    chosen = enough[0] if enough else costless[-1]
    reasons = [
        f"{chosen.spares} spares: {digits(chosen.unswappable)} interruptions a year find none left,"
        f" in the cell ({digits(chosen.exhaustions_per_rack_decade)} a rack in ten years)"
    ]
    if not enough:
        reasons.append(
            f"more than {RARE:g} a rack in ten years, but a further spare would take a slice's"
            " place: shorter repairs help more than spares"
        )
    if chosen.spares:
        reasons.append(_price(question, line.spares[chosen.spares - 1], chosen))
    if chosen.rack_faults > chosen.unswappable:
        reasons.append(
            f"faults of whole racks ({digits(chosen.rack_faults)} a year) outnumber them: no spare"
            " in the rack helps against those"
        )
    return chosen.spares, reasons


def _price(question: Question, before: SpareLine, chosen: SpareLine) -> str:
    saved = before.lost_with_swap_gpu_h - chosen.lost_with_swap_gpu_h
    held = held_gpu_h(chosen.held_nodes - before.held_nodes, question.cell.gpus_per_node)
    return (
        f"the last of them saves {saved:,.0f} GPU-hours a year; kept idle it would not pay (it"
        f" holds {held:,.0f}): slices leave the node over anyway, and small jobs get it lent"
    )


def _flips(found: Sequence[Stretch], unavailable: float) -> str:
    told = ", ".join(f"{one.slice_nodes} from {one.begin:.2%} to {one.to:.2%}" for one in found)
    return f"sensitivity ({unavailable:.2%} was asked for): {told}"


def _stays_near(nodes: int, chosen: int, sizes: Sequence[int]) -> list[str]:
    """Until where it stays within 1 % of half its size, which wastes less as nodes go."""
    half = chosen // 2
    if half not in sizes:
        return []
    until = break_even(nodes_per_rack=nodes, slice_nodes=chosen, other=half, shortfall=0.01)
    if until is None:
        return []
    return [f"slices of {half} gain less than 1 % on it up to {until:.1%} unavailability"]


def money(question: Question, gpu_hours: float) -> float | None:
    """An estimate at the given price of a GPU-hour."""
    return None if question.gpu_hour_price is None else question.gpu_hour_price * gpu_hours


def year_gpu_h(nodes: float, gpus_per_node: int) -> float:
    """GPU-hours a year of that many nodes."""
    return nodes * gpus_per_node * DAYS_PER_YEAR * HOURS_PER_DAY
