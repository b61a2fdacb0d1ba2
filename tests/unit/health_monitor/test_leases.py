"""Echoes, suspicion, and the declaring of the dead: protocol P2 as one copy carries it out."""

from dataclasses import replace

import pytest

from rackwright.core.machine import Copies, Doubt, Offer, SendEcho
from rackwright.wire.entries.cell import AutomationPaused, LedgerTicked, PolicySet
from rackwright.wire.entries.node import (
    NodeCleared,
    NodeFailed,
    NodeSuspected,
    RackIsolated,
    RackRestored,
)
from rackwright.wire.ids import Owner, SessionId
from rackwright.wire.jobs import OnLostLease
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import Echo, EchoLine
from tests.support.fleets import cell, node_name
from tests.support.monitors import LAST_HEARD, SUSPECTED, Bench, W, bench, every, silence


@pytest.fixture
def b() -> Bench:
    return bench(cell(racks=2, nodes=6))


# Echoes


def test_a_heartbeat_is_echoed_at_once(b: Bench) -> None:
    session = b.node("r0-n01").session
    assert session is not None
    assert b.hear("r0-n01") == [
        SendEcho(
            echo=Echo(
                rack=b.cell.rack("r0").spec.rack,
                head=b.fleet.seq,
                lease_s=30.0,
                heartbeat_s=2.0,
                lines=(EchoLine(node=node_name("r0", 1), session=session, n=1),),
            )
        )
    ]


def test_a_rack_is_told_at_most_twice_in_a_heartbeat_and_then_all_of_it(b: Bench) -> None:
    b.hear("r0-n00")
    assert b.hear("r0-n01", "r0-n02", "r0-n00") == []
    b.until(101.0)
    assert b.echoed() == [("r0-n00", 1), ("r0-n01", 2), ("r0-n02", 3), ("r0-n00", 4)]


def test_another_rack_does_not_wait(b: Bench) -> None:
    b.hear("r0-n00", "r1-n00")
    assert b.echoed() == [("r0-n00", 1), ("r1-n00", 2)]


def test_no_echo_without_proof_of_a_quorum(b: Bench) -> None:
    """F3 (d): a deposed leader answers for 35 s; only an acknowledged append is proof."""
    b.mono += 2.9
    assert len(b.hear("r0-n00")) == 1
    b.mono += 0.1
    assert b.hear("r1-n00") == []
    b.settle()
    assert b.echoed() == [("r0-n00", 1), ("r1-n00", 2)]


def test_a_tick_proves_it_when_nothing_else_was_written(b: Bench) -> None:
    b.mono += 0.9
    assert b.turn() == []
    b.mono += 0.1
    assert b.turn() == [Offer(entries=(LedgerTicked(),), compare=False)]


def test_an_unproven_copy_echoes_nothing_at_its_start() -> None:
    fresh = Bench(cell=cell(racks=1, nodes=2))
    assert fresh.hear("r0-n00") == []
    assert fresh.turn() == [Offer(entries=(LedgerTicked(),), compare=False)]
    assert fresh.hear("r0-n00") == []


def test_a_session_that_is_not_live_is_not_echoed(b: Bench) -> None:
    assert b.hear("r0-n00", session="s-other") == []


def test_a_suspected_session_is_not_echoed_even_if_it_was_heard_before(b: Bench) -> None:
    b.hear("r0-n00")
    b.hear("r0-n01")  # waits for the next echo of the rack
    node = b.node("r0-n01")
    assert node.session is not None
    b.others(
        NodeSuspected(
            node=node.name, of=node.last, session=node.session, reason=Reason(code="doubt")
        )
    )
    b.until(102.0)
    assert b.echoed() == [("r0-n00", 1)]


def test_strangers_are_named_once_a_minute(b: Bench) -> None:
    b.tell(b.make_heard("r9-n00", "r9"))
    b.tell(b.make_heard("r0-n00", "r1"))
    b.until(161.0, beating=every(b))
    assert b.noted() == [("node.unknown", {"nodes": 2, "first": ["r0-n00", "r9-n00"]})]


# One silent node


