"""A placement looks things up; it never goes through the jobs, racks or accounts of a cell."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.fleet import Fleet
from rackwright.core.invariants import broken
from rackwright.core.policy.placement import place
from rackwright.core.shares import Limited
from rackwright.core.snapshot import dump, load
from rackwright.wire.ids import JobId, Owner, QueueName
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell

Q = QueueName("q")
PINNED = {"nodes": 2, "restartable": False}
INTERACTIVE = {"gpus": 1, "job_class": JobClass.INTERACTIVE}


class Book:
    """A mapping whose pages can only be found by name."""

    def __init__(self, kept: Mapping[Any, Any]) -> None:
        self._kept = kept

    def __getitem__(self, name: Any) -> Any:
        return self._kept[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, name: Any, default: Any = None) -> Any:
        return self._kept.get(name, default)

    def __iter__(self) -> Any:
        raise AssertionError("gone through")

    keys = values = items = __iter__


def unread(fleet: Fleet) -> Fleet:
    """The fleet, with books for what grows with the cell."""
    books = {name: Book(getattr(fleet, name)) for name in ("racks", "places", "jobs", "usage")}
    changes: dict[str, Any] = books
    return replace(fleet, **changes)


def busy() -> Cell:
    made = cell(3, policy=Policy(queue_gpus={Q: 200}, queue_pinned_gpus={Q: 40}, pinned_share=0.5))
    made.sit("batch", "r0", range(4), queue=Q)
    made.sit("pinned", "r0", [4, 5], restartable=False, queue=Q)
    made.sit("talk", "r1", [0], job_class=JobClass.INTERACTIVE)
    made.sit("stays", "r1", [1], job_class=JobClass.SERVICE)
    return made


@pytest.mark.parametrize("fields", [{"nodes": 1}, {"nodes": 20}, {"gpus": 2}, PINNED, INTERACTIVE])
def test_every_kind_of_job_is_placed_by_lookups(fields: dict[str, Any]) -> None:
    made = busy()
    job = made.queue("j", JobSpec(name=JobId("j"), queue=Q, **fields))
    assert place(unread(made.fleet), job) == place(made.fleet, job) is not None


def test_a_limit_that_holds_a_job_back_is_a_lookup_too() -> None:
    made = busy()
    job = made.queue("j", JobSpec(name=JobId("j"), queue=Q, nodes=9, restartable=False))
    assert place(unread(made.fleet), job) is None


def test_what_limits_count_follows_the_jobs_and_comes_back_from_a_snapshot() -> None:
    made = busy()
    counts = {
        (Limited.QUEUE, Q): 24,
        (Limited.QUEUE, "default"): 8,
        (Limited.QUEUE_PINNED, Q): 8,
        (Limited.QUEUE_PINNED, "default"): 4,
        (Limited.PINNED, ""): 12,
        (Limited.INTERACTIVE, Owner("ann")): 4,
    }
    assert dict(made.fleet.counts) == counts
    assert load(dump(made.fleet)).counts == made.fleet.counts
    made.finish("talk")
    made.finish("pinned")
    left = {(Limited.QUEUE, Q): 16, (Limited.QUEUE, "default"): 4}
    assert dict(made.fleet.counts) == left


def test_a_count_that_is_wrong_is_found() -> None:
    fleet = busy().fleet
    wrong = replace(fleet, counts=fleet.counts.set((Limited.PINNED, ""), 8))
    assert broken(fleet) == []
    assert broken(wrong) == ["GPUs of pinned: 8 are 12 by a scan"]
