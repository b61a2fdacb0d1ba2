"""Checks: idle spares, nodes that come back, nodes of a job that was stopped."""

from dataclasses import replace
from typing import Any

import pytest

from rackwright.core.policy.checks import SUSPECT, SWAP
from rackwright.core.projection import assignments
from rackwright.wire.entries.job import JobSuspended
from rackwright.wire.entries.node import (
    NodeCheckAsked,
    NodeChecked,
    NodeCordoned,
    NodeRecovered,
    NodeUncordoned,
)
from rackwright.wire.ids import JobId, NodeId, Owner
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness, Hardware, RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import CheckResult
from rackwright.wire.values import CheckOrder
from rackwright.wire.wishes import Repaired
from tests.support.fleets import Cell, cell, hardware
from tests.support.monitors import Bench, bench

EVERY_S = 600.0
LIMIT_S = 50.0


def checked_cell(**policy: Any) -> Cell:
    """A rack of eight with a protected slice on five of them; every node has a check."""
    made = cell(racks=1, nodes=8, policy=Policy(check_every_s=EVERY_S, check_limit_s=LIMIT_S))
    if policy:
        made.fleet.policy = replace(made.fleet.policy, **policy)
    for name in list(made.fleet.places):
        made.join(name, replace(hardware(name), checks=True))
    return made


@pytest.fixture
def b() -> Bench:
    return guarded(checked_cell())


def guarded(made: Cell) -> Bench:
    """It has begun to watch when the slice comes that wants spares."""
    b = bench(made)
    b.cell.sit("a", "r0", range(5))
    return b


def every(b: Bench) -> list[str]:
    return [str(name) for name in b.fleet.places]


def asked(entries: list[Entry]) -> list[tuple[str, str, bool]]:
    return [(one.node, one.why, one.hold) for one in entries if isinstance(one, NodeCheckAsked)]


def answer(b: Bench, name: str, *, passed: bool, asked_at: int | None = None) -> list[Entry]:
    """The node says how its check went; returns what follows within two seconds."""
    result = CheckResult(
        asked=asked_at or b.node(name).check, passed=passed, code=0 if passed else 3, said="link 4"
    )
    found = Hardware(serial=f"sn-{name}", gpus=4, gpu_model="gb200", checks=True)
    event: Any = b.make_status(name, boot=b.node(name).boot, n=7)
    b.tell(replace(event, status=replace(event.status, hardware=found, check=result)))
    return b.until(b.mono + 2.0, beating=every(b))


SPARES = ["r0-n05", "r0-n06", "r0-n07"]


def test_idle_spares_are_asked_when_they_have_not_been_for_long(b: Bench) -> None:
    said = asked(b.until(b.mono + 70.0, beating=every(b)))
    assert said == [(name, "idle", False) for name in SPARES]
    for name in SPARES:
        answer(b, name, passed=True)
    assert asked(b.until(b.mono + EVERY_S - 100.0, beating=every(b))) == []
    again = asked(b.until(b.mono + 170.0, beating=every(b)))
    assert again == [(name, "idle", False) for name in SPARES]


def test_the_order_is_in_the_assignment_until_it_is_answered(b: Bench) -> None:
    b.until(b.mono + 70.0, beating=every(b))
    name = NodeId("r0-n05")
    order = assignments(b.fleet, 0, frozenset()).nodes[name].check
    assert order == CheckOrder(asked=b.node(name).check, why="idle", limit_s=LIMIT_S)
    answer(b, name, passed=True)
    assert assignments(b.fleet, 0, frozenset()).nodes[name].check is None


def test_nobody_is_asked_where_nothing_is_protected_or_the_site_has_no_check() -> None:
    idle = bench(checked_cell())
    assert asked(idle.until(idle.mono + 70.0, beating=every(idle))) == []
    without = guarded(cell(racks=1, nodes=8))
    assert asked(without.until(without.mono + 70.0, beating=every(without))) == []


def test_a_dead_spare_is_out_and_a_repair_asked_for(b: Bench) -> None:
    b.until(b.mono + 70.0, beating=every(b))
    said = answer(b, "r0-n05", passed=False)
    assert [one.TYPE for one in said] == ["node.checked", "node.repair_requested"]
    node = b.node("r0-n05")
    assert (node.fitness, node.repair, node.why) == (
        Fitness.NONE,
        RepairAction.INSPECT,
        "check.failed",
    )
    assert [fault.code for fault in node.faults] == ["check.failed"]
    assert b.cell.job("a").wounds == ()


def test_an_answer_to_another_order_is_none(b: Bench) -> None:
    b.until(b.mono + 70.0, beating=every(b))
    assert answer(b, "r0-n05", passed=False, asked_at=1) == []


def test_a_spare_that_does_not_answer_is_dead_one_that_works_is_not(b: Bench) -> None:
    b.until(b.mono + 70.0, beating=every(b))
    b.cell.sit("b", "r0", [7])
    b.until(b.mono + 2.0 * LIMIT_S + 5.0, beating=every(b))
    reasons = {one.node: one.reason.code for one in b.entries if isinstance(one, NodeChecked)}
    assert reasons == {"r0-n05": "check.unanswered", "r0-n06": "check.unanswered"}


