"""Entries of recovery, and a job that needs it: for tests of the fold and of legality."""

from typing import Any

from rackwright.core.fold import apply
from rackwright.core.invariants import check
from rackwright.core.legality import illegal
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, RackId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.support.fleets import Cell, cell

RUNGS = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="test")),)
A = JobId("a")


def wounded(**spec: Any) -> Cell:
    """Job a on places 0 to 3 of r0, its node at 1 bad; three racks."""
    made = cell(3, nodes=8)
    made.sit("a", "r0", range(4), **spec)
    made.unfit("r0-n01")
    return made


def swapped(*swaps: tuple[int, int, int], **more: Any) -> SliceSwapped:
    """Ranks with their old and new places."""
    made = tuple(NodeSwap(rank=rank, old=old, new=new) for rank, old, new in swaps)
    fields = {"job": A, "membership": 2, "index": 0, "swaps": made, "rungs": RUNGS, **more}
    return SliceSwapped(**fields)


def moved(rack: str, nodes: int, **more: Any) -> SliceMoved:
    """The slice goes there."""
    fields = {"job": A, "membership": 2, "index": 0, "rack": RackId(rack), "nodes": nodes}
    return SliceMoved(**{**fields, "rungs": RUNGS, **more})


def restarted(*ranks: int, **more: Any) -> SliceRestarted:
    """These ranks start anew where they are."""
    fields = {"job": A, "membership": 2, "index": 0, "ranks": ranks, "charge": False}
    return SliceRestarted(**{**fields, "rungs": RUNGS, **more})


def after(made: Cell, entry: Entry) -> Any:
    """The fleet after a legal entry, checked."""
    assert illegal(made.fleet, entry) is None
    fleet = apply(made.fleet, entry)
    check(fleet)
    return fleet


def legal(made: Cell, entry: Entry) -> str | None:
    """None, or why not."""
    return illegal(made.fleet, entry)
