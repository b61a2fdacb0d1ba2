"""For each rack the cheapest ways to make it take more slices of a blocked job.

A whole slice of a victim leaves as a whole, and a shared node comes free when all its tenants
leave. A rack is small, so the cheapest ways are found exactly, by sums over what can be freed.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from rackwright.core.index import bits
from rackwright.core.policy.ask import Same
from rackwright.core.policy.defrag_cost import Blocked, hold_cost, slice_gpus
from rackwright.core.policy.draft import Draft
from rackwright.core.racks import Rack, Tenancy, spare_target
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId
from rackwright.wire.quick import quick

KEPT = 8  # ways kept for one rack and one number of slices, the cheapest first

Left = tuple[JobId, int]
"""One slice of one job that leaves: the job, and the slice's index."""
Cover = tuple[float, int, tuple[Left, ...]]
"""Cost of the victims, their number, what leaves: in this order of preference."""
Option = tuple[int, Cover]
"""One thing that may be freed: how much of it counts, and what it takes."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """These slices leave, then `pieces` more slices of `size` nodes (0: part of one) fit the rack.

    `hold` is the rack's idle time and `cost` that and its victims, each once, in GPU-hours.
    """

    rack: int
    size: int
    pieces: int
    leaves: tuple[Left, ...]
    hold: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Racks whose nodes have `same` in common: what the job misses there, and the ways to it.

    `missing` counts its slices by size that do not fit as things are; `ways` by size, cheapest
    first. `fits` are the racks that take a slice of the largest size that is missing: too few.
    """

    same: Same
    missing: tuple[tuple[int, int], ...]
    ways: dict[int, tuple[Way, ...]]
    fits: int = 0


def surveys(case: Blocked) -> list[Survey]:
    """One for each sort of nodes that the job may have, in the order of their names."""
    draft = Draft(fleet=case.fleet, ask=case.ask)
    nodes: dict[Same, dict[int, int]] = {}
    for number in bits(case.ask.racks):
        rack = case.fleet.racks[number]
        fit = rack.takes_full if case.ask.across else rack.takes
        for alike in draft.alike(rack, fit & ~case.ask.barred.get(number, 0)):
            same = case.ask.same_of(rack.nodes[(alike & -alike).bit_length() - 1])
            if same is not None:
                nodes.setdefault(same, {})[number] = alike
    look = _survey_parts if case.made.pieces[0].gpus else _survey_nodes
    return [look(case, same, nodes[same]) for same in sorted(nodes)]


# Whole nodes


@dataclass(slots=True, kw_only=True)
class _Opening:
    """A rack's nodes that count, and what slices of the job that fit already take of it."""

    rack: Rack
    nodes: int
    used: int = 0
    slices: int = 0

    @property
    def room(self) -> int:
        """Free nodes that no slice of the job has yet."""
        return (self.rack.free & self.nodes).bit_count() - self.used


def _kept(case: Blocked, rack: Rack, size: int) -> int:
    """Spares of others that a slice of this size leaves alone."""
    return rack.shape.target if size < case.ask.full else 0


def _survey_nodes(case: Blocked, same: Same, nodes: dict[int, int]) -> Survey:
    racks = case.fleet.racks
    openings = [_Opening(rack=racks[number], nodes=mask) for number, mask in nodes.items()]
    asked = Counter(piece.nodes for piece in case.made.pieces)
    missing: dict[int, int] = {}
    for size in sorted(asked, reverse=True):
        left = asked[size] - _seated(case, openings, size, asked[size])
        if left:
            missing[size] = left
    ways: dict[int, tuple[Way, ...]] = {}
    for size, count in missing.items():
        found = [way for one in openings for way in _ways(case, one, size, count)]
        ways[size] = tuple(sorted(found, key=_order))
    lacks = tuple(sorted(missing.items(), reverse=True))
    return Survey(same=same, missing=lacks, ways=ways, fits=_fits(case, openings, lacks))


