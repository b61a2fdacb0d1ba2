"""Movable services: the new instance serves before the old one goes, or nothing is moved."""

from dataclasses import replace

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, is_movable
from rackwright.core.legality.beside import not_free, whole_replica
from rackwright.wire.entries.job import JobRequeued, JobShrunk
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped

Healing = SliceSwapped | SliceMoved | SliceRestarted | JobShrunk | JobRequeued


def moves_beside(job: Job) -> bool:
    """May it be moved so: a service that is declared movable, whose replicas are one slice each?"""
    return is_movable(job.spec) and all(whole_replica(job, part) for part in job.slices)


def beside(fleet: Fleet, entry: Healing) -> Healing | None:
    """The same swap or move, with what serves now serving on; None: the new nodes are not free yet,
    or it is no such entry."""
    match entry:
        case SliceSwapped(evicted=()):
            rack = fleet.racks[fleet.jobs[entry.job].part(entry.index).rack]
            nodes, gpus = sum(1 << swap.new for swap in entry.swaps), 0
        case SliceMoved(evicted=()):
            rack, nodes, gpus = fleet.rack(entry.rack), entry.nodes, entry.gpus
        case _:
            return None
    return replace(entry, overlaps=True) if not_free(rack, nodes, gpus) is None else None
