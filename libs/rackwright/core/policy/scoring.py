"""The order in which racks are preferred for one slice of whole nodes. Smaller keys come first.

Two orders of the policy page meet here. A protected slice looks at racks, spares, history and what
is left over. A small slice (not protected, or one that would break a whole rack) looks for lendable
spares, then broken racks, then the whole rack that loses least. Ties are left to distance and the
rack's number, which the caller compares.
"""

from functools import cache
from typing import NamedTuple

from rackwright.core.jobs import protected
from rackwright.core.policy.ask import Ask
from rackwright.core.shapes import RackShape

Key = tuple[int, int, int, int, int]

LENT_FIRST, GOOD, LENT_LAST, WHOLE = range(4)
_LENT = (LENT_FIRST, LENT_LAST)
_MOST_SMALL = 4  # protected nodes up to which `spares_small` are kept


class Room(NamedTuple):
    """What a rack has for one job. `free` usable nodes; `target` spares that others there want,
    `after` those wanted once the slice sits there; `mine`: it holds a slice of the same job."""

    free: int
    target: int
    after: int
    empty: bool
    demerit: int
    pinned: int
    mine: bool


def is_lent(key: Key) -> bool:
    """Does a slice with this key sit on spares?"""
    return key[0] in _LENT


@cache
def targets_after(idle: int, small: int, large: int, target: int, size: int) -> tuple[int, int]:
    """Fewest and most spares a rack wants once a protected slice of `size` has come to where
    `target` are wanted: the target alone does not say how many nodes are protected there.

    `idle`, `small` and `large` are the spares beside no, few and many protected nodes.
    """
    possible = []
    if target == idle:
        possible.append(small if size <= _MOST_SMALL else large)
    if target == small:
        possible += [small if there + size <= _MOST_SMALL else large for there in (2, 3, 4)]
    if target == large:
        possible.append(large)
    return min(possible), max(possible)


def room_of(ask: Ask, shape: RackShape, size: int) -> tuple[Room, bool]:
    """The room of the racks of a shape, and whether it is that of each of them: if not, it is the
    best that one of them may have.
    """
    usable, full, target, empty, _, demerit, pinned, _, _, _ = shape
    free = full if ask.across else usable
    if size == 1 or not ask.spec.restartable:
        return Room(free, target, target, empty, demerit, pinned, False), True
    knobs = ask.policy
    idle, small, large = knobs.spares_idle, knobs.spares_small, knobs.spares_large
    fewest, most = targets_after(idle, small, large, target, size)
    sure = fewest == most or free - size >= most
    return Room(free, target, fewest, empty, demerit, pinned, False), sure


def key_of(ask: Ask, room: Room, size: int) -> Key | None:
    """How much this room is to be preferred for a slice of `size` nodes; None: it does not fit."""
    left = room.free - size
    if left < 0:
        return None
    if protected(ask.spec, size):
        return _protected(ask, room, size, left)
    return _small(ask, room, size, left)


def _protected(ask: Ask, room: Room, size: int, left: int) -> Key | None:
    if size < ask.full and left < room.target:
        return _lent(ask, room, size, left, LENT_LAST)
    if room.empty and room.free >= ask.whole > size:
        return (WHOLE, 1, room.free, 0, 0)
    deficit = max(0, room.after - left)
    # Two slices of a job share a rack only if the spares of both fit beside them.
    adds = 0 if room.mine and not deficit else 1
    return (GOOD, adds, deficit, room.demerit, left)


def _small(ask: Ask, room: Room, size: int, left: int) -> Key | None:
    if left < room.target:
        lent = _lent(ask, room, size, left, LENT_FIRST)
        if lent is not None or size < ask.full:
            return lent
    if room.empty:
        return (WHOLE, int(room.free >= ask.whole), room.free, 0, 0)
    return (GOOD, _pull(ask, room), left, 0, 0)


def _lent(ask: Ask, room: Room, size: int, left: int, tier: int) -> Key | None:
    if not ask.lendable or size > ask.policy.lent_max_nodes:
        return None
    return (tier, _pull(ask, room), left, 0, 0)


def _pull(ask: Ask, room: Room) -> int:
    """Pinned work goes where most is pinned, movable work where least is."""
    return -room.pinned if ask.pinned else room.pinned
