"""What is known to come free before a plan would be carried out counts for the plan."""

from dataclasses import replace

import pytest

from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge
from rackwright.core.policy.defrag_releases import known_releases
from rackwright.core.policy.defrag_story import explain
from rackwright.gateway.answers.defrag import told
from rackwright.wire.entries.node import RepairRequested
from rackwright.wire.ids import NodeId, PlanId
from rackwright.wire.nodes import RepairAction
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, PINNED, SAVES, block, fill, pass_time

DRAINED = 150.0  # notice and drain of the defaults


def look(made: Cell) -> Verdict:
    return judge(made.fleet, made.job("p"), {}, made.fleet.time)


def returning(probation_s: float, restart_s: float = HOUR, movable: bool = True) -> Cell:
    """r0 is cleared by moving v. r1 has one node less than it takes when w has gone, and a node
    whose probation ends in so many seconds.
    """
    made = cell(3)
    spec = {} if movable else PINNED
    made.sit("v", "r0", range(3), checkpoint=replace(SAVES, restart_s=restart_s), **spec)
    fill(made, "r1", range(2))
    made.sit("w", "r1", [2], checkpoint=SAVES)
    fill(made, "r2", range(12))
    pass_time(made, HOUR)
    made.unfit("r1-n17")
    made.recover("r1-n17", probation_s=probation_s)
    block(made, "p", nodes=16)
    return made


def test_a_node_that_is_good_before_the_drain_is_over_is_waited_for_if_that_saves_more() -> None:
    made = returning(120.0)
    verdict = look(made)
    assert (verdict.outcome, verdict.again) == (Outcome.RELEASE, made.fleet.time + 120.0)
    assert entry_of(verdict, PlanId("x")) is None
    made.wait(120.0)
    then = look(made)
    assert then.outcome is Outcome.GO
    assert then.settled is not None
    assert [home.job for home in then.settled.homes] == ["w"]


@pytest.mark.parametrize(("probation_s", "restart_s"), [(DRAINED + 1.0, HOUR), (120.0, 600.0)])
def test_not_one_that_comes_later_or_saves_less(probation_s: float, restart_s: float) -> None:
    verdict = look(returning(probation_s, restart_s))
    assert verdict.outcome is Outcome.GO
    assert verdict.settled is not None
    assert [home.job for home in verdict.settled.homes] == ["v"]


@pytest.mark.parametrize(
    ("probation_s", "outcome"), [(120.0, Outcome.RELEASE), (DRAINED + 1.0, Outcome.NO_WAY)]
)
def test_where_there_is_no_way_yet_there_may_be_one_in_a_moment(
    probation_s: float, outcome: Outcome
) -> None:
    made = returning(probation_s, movable=False)
    assert look(made).outcome is outcome
    said = told(explain(made.fleet, made.job("p"), {}, made.fleet.time))
    assert ("in a moment" in said) == (outcome is Outcome.RELEASE)


@pytest.mark.parametrize(
    ("left", "outcome"), [(DRAINED - 1.0, Outcome.RELEASE), (DRAINED + 1.0, Outcome.GO)]
)
def test_no_plan_would_be_quicker_than_a_release_before_its_drain_is_over(
    left: float, outcome: Outcome
) -> None:
    """So cheap a plan is worth 141 s of waiting by its cost alone."""
    made = cell(3, policy=Policy(defrag_victim_cost_gpu_h=0.0))
    made.sit("v", "r0", [0, 1, 2], checkpoint=replace(SAVES, restart_s=1.0))
    fill(made, "r2", range(14))
    made.sit("ends", "r1", range(3), time_limit_s=HOUR + left, preemptible=False)
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert verdict.outcome is outcome


@pytest.mark.parametrize(("eta", "known"), [(100.0, 1), (-1.0, 0)])
def test_a_repair_whose_date_has_passed_is_not_known_any_more(eta: float, known: int) -> None:
    made = cell(1, policy=Policy(probation_s=0.0))
    made.unfit("r0-n00")
    made.add(
        RepairRequested(
            node=NodeId("r0-n00"),
            of=made.fleet.node(NodeId("r0-n00")).last,
            action=RepairAction.REPLACE,
            reason=Reason(code="xid.79"),
            eta=made.fleet.time + eta,
        )
    )
    found = known_releases(made.fleet, made.fleet.time, made.fleet.time + HOUR)
    assert len(found.repairs) == known