def _fits(case: Blocked, openings: list[_Opening], lacks: tuple[tuple[int, int], ...]) -> int:
    if not lacks:
        return 0
    size = lacks[0][0]
    return sum(
        1 << one.rack.number
        for one in openings
        if one.room + one.used - _kept(case, one.rack, size) >= size
    )


def _order(way: Way) -> tuple[float, int, int, tuple[Left, ...]]:
    return (way.cost, len(way.leaves), way.rack, way.leaves)


def _seated(case: Blocked, openings: list[_Opening], size: int, count: int) -> int:
    """How many of so many slices fit as things are, each given the rack where it leaves least."""
    most = case.job.spec.max_per_rack
    heap = [
        (one.room, turn)
        for turn, one in enumerate(openings)
        if one.room - _kept(case, one.rack, size) >= size
    ]
    heapify(heap)
    seated = 0
    while heap and seated < count:
        _, turn = heappop(heap)
        one = openings[turn]
        if most is not None and one.slices >= most:
            continue
        one.used += size
        one.slices += 1
        seated += 1
        if one.room - _kept(case, one.rack, size) >= size:
            heappush(heap, (one.room, turn))
    return seated


def _ways(case: Blocked, opening: _Opening, size: int, count: int) -> Iterator[Way]:
    """Ways to let in one more slice of this size, and if the rack is large enough, more of them."""
    rack = opening.rack
    most = case.job.spec.max_per_rack
    slots = (opening.nodes.bit_count() - opening.used) // size
    if most is not None:
        slots = min(slots, most - opening.slices)
    if slots < 1 or not rack.tenancies or _is_pinned(case, opening, size):
        return
    groups = _groups(case, opening)
    hold = hold_cost(case, _gpus(rack, rack.usable))
    for pieces in range(1, min(slots, count) + 1):
        least = pieces * size - opening.room
        fits = (
            cover
            for freed, cover in covers_of(groups, least, least + _kept(case, rack, size))
            if _leaves_spares(case, rack, size, freed - least, cover)
        )
        for cost, _, leaves in _minimal(fits):
            yield Way(
                rack=rack.number,
                size=size,
                pieces=pieces,
                leaves=tuple(sorted(leaves)),
                hold=hold,
                cost=cost + hold,
            )


def _is_pinned(case: Blocked, opening: _Opening, size: int) -> bool:
    """Would a slice not fit if all that could ever be moved had gone?"""
    if case.fleet.policy.interactive_movable_queues:
        return False  # some of what counts as pinned may move
    there = opening.nodes & ~opening.rack.pinned
    return there.bit_count() - opening.used < size


def _leaves_spares(case: Blocked, rack: Rack, size: int, over: int, cover: Cover) -> bool:
    """Are the spares left alone that those who stay want? `over` nodes are free beyond the need."""
    if size >= case.ask.full:
        return True
    gone = set(cover[2])
    staying = 0
    for tenancy in rack.tenancies:
        if tenancy.protected and (tenancy.job, tenancy.slice) not in gone:
            staying |= tenancy.mask
    return over >= spare_target(case.fleet.policy, staying.bit_count())


def _gpus(rack: Rack, nodes: int) -> int:
    return sum(rack.nodes[place].gpus for place in bits(nodes))


def _groups(case: Blocked, opening: _Opening) -> list[list[Option]]:
    """What can leave: of each group at most one option is taken.

    A job is one group, as it is paid for once however many of its slices go; so is a shared node.
    """
    whole: dict[JobId, list[tuple[int, int]]] = {}
    shared: dict[int, list[Tenancy]] = {}
    for tenancy in opening.rack.tenancies:
        if tenancy.gpus:
            shared.setdefault(tenancy.mask, []).append(tenancy)
            continue
        freed = (tenancy.mask & opening.nodes).bit_count()
        if freed and tenancy.job != case.job.id:
            whole.setdefault(tenancy.job, []).append((-freed, tenancy.slice))
    found = [_of_job(case, name, sorted(parts)) for name, parts in sorted(whole.items())]
    found += [
        _of_node(case, tenants) for mask, tenants in sorted(shared.items()) if mask & opening.nodes
    ]
    return [options for options in found if options]


