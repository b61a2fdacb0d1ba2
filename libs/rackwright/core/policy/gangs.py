"""Slices of whole nodes on racks: the best ones in the lowest domain of the tree that holds them.

Slices are taken largest first; slices of one size go one after the other to the rack that is best
at that moment, so a rack that a first slice made better or worse is compared anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from rackwright.core.index import bits, to_bytes
from rackwright.core.policy.ask import Same
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.nearness import nearest
from rackwright.core.policy.scoring import Key
from rackwright.core.topology import Level, Path

Batch = tuple[int, int]
"""(nodes of a slice, number of such slices)"""

Fit = tuple[int, Path, int]
"""(whole racks of a domain, its path, its racks)"""

Within = tuple[Path, int]
"""(path of a domain, those of its racks that may be used)"""

# Domains that hold the job and are tried out where only trying tells what is left over.
COMPARED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """Seats in the order of the batches; smaller `rank` is better."""

    seats: list[list[Seat]]
    draft: Draft
    rank: tuple[int, int, Path]


def choose(draft: Draft, size: int, count: int, within: Within) -> list[Seat] | None:
    """Seats for `count` slices of `size` nodes in a domain, all or none. Changes the draft."""
    path, racks = within
    offers = draft.offers(size, racks, one=count == 1)
    topology = draft.ask.topology
    heap = list(offers)
    heapify(heap)
    seats: list[Seat] = []
    while len(seats) < count and heap:
        key = heappop(heap)
        racks = offers.pop(key)
        liked, missing = draft.ask.liked(racks), count - len(seats)
        for number in nearest(topology, path, liked, missing, tuple(draft.taken)):
            racks &= ~(1 << number)
            seats.append(draft.seat(number, size))
            again = draft.look(number, size)
            if again is not None:
                _put(offers, heap, again[0], 1 << number)
            if heap and heap[0] < key:
                break  # the rack just used is now the best of all
        if racks:
            _put(offers, heap, key, racks)
    return seats if len(seats) == count else None


def _put(offers: dict[Key, int], heap: list[Key], key: Key, racks: int) -> None:
    if key not in offers:
        heappush(heap, key)
    offers[key] = offers.get(key, 0) | racks


def seat_all(draft: Draft, batches: list[Batch], within: Within) -> list[list[Seat]] | None:
    """Seats for all batches on these racks, or None. Changes the draft."""
    found = []
    for size, count in batches:
        seats = choose(draft, size, count, within)
        if seats is None:
            return None
        found.append(seats)
    return found


def place_gang(draft: Draft, batches: list[Batch]) -> Seated | None:
    """Seats for all slices of a job, in the lowest domain that holds all of them."""
    if len(batches) == 1 and batches[0][1] == 1:
        seats = seat_all(draft, batches, ((), draft.ask.racks))
        return None if seats is None else Seated(seats=seats, draft=draft, rank=(0, 0, ()))
    best: Seated | None = None
    for same in variants(draft, batches[0][0]):
        trial = draft.fork()
        trial.same = same
        found = _lowest(trial, batches)
        if found is not None and (best is None or found.rank < best.rank):
            best = found
    return best


def variants(draft: Draft, size: int) -> list[Same]:
    """What nodes have in common, for each sort of nodes that racks have `size` of."""
    found: set[Same] = set()
    looked = draft.special() & draft.ask.racks
    for shape, racks in draft.fleet.index.by_shape.items():
        here = racks & draft.ask.racks
        if shape.full < size or not here:
            continue
        if not shape.kind:
            looked |= here
        elif draft.suits(shape, here):
            same = draft.ask.kinds[shape.kind]
            if same is not None:
                found.add(same)
    for number in bits(looked):
        rack = draft.fleet.racks[number]
        for nodes in draft.alike(rack, draft.open_nodes(rack)):
            same = draft.ask.same_of(rack.nodes[(nodes & -nodes).bit_length() - 1])
            if same is not None and nodes.bit_count() >= size:
                found.add(same)
    return sorted(found)


def _lowest(draft: Draft, batches: list[Batch]) -> Seated | None:
    size, count = batches[0]
    layers, whole = _layers(draft, size)
    if sum(layer.bit_count() for layer in layers) < count:
        return None
    topology = draft.ask.topology
    for depth in range(topology.depth, -1, -1):
        # Full slices of one size use a whole rack each: a domain with just so many is the best.
        exact = size >= draft.ask.whole and len(batches) == 1
        fits = _holding(topology.level(depth), layers, whole, count, exact=exact)
        hit = exact and bool(fits) and fits[0][0] == count
        best = _best(draft, batches, fits, -depth, whole)
        if best is None and hit:
            fits = _holding(topology.level(depth), layers, whole, count, exact=False)
            best = _best(draft, batches, fits, -depth, whole)
        if best is not None:
            return best
    return None


def _best(
    draft: Draft, batches: list[Batch], fits: list[Fit], height: int, whole: int
) -> Seated | None:
    best: Seated | None = None
    for turn, found in enumerate(_tried(draft, batches, fits, height, whole)):
        if best is None or found.rank < best.rank:
            best = found
        # Full slices use one whole rack each, so the first domain that works leaves fewest.
        if batches[0][0] >= draft.ask.whole or turn + 1 == COMPARED:
            break
    return best


def _holding(level: Level, layers: list[int], whole: int, count: int, *, exact: bool) -> list[Fit]:
    """Domains with room for so many slices, as a heap: those with the fewest whole racks first.

    `exact`: stop at one that has just as many whole racks as there are slices.
    """
    if len(layers) == 1 and layers[0].bit_count() < count:
        return []
    first, *rest = [to_bytes(layer) for layer in layers]
    wholes, read = to_bytes(whole), int.from_bytes
    fits: list[Fit] = []
    for one in level:
        # Domain.count by hand: this line runs for every block of the cell.
        room = (read(first[one[2] : one[3]], "little") & one[4]).bit_count()
        if rest and 0 < room < count:
            room += sum(one.count(layer) for layer in rest)
        if room >= count:
            fits.append((one.count(wholes), one.path, one.racks))
            if exact and fits[-1][0] == count:
                return fits[-1:]
    heapify(fits)
    return fits


def _tried(
    draft: Draft,
    batches: list[Batch],
    fits: list[Fit],
    height: int,
    whole: int,
) -> Iterator[Seated]:
    while fits:
        wholes, path, racks = heappop(fits)
        trial = draft.fork()
        seats = seat_all(trial, batches, (path, racks & draft.ask.racks))
        if seats is not None:
            used = sum(1 for number in trial.taken if whole >> number & 1)
            yield Seated(seats=seats, draft=trial, rank=(height, wholes - used, path))


def _layers(draft: Draft, size: int) -> tuple[list[int], int]:
    """Sets of racks that have room for one slice, for two, and so on; and the whole racks."""
    ask = draft.ask
    most = ask.spec.max_per_rack
    layers: list[int] = []
    whole = 0
    for shape, racks in draft.fleet.index.by_shape.items():
        racks &= ask.racks
        if shape.full < size or not racks:
            continue
        if shape.full >= ask.whole:
            whole |= racks
        slots = shape.full // size if most is None else min(most, shape.full // size)
        while len(layers) < slots:
            layers.append(0)
        for slot in range(slots):
            layers[slot] |= racks
    return layers, whole
