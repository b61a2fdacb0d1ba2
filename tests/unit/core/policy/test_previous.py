"""A job that goes back to the queue may like the nodes it had before."""

from typing import Any

from rackwright.core.policy.placement import place
from rackwright.core.snapshot import dump, load
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.ids import JobId
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell

A = JobId("a")


def again(parts: list[tuple[str, Any]], **spec: Any) -> list[tuple[str, int]]:
    """Job a had these nodes, was sent back, and is placed in the empty cell once more."""
    made = requeued(parts, **spec)
    found = place(made.fleet, made.job("a"))
    return [(part.rack, part.nodes) for part in found or ()]


def requeued(parts: list[tuple[str, Any]], **spec: Any) -> Cell:
    made = cell(5, nodes=6)
    made.spread("a", parts, slice_nodes=4, **spec)
    made.add(JobRequeued(job=A, reason=Reason(code="evicted")))
    for rack in made.fleet.racks.values():
        for node in rack.nodes:
            made.join(node.name)
    return made


def test_the_racks_and_nodes_it_had() -> None:
    parts = [("r2", [1, 2, 4, 5]), ("r4", [0, 1, 2, 3])]
    assert again(parts, prefer_previous=True) == [("r2", 0b110110), ("r4", 0b1111)]
    assert again(parts) == [("r0", 0b1111), ("r1", 0b1111)]


def test_one_node() -> None:
    assert again([("r3", [5])], prefer_previous=True) == [("r3", 0b100000)]
    assert again([("r3", [5])]) == [("r0", 0b1)]


def test_only_where_they_are_as_good() -> None:
    made = requeued([("r2", [0, 1, 2, 3])], prefer_previous=True)
    made.sit("b", "r1", [0, 1])
    found = place(made.fleet, made.job("a"))
    assert [part.rack for part in found or ()] != []
    made.sit("c", "r2", [0])
    found = place(made.fleet, made.job("a"))
    assert found is not None
    assert found[0].nodes.bit_count() == 4
    assert dump(load(dump(made.fleet))) == dump(made.fleet)