def test_with_the_breaker_open_a_check_that_fails_is_not_believed_yet() -> None:
    made = checked_cell(breaker_min=1, breaker_close_s=60.0, breaker_window_s=30.0)
    b = guarded(made)
    b.until(b.mono + 70.0, beating=every(b))
    b.cell.unfit("r0-n07")
    assert answer(b, "r0-n05", passed=False) == []
    assert [one.TYPE for one in answer(b, "r0-n06", passed=True)] == ["node.checked"]
    later = b.until(b.mono + 90.0, beating=every(b))
    said = [one for one in later if isinstance(one, NodeChecked)]
    assert (said[0].node, said[0].reason.code) == ("r0-n05", "check.failed")


def out(b: Bench) -> None:
    """A node has a fault that a boot heals, and boots."""
    b.cell.unfit("r0-n07", code="xid-79")
    event: Any = b.make_status("r0-n07", session="new", boot="new")
    found = replace(event.status.hardware, checks=True)
    b.tell(replace(event, status=replace(event.status, hardware=found)))


def test_a_node_comes_back_when_it_has_passed_its_check(b: Bench) -> None:
    out(b)
    said = b.until(b.mono + 2.0, beating=every(b))
    assert asked(said) == [("r0-n07", "returned", False)]
    assert not any(isinstance(one, NodeRecovered) for one in said)
    said = answer(b, "r0-n07", passed=True)
    assert [one.TYPE for one in said] == ["node.checked", "node.recovered"]
    assert b.node("r0-n07").probation_until > b.now


def test_a_node_that_fails_its_check_stays_out_until_somebody_has_looked(b: Bench) -> None:
    out(b)
    b.until(b.mono + 2.0, beating=every(b))
    said = answer(b, "r0-n07", passed=False)
    assert [one.TYPE for one in said] == ["node.checked", "node.repair_requested"]
    assert b.node("r0-n07").repair is RepairAction.INSPECT
    assert len(b.node("r0-n07").faults) == 1, "it was out already: no further fault"
    seq = b.wish(Repaired(node=NodeId("r0-n07")))
    (check,) = b.settle()
    assert (asked([check]), check.wish) == ([("r0-n07", "repaired", False)], seq)
    said = answer(b, "r0-n07", passed=True)
    assert [one.TYPE for one in said] == ["node.checked", "node.recovered"]
    assert b.node("r0-n07").repair is None


def test_nodes_of_a_suspect_job_get_no_work_before_they_have_been_checked(b: Bench) -> None:
    b.others(JobSuspended(job=JobId("a"), reason=Reason(code="suspect_workload")))
    said = asked(b.until(b.mono + 2.0, beating=every(b)))
    assert said == [(f"r0-n0{place}", SUSPECT, True) for place in range(5)]
    assert b.cell.rack("r0").takes == 0b11100000
    answer(b, "r0-n00", passed=True)
    assert b.cell.rack("r0").takes == 0b11100001


def test_a_job_that_was_suspended_for_another_reason_leaves_its_nodes_alone(b: Bench) -> None:
    b.others(JobSuspended(job=JobId("a"), reason=Reason(code="test")))
    assert asked(b.until(b.mono + 2.0, beating=every(b))) == []


def swapped(b: Bench, name: str = "r0-n06") -> list[Entry]:
    """An owner had a rank swapped away from this node."""
    order = NodeCordoned(
        node=NodeId(name), drain=True, by=Owner("ann"), because=SWAP, job=JobId("a")
    )
    b.others(order)
    return b.until(b.mono + 2.0, beating=every(b))


def test_a_node_that_was_swapped_away_takes_work_again_when_it_has_passed_a_check(
    b: Bench,
) -> None:
    assert asked(swapped(b)) == [("r0-n06", "swap", False)]
    assert b.node("r0-n06").cordoned
    said = answer(b, "r0-n06", passed=True)
    assert [type(one) for one in said] == [NodeChecked, NodeUncordoned]
    assert not b.node("r0-n06").cordoned
    assert asked(swapped(b)) == [("r0-n06", "swap", False)], "the next time it is checked anew"


def test_a_node_that_was_swapped_away_and_fails_its_check_stays_out_until_it_is_repaired(
    b: Bench,
) -> None:
    swapped(b)
    said = answer(b, "r0-n06", passed=False)
    assert [type(one) for one in said][:1] == [NodeChecked]
    assert b.node("r0-n06").cordoned
    assert b.node("r0-n06").fitness is Fitness.NONE
    b.wish(Repaired(node=NodeId("r0-n06"), action=RepairAction.INSPECT))
    b.until(b.mono + 2.0, beating=every(b))
    assert b.node("r0-n06").check_why == "repaired"
    said = answer(b, "r0-n06", passed=True)
    assert asked(said) == [("r0-n06", "swap", False)]
    answer(b, "r0-n06", passed=True)
    assert not b.node("r0-n06").cordoned


def test_a_node_without_a_check_waits_for_an_operator() -> None:
    b = bench(cell(racks=1, nodes=8))
    assert swapped(b) == []
    assert b.until(b.mono + 5.0, beating=every(b)) == []
    assert b.node("r0-n06").cordoned
    b.others(NodeUncordoned(node=NodeId("r0-n06"), by=Owner("op")))
    assert not b.node("r0-n06").cordoned
