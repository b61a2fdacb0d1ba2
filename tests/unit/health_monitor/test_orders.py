"""Operators' wishes about nodes: each is answered once, with the entry or with the reason."""

import pytest

from rackwright.core.machine import Offer, Refused, WishSkipped
from rackwright.wire.entries.cell import PolicySet, WishRefused
from rackwright.wire.entries.node import (
    NodeCordoned,
    NodeRecovered,
    NodeUncordoned,
    RepairRequested,
)
from rackwright.wire.ids import JobId, NodeId, Owner
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import Cancel, Cordon, Drain, Repaired, Repairing, Uncordon, Wish
from tests.support.fleets import cell, node_name
from tests.support.monitors import Bench, bench

NODE = node_name("r0", 1)


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=2, nodes=6))


def refusals(b: Bench) -> list[tuple[str, str]]:
    """Kind and code of each refusal."""
    said = [entry for entry in b.entries if isinstance(entry, WishRefused)]
    return [(entry.kind, entry.reason.code) for entry in said]


def test_a_node_is_cordoned_for_its_operator(b: Bench) -> None:
    seq = b.wish(Cordon(node=NODE, why="fan"))
    assert b.settle() == [
        NodeCordoned(
            node=NODE,
            by=Owner("ops"),
            why="fan",
            wish=seq,
            cause="wish-1",  # type: ignore[arg-type]
        )
    ]
    assert b.fleet.answered("health-monitor", seq)
    assert b.settle() == []


def test_an_answer_is_compared_and_says_how_far_wishes_are_answered(b: Bench) -> None:
    b.wish(Cancel(job=JobId("j")))  # another service's
    b.wish(Cordon(node=NODE))
    b.tell(b.make(WishSkipped, seq=3))
    (offer,) = [effect for effect in b.turn() if isinstance(effect, Offer)]
    assert (offer.compare, offer.wishes_to) == (True, 3)
    b.commit(offer)
    assert b.fleet.answers["health-monitor"].floor == 3


def test_wishes_of_other_services_do_not_hold_the_floor_back(b: Bench) -> None:
    b.wish(Cancel(job=JobId("j")))
    b.mono += 1
    b.settle()
    assert b.fleet.answers["health-monitor"].floor == 1


def test_cordon_drain_and_uncordon_of_one_node_are_answered_in_order(b: Bench) -> None:
    """NVSentinel 911: a cordon with no way out."""
    for wish in (Cordon(node=NODE), Drain(node=NODE), Uncordon(node=NODE)):
        b.wish(wish)
    said = b.settle()
    assert [type(entry) for entry in said] == [NodeCordoned, NodeCordoned, NodeUncordoned]
    assert not b.node(NODE).cordoned


def test_wishes_for_many_nodes_go_in_one_commit(b: Bench) -> None:
    for place in range(6):
        b.wish(Cordon(node=node_name("r0", place)))
    (offer,) = [effect for effect in b.turn() if isinstance(effect, Offer)]
    assert len(offer.entries) == 6


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (Cordon(node=NodeId("nobody")), "unknown-node"),
        (Repaired(node=NodeId("nobody")), "unknown-node"),
        (Uncordon(node=NODE), "already"),
        (Repaired(node=NODE), "not-in-repair"),
    ],
)
def test_what_cannot_be_granted_is_refused_with_the_reason(b: Bench, wish: Wish, code: str) -> None:
    seq = b.wish(wish)
    (said,) = b.settle()
    assert isinstance(said, WishRefused)
    assert (said.kind, said.reason.code, said.owner, said.wish) == (
        wish.TYPE,
        code,
        "ops",
        seq,
    )


def test_a_second_cordon_is_refused(b: Bench) -> None:
    b.wish(Cordon(node=NODE))
    b.wish(Cordon(node=NODE))
    b.settle()
    assert refusals(b) == [("wish.cordon", "already")]


def test_a_repaired_node_is_let_in_by_a_persons_word(b: Bench) -> None:
    b.fault(NODE, xid=64)
    b.settle()
    last = b.node(NODE).last
    seq = b.wish(Repaired(node=NODE, action=RepairAction.REPLACE, why="new tray"), owner="ann")
    assert b.settle() == [
        NodeRecovered(
            node=NODE,
            of=last,
            fitness=b.node(NODE).fitness,
            probation_until=b.now + 7200,
            reason=Reason(
                code="repaired.replace", numbers={"faults": 1, "by": "ann", "why": "new tray"}
            ),
            serial="sn-r0-n01",
            wish=seq,
            cause="wish-1",  # type: ignore[arg-type]
        )
    ]
    assert b.node(NODE).repair is None


