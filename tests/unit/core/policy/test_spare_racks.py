"""Whole racks that are kept as spares of the cell: queued work leaves them, recovery takes them."""

from rackwright.core.policy.ask import kept_off, spare_racks
from rackwright.core.policy.causes import why_blocked
from rackwright.core.policy.placement import place
from rackwright.core.policy.settings import beyond_the_cell
from rackwright.core.reasons import sentence
from rackwright.wire.entries.slice import SliceMoved
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell
from tests.support.recovery import decided
from tests.unit.core.policy.placing import put, racks


def kept(racks: int = 3, count: int = 1) -> Cell:
    return cell(racks, policy=Policy(spare_racks=count))


def test_the_last_of_the_roomiest_whole_racks_are_kept() -> None:
    made = kept(4, count=2)
    assert spare_racks(made.fleet) == 0b1100
    made.unfit("r3-n00")
    assert spare_racks(made.fleet) == 0b0110
    made.sit("x", "r2", [0])
    assert spare_racks(made.fleet) == 0b0011, "a rack with a tenant is none"
    for rack in ("r0", "r1"):
        made.sit(f"on-{rack}", rack, range(18))
    assert spare_racks(made.fleet) == 0b1000, "as many as there are"


def test_none_by_default() -> None:
    assert kept_off(cell(2).fleet, 50) == 0


def test_queued_work_leaves_them_and_says_so() -> None:
    made = kept(3)
    assert racks(put(made, nodes=32)) == ["r0", "r1"]
    known = made.queue("k", JobSpec(name=JobId("k"), nodes=48))
    assert place(made.fleet, known) is None
    found = why_blocked(made.fleet, known, made.fleet.time)
    assert sentence(found) == "would fit, but 1 whole racks are kept as spares of the cell"
    small = kept(1)
    assert put(small, nodes=1) is None


def test_recovery_takes_them() -> None:
    made = kept(2)
    made.sit("a", "r0", range(18))
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert entry.rack == "r1"


def test_not_as_many_as_there_are() -> None:
    fleet = cell(2).fleet
    assert beyond_the_cell(fleet, Policy(spare_racks=1)) is None
    found = beyond_the_cell(fleet, Policy(spare_racks=2))
    assert found is not None
    assert sentence(found) == (
        "spare_racks 2 leaves none of the 2 racks of the cell to work; ask for 1 or fewer"
    )
