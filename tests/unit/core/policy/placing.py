"""Asking where a job would go, with every answer checked node by node."""

from typing import Any

from rackwright.core.policy.checkplacement import check_placement
from rackwright.core.policy.placement import Slices, place
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec
from tests.support.fleets import Cell, where


def put(made: Cell, job: str = "j", **spec: Any) -> Slices | None:
    """Where a job would go; checked node by node."""
    known = made.queue(job, JobSpec(**({"name": JobId(job)} | spec)))
    found = place(made.fleet, known)
    if found is not None:
        assert check_placement(made.fleet, known, found) == []
    return found


def racks(found: Slices | None) -> list[str]:
    return [rack for rack, _ in where(found)]
