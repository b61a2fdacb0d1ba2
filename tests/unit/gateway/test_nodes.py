"""Answers about racks and nodes."""

import pytest

from rackwright.gateway import asked
from rackwright.gateway.answers.nodes import node, racks
from rackwright.gateway.asked import BadQuestion
from rackwright.gateway.views import NodeCell, SparesView, TenantView
from rackwright.wire.entries.node import NodeCordoned, RackHeld
from rackwright.wire.ids import NodeId, Owner, RackId, WorkerId
from rackwright.wire.signals import WorkerState, WorkerStatus
from tests.unit.gateway.storied import storied


def test_a_rack_with_a_slice_its_spares_and_small_work() -> None:
    made = storied(1)
    made.sit("big", "r0", range(14))
    made.sit("one", "r0", [14], gpus=0b11)
    (rack,) = racks(made.context(), asked.Racks()).racks
    assert rack.spares == SparesView(wanted=2, free=2, lent=0, short=0)
    assert rack.nodes[0] == NodeCell(
        node="r0-n00", state="used", jobs=("big",), gpus=4, taken=4, fitness="full"
    )
    assert rack.nodes[14] == NodeCell(
        node="r0-n14", state="part", jobs=("one",), gpus=4, taken=2, fitness="full"
    )
    assert [cell.state for cell in rack.nodes[15:]] == ["free", "spare", "spare"]


def test_lent_spares_are_there_and_lost_ones_are_missing() -> None:
    made = storied(1)
    made.sit("big", "r0", range(16))
    made.sit("small", "r0", [16], lent=True)
    made.unfit("r0-n17")
    (rack,) = racks(made.context(), asked.Racks()).racks
    assert rack.spares == SparesView(wanted=2, free=0, lent=1, short=1)


def test_a_hold_is_shown_until_it_ends() -> None:
    made = storied(1)
    until = made.fleet.time + 60.0
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("ann"), until=until))
    (held,) = racks(made.context(), asked.Racks()).racks
    assert (held.held_by, held.held_until) == ("ann", until)
    (free,) = racks(made.context(later_s=61.0), asked.Racks()).racks
    assert (free.held_by, free.held_until) == (None, None)


def test_racks_come_in_pages_or_by_name() -> None:
    made = storied(3)
    first = racks(made.context(), asked.Racks(limit=2))
    assert ([rack.rack for rack in first.racks], first.total, first.next) == (
        ["r0", "r1"],
        3,
        "r1",
    )
    rest = racks(made.context(), asked.Racks(after=RackId("r1")))
    assert ([rack.rack for rack in rest.racks], rest.next) == (["r2"], None)
    one = racks(made.context(), asked.Racks(rack=RackId("r1")))
    assert [rack.rack for rack in one.racks] == ["r1"]


@pytest.mark.parametrize(
    "question", [asked.Racks(rack=RackId("r9")), asked.Racks(after=RackId("r9"))]
)
def test_an_unknown_rack_is_named(question: asked.Racks) -> None:
    with pytest.raises(BadQuestion, match="no rack 'r9' is known") as error:
        racks(storied(1).context(), question)
    assert error.value.status == 404


def test_a_node_with_all_that_is_known_of_it() -> None:
    made = storied(1)
    made.sit("a", "r0", [3])
    running = WorkerStatus(worker=WorkerId("a/0/1"), state=WorkerState.RUNNING, pid=12)
    made.says("r0-n03", running)
    made.add(NodeCordoned(node=NodeId("r0-n03"), drain=False, by=Owner("ann"), why="noise"))
    found = node(made.context(), asked.Node(node=NodeId("r0-n03")))
    assert (found.rack, found.place, found.serial) == ("r0", 3, "sn-r0-n03")
    assert (found.cordoned, found.draining, found.failed) == (True, False, False)
    assert found.node.state == "cordoned"
    assert found.tenants == (TenantView(worker="a/0/1", job="a", rank=0, state="running", pid=12),)
    assert found.story[-1].text == "r0-n03 cordoned by ann; noise"


def test_a_node_that_is_out_says_why_and_who_is_still_to_leave() -> None:
    made = storied(1)
    made.sit("a", "r0", [3])
    made.unfit("r0-n03")
    found = node(made.context(), asked.Node(node=NodeId("r0-n03")))
    assert found.why is not None
    assert (found.why.code, found.why.text) == ("xid.79", "a GPU reported Xid 79")
    assert found.repair == "reboot"
    assert [(fault.code, fault.at) for fault in found.faults] == [("xid.79", made.fleet.time)]


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(BadQuestion, match="no node 'n9' is known") as error:
        node(storied(1).context(), asked.Node(node=NodeId("n9")))
    assert error.value.status == 404
