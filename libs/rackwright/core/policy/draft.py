"""A placement in the making: what it has taken so far, and what each rack still offers it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import protected
from rackwright.core.policy.ask import Ask, Same
from rackwright.core.policy.scoring import Key, Room, is_lent, key_of, room_of
from rackwright.core.racks import Node, Rack, spare_target
from rackwright.core.shapes import RackShape


class Seat(NamedTuple):
    """Nodes of one rack for one slice; `gpus` 0 for whole nodes. `lent`: they are spares."""

    rack: int
    nodes: int
    gpus: int = 0
    lent: bool = False


@dataclass(slots=True, kw_only=True)
class Draft:
    """Built up slice by slice; `same` is what all nodes have in common, None while that is open."""

    fleet: Fleet
    ask: Ask
    same: Same | None = None
    taken: dict[int, int] = field(default_factory=dict)
    slices: dict[int, int] = field(default_factory=dict)

    def fork(self) -> "Draft":
        """A copy to try something on."""
        return Draft(
            fleet=self.fleet,
            ask=self.ask,
            same=self.same,
            taken=dict(self.taken),
            slices=dict(self.slices),
        )

    def take(self, seat: Seat) -> None:
        """These nodes are the job's now."""
        self.taken[seat.rack] = self.taken.get(seat.rack, 0) | seat.nodes
        self.slices[seat.rack] = self.slices.get(seat.rack, 0) + 1

    def special(self) -> int:
        """Racks whose shape does not say what they offer this job."""
        racks = 0
        for number in (*self.taken, *self.ask.barred):
            racks |= 1 << number
        return racks

    def suits(self, shape: RackShape, racks: int) -> bool:
        """Are the nodes of these racks, all of one kind, of a kind the job may have?"""
        kinds = self.ask.kinds
        if shape.kind in kinds:
            same = kinds[shape.kind]
        else:
            rack = self.fleet.racks[(racks & -racks).bit_length() - 1]
            same = self.ask.same_of(_example(rack))
        return same is not None and (self.same is None or same == self.same)

    def offers(self, size: int, within: int, *, one: bool = False) -> dict[Key, int]:
        """Racks that take a slice of `size` nodes, by how much they are to be preferred.

        `one`: only the best is wanted, so what cannot be best may be left out.
        """
        ask, found = self.ask, dict[Key, int]()
        unsure: list[tuple[Key, int]] = []
        looked = self.special()
        plain = within & ~looked
        looked &= within
        across = ask.across
        for shape, racks in self.fleet.index.by_shape.items():
            if (shape[1] if across else shape[0]) < size:
                continue
            racks &= plain
            if not racks:
                continue
            if not shape.kind:
                looked |= racks
                continue
            if not self.suits(shape, racks):
                continue
            room, sure = room_of(ask, shape, size)
            key = key_of(ask, room, size)
            if key is not None and sure:
                found[key] = found.get(key, 0) | racks
            elif key is not None:
                unsure.append((key, racks))
        self._look_at(found, looked, size)
        for key, racks in unsure:
            self._ask_each(found, key, racks, size, one=one)
        return found

    def _look_at(self, found: dict[Key, int], racks: int, size: int) -> None:
        for number in bits(racks):
            seen = self.look(number, size)
            if seen is not None:
                found[seen[0]] = found.get(seen[0], 0) | 1 << number

    def _ask_each(
        self, found: dict[Key, int], best: Key, racks: int, size: int, *, one: bool
    ) -> None:
        """Racks whose key is `best` or worse, which only the rack itself can tell."""
        if one and found and min(found) < best:
            return
        for number in bits(racks):
            seen = self.look(number, size)
            if seen is not None:
                found[seen[0]] = found.get(seen[0], 0) | 1 << number
                if one and seen[0] == best:
                    return

    def look(self, number: int, size: int) -> tuple[Key, int] | None:
        """How good one rack is for a slice, and the nodes it may take there; None: not at all."""
        ask, rack = self.ask, self.fleet.racks[number]
        mine = self.taken.get(number, 0)
        most = ask.spec.max_per_rack
        if most is not None and self.slices.get(number, 0) >= most:
            return None
        best: tuple[Key, int] | None = None
        every = self.open_nodes(rack)
        for nodes in self.alike(rack, every) if every.bit_count() >= size else ():
            key = key_of(ask, self._room(rack, nodes, mine, size), size)
            if key is not None and (best is None or key < best[0]):
                best = (key, nodes)
        return best

    def _room(self, rack: Rack, nodes: int, mine: int, size: int) -> Room:
        shape = rack.shape
        after = shape.target
        if protected(self.ask.spec, size):
            there = rack.protected.bit_count() + mine.bit_count()
            after = spare_target(self.ask.policy, there + size)
        return Room(
            nodes.bit_count(),
            shape.target,
            after,
            shape.empty and not mine,
            shape.demerit,
            shape.pinned,
            mine != 0,
        )

    def open_nodes(self, rack: Rack) -> int:
        """Free nodes of a rack that are fit enough and not ruled out."""
        fit = rack.takes_full if self.ask.across else rack.takes
        ruled_out = self.taken.get(rack.number, 0) | self.ask.barred.get(rack.number, 0)
        return rack.free & fit & ~ruled_out

    def alike(self, rack: Rack, nodes: int) -> Iterator[int]:
        """These nodes in sets of the same kind, as far as the job asks for that."""
        if rack.kind:
            if self.suits(rack.shape, 1 << rack.number):
                yield nodes
            return
        groups: dict[Same, int] = {}
        for place in bits(nodes):
            same = self.ask.same_of(rack.nodes[place])
            if same is not None and (self.same is None or same == self.same):
                groups[same] = groups.get(same, 0) | 1 << place
        yield from groups.values()

    def seat(self, number: int, size: int) -> Seat:
        """Take `size` nodes of a rack that has offered them, the best ones first."""
        seen = self.look(number, size)
        assert seen is not None, number
        key, nodes = seen
        seat = Seat(number, self.pick(self.fleet.racks[number], nodes, size), 0, is_lent(key))
        self.take(seat)
        return seat

    def pick(self, rack: Rack, nodes: int, size: int) -> int:
        """Clean nodes before those whose last worker is still leaving; nodes that are good for one
        rack only before those that are good for more; then by position."""
        leaving = 0
        for one in rack.leaving:
            leaving |= 1 << one.node
        full = 0 if self.ask.across else rack.takes_full
        picked = 0
        for part in (
            nodes & ~leaving & ~full,
            nodes & ~leaving & full,
            nodes & leaving,
        ):
            mine = part & self.ask.previous.get(rack.number, 0)
            for place in (*bits(mine), *bits(part & ~mine)) if mine else bits(part):
                if not size:
                    return picked
                picked |= 1 << place
                size -= 1
        return picked


def _example(rack: Rack) -> Node:
    return rack.nodes[(rack.takes & -rack.takes).bit_length() - 1]
