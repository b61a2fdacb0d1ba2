"""Puts decisions into as few commits as can be: one type each, in an order that is still legal."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import Offer
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId
from rackwright.wire.message import MAX_ENTRIES, Entry

Touched = frozenset[JobId | int]
"""Jobs by id and racks by number that an entry changes."""


@dataclass(slots=True)
class _Group:
    entries: list[Entry] = field(default_factory=list)
    touched: set[JobId | int] = field(default_factory=set)


@dataclass(slots=True)
class Grouping:
    """Entries in the order of their decision, each on the fleet that the ones before it leave.

    An entry joins an earlier commit of its type only if no commit after that one changes a job or a
    rack that it changes too: then it is as legal there as where it was decided.
    """

    groups: list[_Group] = field(default_factory=list)

    def add(self, entry: Entry, touched: Touched) -> None:
        """Put one more entry into the earliest commit that may have it."""
        chosen = None
        for group in reversed(self.groups):
            if isinstance(entry, type(group.entries[0])) and len(group.entries) < MAX_ENTRIES:
                chosen = group
            if not touched.isdisjoint(group.touched):
                break
        if chosen is None:
            chosen = _Group()
            self.groups.append(chosen)
        chosen.entries.append(entry)
        chosen.touched |= touched

    def offers(self) -> list[Offer]:
        """The commits, in order."""
        return [Offer(entries=tuple(group.entries)) for group in self.groups]


def touched(fleet: Fleet, job: Job, entry: Entry) -> Touched:
    """What this entry about `job` changes on this fleet."""
    found: set[JobId | int] = {job.id}
    if isinstance(entry, SliceSwapped | SliceMoved):
        found.add(job.part(entry.index).rack)
        found |= _seats(fleet, entry.evicted)
        if isinstance(entry, SliceMoved):
            found.add(fleet.rack_numbers[entry.rack])
    else:
        found |= _seats(fleet, (job.id,))
    return frozenset(found)


def _seats(fleet: Fleet, jobs: Iterable[JobId]) -> set[JobId | int]:
    found: set[JobId | int] = set()
    for name in jobs:
        found.add(name)
        found |= {part.rack for part in fleet.jobs[name].slices}
    return found
