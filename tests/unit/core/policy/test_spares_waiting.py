"""Before a wounded job goes back to the queue it waits for a place that is known to come free."""

from typing import Any

import pytest

from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.node import RackHeld, RepairRequested
from rackwright.wire.entries.slice import SliceMoved, SliceSwapped
from rackwright.wire.ids import NodeId, Owner, RackId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung
from tests.support.fleets import Cell, cell
from tests.support.recovery import decided, rungs, swap

PINNED: dict[str, Any] = {"restartable": False}


def full(racks: int = 1, **policy: Any) -> Cell:
    """Job a on 16 nodes of r0, beside it two that nobody may move."""
    made = cell(racks, policy=Policy(**policy))
    made.sit("a", "r0", range(16))
    made.sit("p", "r0", [16, 17], **PINNED)
    return made


def requeued(made: Cell) -> bool:
    """Is the job sent back, and is it told that nothing comes free?"""
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    return (Rung.WAIT, False, "release.none") in rungs(entry)


def test_nothing_comes_free() -> None:
    made = full()
    made.unfit("r0-n03")
    assert requeued(made)


@pytest.mark.parametrize(("ends_s", "waits"), [(599.0, True), (601.0, False)])
def test_the_end_of_a_neighbour_in_time(ends_s: float, waits: bool) -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    made.sit("p", "r0", [16, 17], time_limit_s=ends_s, **PINNED)
    made.unfit("r0-n03")
    assert (decided(made) == []) is waits
    if waits:
        made.wait(60.0)
        assert decided(made) == []
        made.finish("p")
        assert swap(decided(made)[0]) == [(3, 3, 16)]


@pytest.mark.parametrize(("eta_s", "waits"), [(120.0, True), (900.0, False), (None, False)])
def test_a_repair_with_a_date(eta_s: float | None, waits: bool) -> None:
    made = cell(1, policy=Policy(probation_s=0.0))
    made.sit("a", "r0", range(16))
    made.sit("p", "r0", [16], **PINNED)
    made.unfit("r0-n17")
    made.add(
        RepairRequested(
            node=NodeId("r0-n17"),
            of=made.fleet.node(NodeId("r0-n17")).last,
            action=RepairAction.RESET,
            eta=None if eta_s is None else made.fleet.time + eta_s,
            reason=Reason(code="test"),
        )
    )
    made.unfit("r0-n03", code="xid.48")
    assert (decided(made) == []) is waits


def test_the_end_of_a_hold_on_another_rack() -> None:
    made = full(2)
    until = made.fleet.time + 300.0
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=until))
    made.unfit("r0-n03")
    assert decided(made) == []
    made.wait(301.0)
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert entry.rack == "r1"


@pytest.mark.parametrize(
    ("knobs", "spec"),
    [({"hold_max_s": 60.0}, {}), ({}, {"checkpoint": Checkpoint(restart_s=60.0)})],
    ids=["by the cell", "by the job"],
)
def test_no_longer_than_a_restart_costs(knobs: dict[str, Any], spec: dict[str, Any]) -> None:
    made = cell(2, policy=Policy(**knobs))
    made.sit("a", "r0", range(16), **spec)
    made.sit("p", "r0", [16, 17], **PINNED)
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=made.fleet.time + 300.0))
    made.unfit("r0-n03")
    assert requeued(made)


def test_what_was_waited_for_and_did_not_come_ends_the_wait() -> None:
    made = full(2)
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=made.fleet.time + 300.0))
    made.unfit("r0-n03")
    assert decided(made) == []
    made.wait(100.0)
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=made.fleet.time + 900.0))
    assert requeued(made)


def test_a_free_spare_is_not_waited_for() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.add(RackHeld(rack=RackId("r1"), owner=Owner("op"), until=made.fleet.time + 300.0))
    made.unfit("r0-n03")
    assert isinstance(decided(made)[0], SliceSwapped)