def _of_job(case: Blocked, name: JobId, parts: list[tuple[int, int]]) -> list[Option]:
    """Its largest slice here, its two largest, and so on: they all cost the same."""
    options: list[Option] = []
    freed = 0
    leaves: tuple[Left, ...] = ()
    for gain, index in parts:
        price = price_of_slice(case, name, index)
        if isinstance(price, str):
            continue
        freed -= gain
        leaves = (*leaves, (name, index))
        options.append((freed, (price.total, 1, leaves)))
    return options


def _of_node(case: Blocked, tenants: list[Tenancy]) -> list[Option]:
    """All tenants of a shared node."""
    total = 0.0
    for tenancy in tenants:
        price = price_of_slice(case, tenancy.job, tenancy.slice)
        if isinstance(price, str):
            return []
        total += price.total
    leaves = tuple(sorted((tenancy.job, tenancy.slice) for tenancy in tenants))
    return [(1, (total, len(tenants), leaves))]


def price_of_slice(case: Blocked, name: JobId, index: int) -> CostTerms | str:
    """What it costs to have this slice leave: the price of its job, or what forbids it."""
    price = case.price(name)
    victim = case.fleet.jobs[name]
    equal = victim.spec.priority == case.job.spec.priority and not case.takes_back(victim)
    if isinstance(price, str) or not equal:
        return price
    smaller = (1, slice_gpus(case.fleet, victim.part(index))) < case.size
    return price if smaller else "not-smaller"


def covers_of(groups: list[list[Option]], least: int, most: int) -> list[tuple[int, Cover]]:
    """Cheapest choices that free `least` or more, each with what it frees, counted up to `most`."""
    if most < 1:
        return []
    best: list[list[Cover]] = [[] for _ in range(most + 1)]
    best[0] = [(0.0, 0, ())]
    for options in groups:
        for freed in range(most - 1, -1, -1):
            for cost, victims, leaves in best[freed]:
                for gain, (price, more, gone) in options:
                    to = best[min(most, freed + gain)]
                    to.append((cost + price, victims + more, leaves + gone))
        for kept in best:
            kept.sort()
            del kept[KEPT:]
    return [(freed, cover) for freed in range(max(least, 0), most + 1) for cover in best[freed]]


def _minimal(covers: Iterator[Cover]) -> list[Cover]:
    """The cheapest covers that hold no victim in vain."""
    kept: list[Cover] = []
    for cover in sorted(covers):
        gone = set(cover[2])
        if not any(gone >= set(other[2]) for other in kept):
            kept.append(cover)
    return kept[:KEPT]


# Part of a node


def _survey_parts(case: Blocked, same: Same, nodes: dict[int, int]) -> Survey:
    wanted = case.made.pieces[0].gpus
    found = [
        way
        for number, mask in nodes.items()
        for place in bits(mask & ~case.fleet.racks[number].free)
        for way in _part_ways(case, case.fleet.racks[number], place, wanted)
    ]
    return Survey(same=same, missing=((0, 1),), ways={0: tuple(sorted(found, key=_order))})


def _part_ways(case: Blocked, rack: Rack, place: int, wanted: int) -> Iterator[Way]:
    """Ways to free so many GPUs of one node in use."""
    gpus = rack.nodes[place].gpus
    taken = rack.taken_gpus(place).bit_count()
    groups: list[list[Option]] = []
    for tenancy in rack.tenants_at(place):
        price = price_of_slice(case, tenancy.job, tenancy.slice)
        if isinstance(price, CostTerms):
            gain = tenancy.gpus.bit_count() or gpus
            groups.append([(gain, (price.total, 1, ((tenancy.job, tenancy.slice),)))])
    least = wanted - (gpus - taken)
    if least < 1:
        return
    hold = hold_cost(case, gpus - taken)
    for cost, _, leaves in _minimal(cover for _, cover in covers_of(groups, least, least)):
        yield Way(
            rack=rack.number,
            size=0,
            pieces=1,
            leaves=tuple(sorted(leaves)),
            hold=hold,
            cost=cost + hold,
        )
