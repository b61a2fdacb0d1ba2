"""Work of one node or part of one: partly used nodes first, then nodes that gangs cannot have."""

from collections.abc import Iterator

from rackwright.core.index import bits
from rackwright.core.jobs import need_of
from rackwright.core.policy.ask import Ask
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.scoring import LENT_FIRST
from rackwright.core.racks import LENT, ODD, Node, Rack
from rackwright.wire.nodes import FITNESS_ORDER


def place_small(draft: Draft, gpus: int) -> Seat | None:
    """A seat on `gpus` GPUs of one node, or on one whole node when `gpus` is 0.

    Work without GPUs sits on the share of so many, see `resources`.
    """
    if draft.ask.spec.gpus == 0:
        return _without_gpus(draft, gpus)
    used = _on_used_node(draft, gpus) if gpus else None
    return used or _on_free_node(draft, gpus)


def _on_used_node(draft: Draft, gpus: int) -> Seat | None:
    """The partly used node with the fewest GPUs left over."""
    index, ask = draft.fleet.index, draft.ask
    for free in range(gpus, ask.topology.gpus_per_node):
        for flag in _flags(ask, free):
            racks = index.with_flag(flag) & ask.racks
            for number in _in_order(draft, racks) if racks else ():
                seat = _used_node(draft, number, gpus, free, lent=flag != free)
                if seat is not None:
                    return seat
    return None


def _flags(ask: Ask, free: int) -> tuple[int, ...]:
    """Nodes that are lent, and for work that is not lent in any case those that are not."""
    if not ask.lendable:
        return (free,)
    return (LENT + free,) if ask.spec.gpus == 0 else (LENT + free, free)


def _without_gpus(draft: Draft, share: int) -> Seat | None:
    """A lent seat on the share of so many GPUs: where others are lent some already, else on a spare
    or another free node of a rack that takes no full slice as it is."""
    ask = draft.ask
    if not ask.lendable:
        return None
    seat = _on_used_node(draft, share)
    if seat is None:
        broken = broken_racks(draft)
        best = draft.offers(1, broken, one=True)
        if not best:
            return None
        racks = ask.liked(best[min(best)])
        found = draft.seat((racks & -racks).bit_length() - 1, 1)
        rack = draft.fleet.racks[found.rack]
        seat = _seat(rack, found.nodes.bit_length() - 1, 0, share, lent=True)
    return seat


def broken_racks(draft: Draft) -> int:
    """Racks that could not take a full slice as they are, so that none is spoiled."""
    found = 0
    for shape, racks in draft.fleet.index.by_shape.items():
        if shape.usable < draft.ask.whole:
            found |= racks
    return found & draft.ask.racks


def _in_order(draft: Draft, racks: int) -> Iterator[int]:
    """Racks by what is pinned there (pinned work to the most), then by free nodes, then by number.

    Lazily: nearly always the first one is taken.
    """
    pinned = draft.ask.pinned
    by_key: dict[tuple[int, int], int] = {}
    for shape, having in draft.fleet.index.by_shape.items():
        here = having & racks
        if here:
            key = (-shape.pinned if pinned else shape.pinned, shape.usable)
            by_key[key] = by_key.get(key, 0) | here
    for key in sorted(by_key):
        yield from bits(by_key[key])


def _used_node(draft: Draft, number: int, gpus: int, free: int, *, lent: bool) -> Seat | None:
    rack = draft.fleet.racks[number]
    fit = rack.takes & ~draft.ask.barred.get(number, 0)
    for place, taken in rack.partial:
        node = rack.nodes[place]
        if not fit >> place & 1 or bool(rack.lent >> place & 1) is not lent:
            continue
        suits = node.gpus - taken.bit_count() == free and draft.ask.same_of(node) is not None
        if suits:
            return _seat(rack, place, taken, gpus, lent=lent)
    return None


def _seat(rack: Rack, place: int, taken: int, gpus: int, *, lent: bool) -> Seat:
    """The whole node when no GPUs are asked for, else its lowest free ones."""
    mask = 0
    for gpu in range(rack.nodes[place].gpus):
        if gpus and not taken >> gpu & 1:
            mask |= 1 << gpu
            gpus -= 1
    return Seat(rack.number, 1 << place, mask, lent)


def _on_free_node(draft: Draft, gpus: int) -> Seat | None:
    """A free node: a spare that may be lent, one that gangs cannot have, one of a broken rack, one
    of the whole rack that loses least.
    """
    offers = draft.offers(1, draft.ask.racks, one=True)
    best = min(offers, default=None)
    if best is None or best[0] != LENT_FIRST:
        odd = _odd_node(draft, gpus)
        if odd is not None or best is None:
            return odd
    racks = draft.ask.liked(offers[best])
    seat = draft.seat((racks & -racks).bit_length() - 1, 1)
    rack = draft.fleet.racks[seat.rack]
    return _seat(rack, seat.nodes.bit_length() - 1, 0, gpus, lent=seat.lent)


def _odd_node(draft: Draft, gpus: int) -> Seat | None:
    """A node on probation, which only restartable work tries out, or one good for a single GPU."""
    racks = draft.fleet.index.with_flag(ODD) & draft.ask.racks
    for number in bits(racks):
        rack = draft.fleet.racks[number]
        used = dict(rack.partial)
        odd = rack.takes_one & ~rack.takes & ~draft.ask.barred.get(number, 0)
        for place in bits(odd):
            taken = used.get(place, 0)
            room = rack.free >> place & 1 or (gpus and taken)
            lent = bool(rack.lent >> place & 1)
            if not room or (lent and not draft.ask.lendable):
                continue
            if _takes_odd(draft, rack.nodes[place], gpus + taken.bit_count()):
                return _seat(rack, place, taken, gpus, lent=lent)
    return None


def _takes_odd(draft: Draft, node: Node, gpus: int) -> bool:
    spec = draft.ask.spec
    if node.probation_until > draft.fleet.time and not spec.restartable:
        return False
    return (
        FITNESS_ORDER[node.fitness] >= FITNESS_ORDER[need_of(spec, 1)]
        and node.gpus >= gpus
        and draft.ask.same_of(node) is not None
    )
