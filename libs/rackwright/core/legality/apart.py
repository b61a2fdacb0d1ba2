"""Are the entries of a commit about different things? Then each is judged without the others."""

from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.wire.entries.node import Observation
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.message import Entry

Thing = JobId | NodeId | int
"""A job, a node, or a rack by its number."""

Healed = SliceRestarted | SliceSwapped | SliceMoved


def apart(fleet: Fleet, entries: Iterable[Entry]) -> bool:
    """Can none of them make another one legal or illegal, whichever of them are taken?

    Only for kinds whose legality is a matter of one node, or of one job and the racks it is in:
    False does not say that they do depend on each other.
    """
    seen: set[Thing] = set()
    for entry in entries:
        things = concerns(fleet, entry)
        if things is None or not seen.isdisjoint(things):
            return False
        seen.update(things)
    return True


def concerns(fleet: Fleet, entry: Entry) -> tuple[Thing, ...] | None:
    """All that the legality of this entry looks at and all that the entry changes; None: more than
    a node or a job in its racks, or nothing of the kind.
    """
    if entry.wish is not None:
        return None
    if isinstance(entry, Observation):
        return (entry.node,)
    if not isinstance(entry, Healed):
        return None
    racks = healed_in(fleet, entry)
    return None if racks is None else (entry.job, *racks)


def healed_in(fleet: Fleet, entry: Healed) -> tuple[int, ...] | None:
    """The racks of a slice that this entry heals without taking anybody's place: where it is, and
    where it goes. None: it does take one, or there is no such slice."""
    job = fleet.jobs.get(entry.job)
    parts = () if job is None else job.slices
    here = next((part.rack for part in parts if part.index == entry.index), None)
    if here is None or (not isinstance(entry, SliceRestarted) and entry.evicted):
        return None
    if not isinstance(entry, SliceMoved):
        return (here,)
    there = fleet.rack_numbers.get(entry.rack)
    if there is None:
        return None
    return (here,) if there == here else (here, there)
