"""Which slice size a cell should use, where that advice flips, and the reasons for it.

The rule is stated, not hidden: tensor- and expert-parallel groups are powers of two, so a slice is
worth as many nodes as the largest power of two in it; of these sizes the largest one is taken that
loses at most a tolerated share of usable nodes against the best. Sizes that leave less than half of
what the best of all leaves do not count. Jobs without such groups may ask for the best of any size
from half a rack up instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rackwright.core.policy.capacity import Impossible, mean_of_rack

STEP = 0.0005  # of unavailability, in which flips are looked for before they are bisected
MOST = 0.2  # unavailability up to which they are looked for
EXACT = 1e-7
LEAST = 0.5  # of the usable nodes of the best size, that a size must leave to be advised


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where the mean usable nodes of two slice sizes are equal; `below` it the first leads."""

    below: int
    above: int
    unavailable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Unavailabilities for which one slice size is advised; `to` is where the advice flips."""

    slice_nodes: int
    begin: float
    to: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a size is chosen. `groups`: only powers of two; `tolerance`: share that may be lost."""

    groups: bool = True
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise Impossible("tolerance", self.tolerance, "a share, 0 to below 1")


def default_sizes(nodes_per_rack: int) -> list[int]:
    """Sizes worth comparing: half and whole racks, one and two less, and powers of two."""
    half = nodes_per_rack / 2
    powers = [1 << bit for bit in range(6) if half * 0.8 <= 1 << bit <= nodes_per_rack]
    rest = [nodes_per_rack // 2, nodes_per_rack - 2, nodes_per_rack - 1, nodes_per_rack]
    return sorted({size for size in (*powers, *rest) if 1 <= size <= nodes_per_rack})


def power_of_two(nodes: int) -> int:
    """The largest power of two in a slice of so many nodes."""
    return 1 << (nodes.bit_length() - 1)


def advised(nodes_per_rack: int, sizes: Sequence[int], unavailable: float, rule: Rule) -> int:
    """The slice size to use; of sizes without a power of two, as if groups did not matter."""
    usable = {size: mean_of_rack(nodes_per_rack, size, unavailable) for size in sizes}
    enough = LEAST * max(usable.values())
    sizes = [size for size in sizes if usable[size] >= enough]
    powers = [size for size in sizes if size == power_of_two(size)]
    if not (rule.groups and powers):
        large = [size for size in sizes if 2 * size >= nodes_per_rack] or sizes
        return max(large, key=lambda size: (usable[size], size))
    best = max(usable[size] for size in powers)
    return max(size for size in powers if usable[size] >= (1 - rule.tolerance) * best)


def stretches(nodes_per_rack: int, sizes: Sequence[int], rule: Rule) -> list[Stretch]:
    """What is advised from 0 to 20 % unavailability, with the flips to 0.00001 %."""
    found: list[Stretch] = []
    begin, before = 0.0, advised(nodes_per_rack, sizes, 0.0, rule)
    for step in range(1, round(MOST / STEP) + 1):
        at = step * STEP
        if advised(nodes_per_rack, sizes, at, rule) == before:
            continue
        low, high = at - STEP, at
        while high - low > EXACT:
            middle = (low + high) / 2
            same = advised(nodes_per_rack, sizes, middle, rule) == before
            low, high = (middle, high) if same else (low, middle)
        found.append(Stretch(slice_nodes=before, begin=begin, to=high))
        begin, before = high, advised(nodes_per_rack, sizes, high, rule)
    return [*found, Stretch(slice_nodes=before, begin=begin, to=MOST)]


def crossings(nodes_per_rack: int, sizes: Sequence[int]) -> list[Crossing]:
    """Every break-even between any two sizes, from above 0 to 20 % unavailability."""
    steps = [STEP / 10, *(step * STEP for step in range(1, round(MOST / STEP) + 1))]
    curves = {size: [mean_of_rack(nodes_per_rack, size, at) for at in steps] for size in sizes}
    return [
        crossing
        for one, other in combinations(sorted(sizes), 2)
        for crossing in _between(nodes_per_rack, one, other, steps, curves)
    ]


def _between(
    nodes: int, one: int, other: int, steps: list[float], curves: dict[int, list[float]]
) -> Iterator[Crossing]:
    ahead = [mine > its for mine, its in zip(curves[one], curves[other], strict=True)]
    for at in range(1, len(steps)):
        if ahead[at] == ahead[at - 1]:
            continue
        low, high = steps[at - 1], steps[at]
        while high - low > EXACT:
            middle = (low + high) / 2
            first = mean_of_rack(nodes, one, middle) > mean_of_rack(nodes, other, middle)
            low, high = (middle, high) if first == ahead[at - 1] else (low, middle)
        first_leads = ahead[at - 1]
        yield Crossing(
            below=one if first_leads else other,
            above=other if first_leads else one,
            unavailable=(low + high) / 2,
        )
