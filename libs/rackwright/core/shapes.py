"""What racks that are alike for placement have in common; the index groups them by it."""

from typing import NamedTuple


class RackShape(NamedTuple):
    """What placement needs of a rack, small enough to group racks by it; a tuple, to hash fast.

    `usable` free whole nodes that take gang work now, `full` those of them that may take part in a
    job of several slices; `target` spares it wants beside protected slices; `empty` no tenant;
    `size` nodes in all; `demerit` bad history 0..2; `pinned` nodes under pinned work; `open` it
    takes new slices at all; `kind` what its nodes are, or "" when they differ: then each must be
    looked at; `lent_room` usable nodes once its tenants are gone, all of whom are lent theirs, 0 if
    it has others or none.
    """

    usable: int
    full: int
    target: int
    empty: bool
    size: int
    demerit: int
    pinned: int
    open: bool
    kind: str
    lent_room: int = 0


NO_SHAPE = RackShape(
    usable=0, full=0, target=0, empty=True, size=0, demerit=0, pinned=0, open=False, kind=""
)
