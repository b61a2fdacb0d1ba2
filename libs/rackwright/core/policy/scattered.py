"""Slices cut to what racks have free, for work whose topology is `preferred` or `any`."""

from dataclasses import dataclass

from rackwright.core.index import bits
from rackwright.core.policy.ask import Ask
from rackwright.core.policy.cut import Piece
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.nearness import nearest

BROKEN, UNBROKEN = range(2)
Rooms = dict[tuple[int, int], int]
"""Racks by (BROKEN or UNBROKEN, nodes that this job may have there)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The nodes of one replica of one group, to be cut anew; no part larger than `most`."""

    group: int
    replica: int
    nodes: int
    most: int


def gangs_of(pieces: tuple[Piece, ...]) -> list[Gang]:
    """Whole gangs from slices that did not fit."""
    by_name: dict[tuple[int, int], list[int]] = {}
    for piece in pieces:
        by_name.setdefault((piece.group, piece.replica), []).append(piece.nodes)
    return [
        Gang(group=group, replica=replica, nodes=sum(sizes), most=max(sizes))
        for (group, replica), sizes in by_name.items()
    ]


def scatter(draft: Draft, gangs: list[Gang], *, broken_only: bool) -> list[list[Seat]] | None:
    """Seats for each gang on the fewest racks, broken ones first if only those may be used.

    Spares of others are left alone. Changes the draft.
    """
    found = []
    for gang in gangs:
        rooms = _rooms(draft, gang)
        seats = _scatter(draft, gang, rooms, broken_only=broken_only)
        if seats is None:
            return None
        found.append(seats)
    return found


def _scatter(draft: Draft, gang: Gang, rooms: Rooms, *, broken_only: bool) -> list[Seat] | None:
    seats: list[Seat] = []
    left = gang.nodes
    while left:
        key = _next_room(rooms, left, broken_only=broken_only)
        if key is None:
            return None
        (number,) = nearest(draft.ask.topology, (), rooms[key], 1, tuple(draft.taken))
        rooms[key] &= ~(1 << number)
        if not rooms[key]:
            del rooms[key]
        part = min(left, key[1])
        rack = draft.fleet.racks[number]
        nodes = max(draft.alike(rack, draft.open_nodes(rack)), key=int.bit_count)
        seat = Seat(number, draft.pick(rack, nodes, part))
        draft.take(seat)
        seats.append(seat)
        left -= part
        _look_into(draft, gang, number, rooms)  # it may have room for another part
    return seats


def _next_room(rooms: Rooms, left: int, *, broken_only: bool) -> tuple[int, int] | None:
    """The smallest room for all that is left, else the largest room there is."""
    open_ = [key for key in rooms if not broken_only or key[0] == BROKEN]
    enough = [key for key in open_ if key[1] >= left]
    if enough:
        return min(enough, key=lambda key: (key[1], key[0]))
    return max(open_, key=lambda key: (key[1], -key[0]), default=None)


def _rooms(draft: Draft, gang: Gang) -> Rooms:
    rooms: Rooms = {}
    looked = draft.special() & draft.ask.racks
    plain = draft.ask.racks & ~looked
    for shape, racks in draft.fleet.index.by_shape.items():
        here = racks & plain
        if not here or not shape.full:
            continue
        if not shape.kind:
            looked |= here
        elif draft.suits(shape, here):
            empty = shape.empty and shape.full >= draft.ask.whole
            _add(rooms, draft.ask, gang, shape.full - shape.target, empty, here)
    for number in bits(looked):
        _look_into(draft, gang, number, rooms)
    return rooms


def _look_into(draft: Draft, gang: Gang, number: int, rooms: Rooms) -> None:
    """Add the room that the job may have in this rack now."""
    if _crowded(draft, number):
        return
    rack = draft.fleet.racks[number]
    alike = draft.alike(rack, draft.open_nodes(rack))
    free = max((nodes.bit_count() for nodes in alike), default=0)
    mine = number in draft.taken
    empty = rack.shape.empty and not mine and free >= draft.ask.whole
    _add(rooms, draft.ask, gang, free - rack.shape.target, empty, 1 << number)


def _crowded(draft: Draft, number: int) -> bool:
    most = draft.ask.spec.max_per_rack
    return most is not None and draft.slices.get(number, 0) >= most


def _add(rooms: Rooms, ask: Ask, gang: Gang, free: int, empty: bool, racks: int) -> None:
    step = ask.spec.slice_multiple
    room = min(free, gang.most)
    room -= room % step
    if room > 0:
        key = (UNBROKEN if empty else BROKEN, room)
        rooms[key] = rooms.get(key, 0) | racks
