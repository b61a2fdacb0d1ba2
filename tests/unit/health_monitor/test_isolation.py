"""A rack that was silent as a whole is heard again, while more than silence is wrong with it."""

from rackwright.wire.entries.node import RackDegraded
from rackwright.wire.nodes import RackFitness
from rackwright.wire.reasons import Reason
from tests.support.fleets import cell
from tests.support.monitors import bench


def test_isolation_ends_though_the_rack_is_suspect_and_waits_for_repair() -> None:
    """Recovery waits for the end of isolation, and the repair for recovery."""
    b = bench(cell(racks=2, nodes=6))
    rack, other = b.cell.rack("r0").spec, b.cell.rack("r1").spec
    b.until(104.0, beating=[*rack.nodes, *other.nodes])
    b.until(124.0, beating=list(other.nodes))
    assert b.cell.rack("r0").isolated
    b.cell.unfit("r0-n00")
    because = Reason(code="test")
    b.others(RackDegraded(rack=rack.rack, fitness=RackFitness.EVACUATE, reason=because))
    b.hear(*rack.nodes)
    b.until(127.0, beating=[*rack.nodes, *other.nodes])
    assert not b.cell.rack("r0").isolated
    assert b.cell.rack("r0").fitness is RackFitness.EVACUATE, "it was not only silent"
    assert b.types().count("rack.restored") == 1, "and that is not said again"


def test_a_rack_that_was_only_silent_is_good_when_it_is_heard() -> None:
    b = bench(cell(racks=2, nodes=6))
    rack, other = b.cell.rack("r0").spec, b.cell.rack("r1").spec
    b.until(104.0, beating=[*rack.nodes, *other.nodes])
    b.until(124.0, beating=list(other.nodes))
    b.hear(*rack.nodes)
    b.until(127.0, beating=[*rack.nodes, *other.nodes])
    assert not b.cell.rack("r0").isolated
    assert b.cell.rack("r0").fitness is RackFitness.GOOD
