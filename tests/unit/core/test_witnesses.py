"""Who a node's witnesses are, and what their promises prove."""

from dataclasses import replace

from rackwright.core.policy.witnesses import (
    Cover,
    Marks,
    choose,
    confirmed,
    covered,
    declare_alone_after,
    half,
    majority,
    second_tier,
)
from rackwright.wire.ids import NodeId
from rackwright.wire.nodes import Witnesses
from rackwright.wire.policy import Policy
from tests.support.fleets import cell, node_name

ON = Policy(alone_s=1800.0)
TERMS = Witnesses(nodes=tuple(NodeId(f"n{n}") for n in range(5)), step_s=30.0, alone_s=1800.0)


def chosen(racks: int, nodes: int, name: str) -> tuple[str, ...]:
    terms = choose(cell(racks=racks, nodes=nodes, policy=ON).fleet, NodeId(name))
    return () if terms is None else terms.nodes


def test_it_is_on_where_a_promise_outlives_its_way() -> None:
    assert second_tier(ON)
    assert not second_tier(Policy())
    assert not second_tier(replace(ON, alone_s=30.0)), "no longer than the first tier"
    assert not second_tier(replace(ON, fence_after_s=14.0)), "7 s are two heartbeats and R"


def test_two_of_the_rack_and_three_of_others_spread_over_the_cell() -> None:
    assert chosen(8, 4, "r1-n03") == ("r1-n00", "r1-n01", "r3-n00", "r5-n00", "r7-n00")
    assert chosen(3, 4, "r0-n00") == ("r0-n01", "r0-n02", "r1-n01", "r2-n01", "r1-n02")
    assert chosen(1, 4, "r0-n01") == ("r0-n02", "r0-n03")
    assert chosen(1, 1, "r0-n00") == ()


def test_what_has_failed_is_no_witness_and_without_the_tier_there_is_none() -> None:
    made = cell(racks=1, nodes=4, policy=ON)
    made.fail(node_name("r0", 2))
    terms = choose(made.fleet, NodeId("r0-n01"))
    assert terms == Witnesses(
        nodes=(NodeId("r0-n03"), NodeId("r0-n00")), step_s=30.0, alone_s=1800.0
    )
    assert choose(cell(racks=1, nodes=4).fleet, NodeId("r0-n01")) is None


def test_a_majority_and_a_half_have_one_in_common() -> None:
    for many in range(1, 16):
        assert majority(many) + half(many) == many + 1


def test_the_long_wait_is_the_one_of_the_protocol() -> None:
    assert declare_alone_after(ON, TERMS) == 1.05 * (1800 + 3 + 2)
    assert declare_alone_after(replace(ON, fence_after_s=4000.0), TERMS) == 1.05 * 4005


def test_a_promise_counts_from_the_earliest_sending_and_binds_from_the_hearing() -> None:
    first = covered(None, 100.0, 98.0, 10.5, ON)
    assert first == Cover(since=100.0, until=108.0)
    assert covered(first, 104.0, 103.0, 10.5, ON) == Cover(since=100.0, until=113.0)
    assert covered(first, 104.0, 90.0, 10.5, ON) == first, "an old one takes nothing back"
    assert covered(first, 108.5, 107.0, 10.5, ON) == Cover(since=108.5, until=117.0)
    assert covered(None, 100.0, 100.0, 99.0, ON).until == 100.0 + 15.0 / 1.05


def test_half_of_the_witnesses_bound_for_a_step_and_a_kill_are_enough() -> None:
    now = 200.0
    began = now - 1.05 * 32
    good = Cover(since=began, until=now - 2.1)
    assert confirmed(TERMS, [good, good, good, None, None], ON, now)
    assert not confirmed(TERMS, [good, good, None, None, None], ON, now)
    late, gone = replace(good, since=began + 0.01), replace(good, until=now - 2.2)
    assert not confirmed(TERMS, [good, good, late, late, None], ON, now)
    assert not confirmed(TERMS, [good, good, gone, gone, None], ON, now)


def test_a_heartbeat_is_dated_by_the_newest_append_its_author_knew_of() -> None:
    marks = Marks().acked(10, 1.0).acked(14, 2.0).acked(14, 9.0)
    assert [marks.after(head) for head in (9, 10, 13, 14, 99)] == [None, 1.0, 1.0, 2.0, 2.0]
    for seq in range(20, 200):
        marks = marks.acked(seq, float(seq))
    assert (marks.after(100), marks.after(199)) == (None, 199.0)
