"""Work leaves in good time what will be away, and may come back when that is over."""

from typing import Any

import pytest

from rackwright.core.jobs import WoundKind
from rackwright.wire.entries.cell import AutomationPaused
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCordoned,
    NodeUncordoned,
    RackDegraded,
    RackRestored,
)
from rackwright.wire.ids import JobId, Owner, RackId, WorkerId
from rackwright.wire.jobs import JobClass
from rackwright.wire.message import Entry
from rackwright.wire.nodes import RackFitness
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import WorkerState, WorkerStatus
from rackwright.wire.subjects import shard_of
from tests.support.fleets import cell, node_name
from tests.support.monitors import Bench, bench

OP = Owner("op")
R0 = RackId("r0")


@pytest.fixture
def b() -> Bench:
    made = cell(racks=2, nodes=4)
    made.sit("a", "r0", [0, 1])
    made.sit("i", "r0", [2], job_class=JobClass.INTERACTIVE)
    return bench(made)


def window(b: Bench, in_s: float, **where: Any) -> None:
    begin = b.cell.fleet.time + in_s
    fields: dict[str, Any] = {"racks": (R0,)} | where
    b.others(MaintenanceScheduled(begin=begin, end=begin + 100.0, notice_s=60.0, by=OP, **fields))


def later(b: Bench) -> list[Entry]:
    """What is said within two seconds."""
    return b.until(b.mono + 2.0)


def drained(entries: list[Entry]) -> list[tuple[str, bool, str]]:
    return [(one.node, one.drain, one.because) for one in entries if isinstance(one, NodeCordoned)]


def test_nothing_before_the_notice(b: Bench) -> None:
    window(b, in_s=600.0)
    assert drained(later(b)) == []


def test_the_nodes_are_drained_with_notice_and_their_work_is_wounded(b: Bench) -> None:
    window(b, in_s=30.0)
    assert drained(later(b)) == [
        (node_name("r0", place), True, "maintenance") for place in range(4)
    ]
    wounds = b.cell.job("a").wounds
    assert [(one.rank, one.kind) for one in wounds] == [(0, WoundKind.DRAIN), (1, WoundKind.DRAIN)]
    assert b.cell.job("i").wounds == ()
    assert drained(later(b)) == []


def test_a_window_that_comes_near_is_seen_though_nothing_else_happens(b: Bench) -> None:
    window(b, in_s=b.now - b.cell.fleet.time + 160.0)
    assert drained(b.until(b.mono + 99.0)) == []
    assert len(drained(b.until(b.mono + 2.0))) == 4


def test_a_node_that_an_operator_lets_in_too_early_is_drained_again(b: Bench) -> None:
    window(b, in_s=30.0)
    later(b)
    b.others(NodeUncordoned(node=node_name("r0", 3), by=OP))
    assert drained(later(b)) == [(node_name("r0", 3), True, "maintenance")]


def test_another_copys_racks_are_left_to_it_and_taken_over(b: Bench) -> None:
    mine = [b.state.owns(RackId(f"r{rack}")) for rack in range(2)]
    assert mine == [True, True]
    b.copies(present=2, ordinal=1 - int(shard_of(R0)) % 2)
    window(b, in_s=30.0)
    assert drained(later(b)) == []
    b.copies(present=1, ordinal=0)
    assert len(drained(later(b))) == 4
    b.others(MaintenanceEnded(of=b.cell.fleet.maintenance[0].seq))
    b.copies(present=2, ordinal=int(shard_of(R0)) % 2)
    assert sum(isinstance(one, NodeUncordoned) for one in later(b)) == 4


def test_single_nodes(b: Bench) -> None:
    window(b, in_s=0.0, racks=(), nodes=(node_name("r1", 3),))
    assert drained(later(b)) == [(node_name("r1", 3), True, "maintenance")]


def test_they_take_work_again_when_the_window_is_closed(b: Bench) -> None:
    window(b, in_s=30.0)
    later(b)
    b.others(MaintenanceEnded(of=b.cell.fleet.maintenance[0].seq))
    said = [one.node for one in later(b) if isinstance(one, NodeUncordoned)]
    assert said == [node_name("r0", place) for place in range(4)]
    assert b.cell.job("a").wounds == ()


def test_what_an_operator_had_cordoned_stays_theirs(b: Bench) -> None:
    b.others(NodeCordoned(node=node_name("r0", 3), by=OP))
    window(b, in_s=30.0)
    assert drained(later(b))[-1] == (node_name("r0", 3), True, "")
    b.others(MaintenanceEnded(of=b.cell.fleet.maintenance[0].seq))
    said = [one.node for one in later(b) if isinstance(one, NodeUncordoned)]
    assert said == [node_name("r0", place) for place in range(3)]


def test_a_rack_that_must_be_left_is_left(b: Bench) -> None:
    why = Reason(code="rack.event")
    b.others(RackDegraded(rack=R0, fitness=RackFitness.EVACUATE, reason=why))
    found = drained(later(b))
    assert {because for _, _, because in found} == {"rack-event"}
    assert len(b.cell.job("a").wounds) == 2
    b.others(RackRestored(rack=R0, reason=Reason(code="quiet")))
    assert sum(isinstance(one, NodeUncordoned) for one in later(b)) == 4


def test_a_pause_of_health_stops_it(b: Bench) -> None:
    until = b.cell.fleet.time + 1000.0
    b.others(AutomationPaused(automation=Automation.HEALTH, until=until, by=OP))
    window(b, in_s=30.0)
    assert drained(later(b)) == []
    assert JobId("a") not in b.cell.fleet.wounded


def saved(b: Bench, name: str, worker: str, at: float) -> None:
    """The node tells when its worker saved last."""
    one = WorkerStatus(
        worker=WorkerId(worker), state=WorkerState.RUNNING, ready=True, checkpoint_at=at
    )
    b.beats += 1
    b.status(name, boot=b.node(name).boot, n=b.beats, workers=(one,))


def test_work_leaves_when_all_its_ranks_have_saved_since_the_notice(b: Bench) -> None:
    begin = b.now + 1000.0
    b.others(
        MaintenanceScheduled(racks=(R0,), begin=begin, end=begin + 100.0, notice_s=1800.0, by=OP)
    )
    first = [(one.node, one.drain) for one in later(b) if isinstance(one, NodeCordoned)]
    names = [str(node_name("r0", place)) for place in range(4)]
    assert first == [(names[0], False), (names[1], False), (names[2], True), (names[3], True)]
    assert b.cell.job("a").wounds == ()
    saved(b, names[0], "a/0/1", begin - 900.0)
    saved(b, names[1], "a/1/1", begin - 1900.0)
    assert drained(later(b)) == [], "one rank saved before the notice only"
    saved(b, names[1], "a/1/1", begin - 890.0)
    assert drained(later(b)) == [(name, True, "maintenance") for name in names[:2]]
    assert [one.kind for one in b.cell.job("a").wounds] == [WoundKind.DRAIN] * 2


def test_what_does_not_save_leaves_when_there_is_no_more_time(b: Bench) -> None:
    begin = b.now + 1000.0
    b.others(
        MaintenanceScheduled(racks=(R0,), begin=begin, end=begin + 100.0, notice_s=1800.0, by=OP)
    )
    later(b)
    assert b.until(b.mono + 390.0) == []
    names = [str(node_name("r0", place)) for place in range(2)]
    assert drained(b.until(b.mono + 15.0)) == [(name, True, "maintenance") for name in names]