def test_a_reset_done_in_passing_brings_no_probation(b: Bench) -> None:
    b.fault(NODE, xid=63)
    b.settle()
    b.wish(Repaired(node=NODE, action=RepairAction.RESET))
    b.settle()
    assert (b.node(NODE).repair, b.node(NODE).probation_until) == (None, 0.0)


def test_a_node_that_has_not_come_back_is_not_repaired(b: Bench) -> None:
    rest = [node.name for rack in b.fleet.racks.values() for node in rack.nodes]
    rest.remove(NODE)
    b.until(160.0, beating=rest)
    assert b.node(NODE).failed
    b.wish(Repaired(node=NODE))
    b.settle()
    assert refusals(b) == [("wish.repaired", "not-joined")]


def test_another_serial_than_the_one_said_is_no_repair(b: Bench) -> None:
    b.fault(NODE, xid=64)
    b.settle()
    b.wish(Repaired(node=NODE, action=RepairAction.REPLACE, serial="sn-of-the-new-tray"))
    b.settle()
    assert refusals(b) == [("wish.repaired", "other-serial")]


def test_a_node_with_a_gpu_missing_is_not_repaired(b: Bench) -> None:
    b.status(NODE, "s-new", boot="b2", gpus=3)
    b.settle()
    b.wish(Repaired(node=NODE))
    b.settle()
    assert refusals(b) == [("wish.repaired", "gpu-count")]


def test_after_a_refusal_the_wish_is_decided_anew(b: Bench) -> None:
    b.wish(Cordon(node=NODE))
    b.settle()
    b.wish(Cordon(node=NODE))
    (offer,) = [effect for effect in b.turn() if isinstance(effect, Offer)]
    b.others(NodeUncordoned(node=NODE, by=Owner("bob")))
    assert b.tell(b.make(Refused, offer=offer)) == []
    assert [type(entry) for entry in b.settle()] == [NodeCordoned]


def test_a_wish_answered_by_another_copy_is_not_answered_again(b: Bench) -> None:
    seq = b.wish(Cordon(node=NODE))
    b.others(NodeCordoned(node=NODE, by=Owner("ops"), wish=seq))
    assert b.settle() == []


def test_a_wish_read_again_after_a_restart_is_not_answered_again(b: Bench) -> None:
    seq = b.wish(Cordon(node=NODE))
    b.settle()
    again = Bench(cell=b.cell, mono=b.mono)
    again.wish(Cordon(node=NODE), seq=seq)
    assert again.settle() == []


def test_of_two_copies_one_answers() -> None:
    made = cell(racks=8, nodes=2)
    copies = [bench(made), bench(made)]
    for ordinal, copy in enumerate(copies):
        copy.copies(2, ordinal)
        for rack in range(8):
            copy.wish(Cordon(node=node_name(f"r{rack}", 0)))
        copy.wish(Cordon(node=NodeId("nobody")))
    offered = [
        entry.wish
        for copy in copies
        for effect in copy.turn()
        if isinstance(effect, Offer)
        for entry in effect.entries
    ]
    assert sorted(seq for seq in offered if seq is not None and seq <= 8) == list(range(1, 9))


def test_faults_and_orders_take_turns(b: Bench) -> None:
    b.wish(Cordon(node=NODE))
    b.fault("r0-n02", xid=79)
    types = [entry.TYPE for entry in b.settle()]
    assert sorted(types) == ["node.cordoned", "node.repair_requested", "node.unfit"]
    assert types[0] == "node.unfit"


def test_where_operators_are_listed_nobody_else_orders_nodes_about(b: Bench) -> None:
    b.others(PolicySet(policy=Policy(operators=(Owner("op"),)), by=Owner("op")))
    b.wish(Cordon(node=NODE), owner="ann")
    (said,) = b.settle()
    assert isinstance(said, WishRefused)
    assert said.reason.code == "operators-only"
    b.wish(Cordon(node=NODE), owner="op")
    assert [entry.TYPE for entry in b.settle()] == ["node.cordoned"]


def test_a_repair_gets_a_date(b: Bench) -> None:
    b.wish(Repairing(node=NODE, in_s=60.0))
    assert b.settle()[-1].TYPE == "wish.refused"
    b.fault(NODE, xid=79)
    b.settle()
    b.wish(Repairing(node=NODE, in_s=3600.0))
    (said,) = b.settle()
    assert isinstance(said, RepairRequested)
    assert (said.action, said.eta) == (RepairAction.REBOOT, b.now + 3600.0)
    assert b.node(NODE).repair_eta == said.eta
