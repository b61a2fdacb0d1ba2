"""A cell that is read only: what nodes say is recorded, nothing is decided."""

from rackwright.wire.entries.cell import AutomationPaused
from rackwright.wire.ids import Owner
from rackwright.wire.policy import Automation
from tests.support.fleets import cell
from tests.support.monitors import bench


def test_who_joins_is_recorded_and_nothing_is_decided_until_it_is_over() -> None:
    b = bench(cell(racks=2, nodes=6))
    rest = [name for name in b.fleet.places if name != "r0-n01"]
    b.until(104.0, beating=[*rest, "r0-n01"])
    b.others(AutomationPaused(automation=Automation.ALL, until=b.now + 60, by=Owner("ops")))
    b.fault("r0-n02", xid=79)
    b.status("r0-n03", session="another")
    assert [entry.TYPE for entry in b.until(b.mono + 59, beating=rest)] == ["node.joined"]
    assert b.echoed()[-1][0] in rest
    said = [entry.TYPE for entry in b.until(b.mono + 3, beating=rest)]
    assert said[:2] == ["node.unfit", "node.suspected"]