def test_a_silent_node_is_suspected_then_failed_and_fenced(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    session = b.node("r0-n01").session
    assert session is not None
    last = b.node("r0-n01").last
    assert b.until(SUSPECTED - 0.01, beating=rest) == []
    assert b.until(SUSPECTED, beating=rest) == [
        NodeSuspected(
            node=node_name("r0", 1),
            of=last,
            session=session,
            reason=Reason(code="silence", numbers={"silent_s": 6.0}),
        )
    ]
    seq = b.node("r0-n01").suspected
    assert b.until(SUSPECTED + W - 0.01, beating=rest) == []
    (failed, *_) = b.until(SUSPECTED + W + 1, beating=rest)
    assert failed == NodeFailed(
        node=node_name("r0", 1),
        of=seq,
        session=session,
        fenced=True,
        observed_at=b.now - 1 - W - 6,
        reason=Reason(code="silence", numbers={"waited_s": W}),
        serial="sn-r0-n01",
    )
    assert b.node("r0-n01").fitness is Fitness.NONE


def test_heard_again_it_is_cleared_and_only_then_echoed(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    b.until(SUSPECTED + 10, beating=rest)
    b.said.clear()
    b.hear("r0-n01")
    assert b.echoed() == []
    seq = b.node("r0-n01").suspected
    session = b.node("r0-n01").session
    assert session is not None
    assert b.settle() == [NodeCleared(node=node_name("r0", 1), of=seq, session=session)]
    b.mono += 2
    b.hear("r0-n01")
    b.mono += 1
    b.turn()
    assert "r0-n01" in [node for node, _ in b.echoed()]
    assert b.until(200.0, beating=every(b)) == []


def test_heard_in_the_last_moment_it_is_not_failed(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    b.until(SUSPECTED + W - 0.01, beating=rest)
    b.hear("r0-n01")
    b.mono += 1
    assert [entry.TYPE for entry in b.settle()] == ["node.cleared"]


def test_work_that_may_run_without_a_lease_ends_only_by_proof(b: Bench) -> None:
    """F15: its silent nodes are replaced on proof, a new boot id for one."""
    b.cell.sit("j", "r0", [1], name="j", on_lost_lease=OnLostLease.RUN)
    rest = silence(b, "r0-n01")
    b.until(SUSPECTED + 3 * W, beating=rest)
    assert b.types() == ["node.suspected"]
    assert b.notes().count("node.unproven") == 1
    b.status("r0-n01", "s-new", boot="boot-new")
    b.settle()
    assert b.types() == ["node.suspected", "node.joined"]
    assert [wound.code for wound in b.cell.job("j").wounds] == ["session.lost"]


def test_a_second_suspicion_waits_anew(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    b.until(SUSPECTED + 20, beating=rest)
    b.hear("r0-n01")
    b.settle()
    b.until(SUSPECTED + W + 5, beating=rest)
    assert b.types() == ["node.suspected", "node.cleared", "node.suspected"]
    assert b.node("r0-n01").suspected


def test_a_monitor_that_starts_in_between_waits_all_of_w(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    b.until(SUSPECTED + 30, beating=rest)
    other = bench(b.cell, mono=b.mono)
    other.until(SUSPECTED + 30 + W - 0.01, beating=rest)
    assert other.types() == []
    other.until(SUSPECTED + 30 + W, beating=rest)
    assert other.types()[0] == "node.failed"


def test_a_shorter_lease_does_not_shorten_the_wait_for_longer_ones_that_run(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    shorter = replace(b.fleet.policy, fence_after_s=3.0)
    b.others(PolicySet(policy=shorter, by=Owner("ops")))
    b.until(LAST_HEARD + W - 0.01, beating=rest)
    assert b.types() == ["policy.set", "node.suspected"]
    b.until(SUSPECTED + W, beating=rest)
    assert "node.failed" in b.types()


def test_a_suspicion_by_another_copy_recalls_the_lease_and_is_followed_up(b: Bench) -> None:
    node = b.node("r0-n01")
    assert node.session is not None
    b.others(
        NodeSuspected(
            node=node.name, of=node.last, session=node.session, reason=Reason(code="silence")
        )
    )
    b.until(100 + W + 0.1, beating=every(b, "r0-n01"))
    assert b.types()[:2] == ["node.suspected", "node.failed"]


def test_a_node_that_never_beats_after_its_join_is_suspected(b: Bench) -> None:
    b.until(107.0, beating=every(b, "r1-n02"))
    assert b.types() == ["node.suspected"]


def test_paused_health_suspects_nobody_and_echoes_all(b: Bench) -> None:
    rest = silence(b, "r0-n01")
    b.others(AutomationPaused(automation=Automation.HEALTH, until=b.now + 60, by=Owner("ops")))
    b.fault("r0-n02", xid=79)
    assert [entry.TYPE for entry in b.until(b.mono + 59, beating=rest)] == []
    assert b.echoed()[-1][0] in rest
    types = [entry.TYPE for entry in b.until(b.mono + 3, beating=rest)]
    assert types[:2] == ["node.unfit", "node.suspected"]


# Many silent nodes


def test_two_silent_nodes_of_a_rack_are_two_suspects(b: Bench) -> None:
    rest = silence(b, "r0-n01", "r0-n02")
    assert [entry.TYPE for entry in b.until(112.0, beating=rest)] == ["node.suspected"] * 2


def test_a_silent_rack_is_isolated_and_nobody_of_it_is_suspected(b: Bench) -> None:
    rest = silence(b, *b.cell.rack("r0").spec.nodes)
    said = b.until(LAST_HEARD + 29, beating=rest)
    assert said == [
        RackIsolated(
            rack=b.cell.rack("r0").spec.rack,
            reason=Reason(code="silence", numbers={"silent": 6, "nodes": 6}),
        )
    ]


def test_a_silent_rack_is_seen_as_one_though_its_nodes_beat_one_after_the_other(b: Bench) -> None:
    for step in range(6):
        b.mono += 0.3
        b.hear(node_name("r0", step))
    b.until(130.0, beating=every(b, *b.cell.rack("r0").spec.nodes))
    assert b.types() == ["rack.isolated"]


def test_an_isolated_rack_that_is_heard_again_is_restored(b: Bench) -> None:
    rest = silence(b, *b.cell.rack("r0").spec.nodes)
    b.until(LAST_HEARD + 20, beating=rest)
    b.hear(*b.cell.rack("r0").spec.nodes)
    said = b.until(LAST_HEARD + 23, beating=every(b))
    rack = b.cell.rack("r0").spec.rack
    assert said == [RackRestored(rack=rack, reason=Reason(code="heard"))]


def test_when_their_leases_are_over_the_nodes_of_an_isolated_rack_are_fenced(b: Bench) -> None:
    """Until the lease ends by itself a return costs nothing; later the work is lost anyway."""
    rest = silence(b, *b.cell.rack("r0").spec.nodes)
    b.until(LAST_HEARD + 31, beating=rest)
    assert b.types() == ["rack.isolated", *["node.suspected"] * 6]
    b.until(LAST_HEARD + 31 + W + 1, beating=rest)
    assert b.types()[7:13] == ["node.failed"] * 6
    assert b.cell.rack("r0").isolated, "nobody of it is back"
    assert len(b.fleet.culprits) == 1, "a rack event is one culprit"


# Shares


def share(b: Bench, rack: str) -> int:
    """The ordinal of the copy of two that has this rack."""
    fresh = Bench(cell=b.cell)
    fresh.tell(fresh.make(Copies, present=2, ordinal=1))
    return int(fresh.state.owns(b.cell.rack(rack).spec.rack))


def test_copies_share_the_racks_and_each_watches_its_own() -> None:
    made = cell(racks=8, nodes=3)
    copies = [bench(made), bench(made)]
    for ordinal, copy in enumerate(copies):
        copy.copies(2, ordinal)
    shares = [{rack for rack, mine in copy.state.own.items() if mine} for copy in copies]
    assert shares[0] | shares[1] == set(made.fleet.rack_numbers)
    assert not shares[0] & shares[1]
    assert shares[0]
    assert shares[1]


def test_a_fault_of_another_copys_rack_is_acted_on_when_that_copy_goes() -> None:
    made = cell(racks=8, nodes=3)
    b = bench(made)
    b.copies(2, 0)
    foreign = next(rack for rack in made.fleet.rack_numbers if not b.state.owns(rack))
    b.fault(f"{foreign}-n00", xid=79)
    assert b.settle() == []
    b.mono += 5
    b.copies(1, 0)
    assert [entry.TYPE for entry in b.settle()] == ["node.unfit", "node.repair_requested"]


def test_a_share_taken_over_is_given_time_to_be_heard() -> None:
    made = cell(racks=8, nodes=3)
    b = bench(made)
    b.copies(2, 0)
    mine = [name for name in every(b) if b.state.owns_node(b.fleet, node_name(*split(name)))]
    b.until(150.0, beating=mine)
    assert b.types() == []
    b.copies(1, 0)
    b.until(155.9, beating=mine)
    assert b.types() == []


def split(name: str) -> tuple[str, int]:
    rack, _, place = name.partition("-n")
    return rack, int(place)


def test_a_session_is_a_session(b: Bench) -> None:
    """An echo names the session that beat, not the one that is live now."""
    b.hear("r0-n00")
    b.status("r0-n00", "s-new", boot="boot-new")
    b.hear("r0-n00")
    b.settle()
    b.mono += 1
    b.settle()
    assert b.echoed() == [("r0-n00", 1)]
    b.hear("r0-n00")
    b.until(103.0)
    last = [effect.echo for effect in b.said if isinstance(effect, SendEcho)][-1]
    assert last.lines == (EchoLine(node=node_name("r0", 0), session=SessionId("s-new"), n=3),)


def test_a_copy_that_reaches_no_quorum_is_not_to_be_relied_on(b: Bench) -> None:
    b.settle()
    begin = len(b.said)
    b.mono += 6.0
    b.turn()
    b.settle()
    b.mono += 1.5
    b.turn()
    doubts = [effect for effect in b.said[begin:] if isinstance(effect, Doubt)]
    assert doubts == [Doubt(why="no append was acknowledged for 5 s"), Doubt(why="")]
