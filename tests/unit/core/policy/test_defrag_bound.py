"""What no plan could cost less than, beside what the chosen one costs."""

from dataclasses import replace

from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.ids import Owner, PlanId
from rackwright.wire.policy import Policy
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, SAVES, block, fill, pass_time


def look(made: Cell) -> Verdict:
    return judge(made.fleet, made.job("p"), {}, made.fleet.time)


def test_homes_that_are_missing_cost_more_than_the_bound() -> None:
    """The cheapest victim has no home; a dearer one has."""
    made = cell(3)
    made.sit("large", "r0", range(14), checkpoint=replace(SAVES, restart_s=60.0))
    made.sit("small", "r1", range(4), checkpoint=replace(SAVES, restart_s=1200.0))
    fill(made, "r2", range(14))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert verdict.settled is not None
    assert verdict.bound == verdict.failed[0][0].cost
    assert verdict.bound < verdict.settled.cost
    entry = entry_of(verdict, PlanId("plan"))
    assert entry is not None
    assert (entry.bound_gpu_h, entry.cost_gpu_h) == (verdict.bound, verdict.settled.cost)


def test_no_plan_costs_less_than_the_cheapest_set_beyond_the_limits_of_one_plan() -> None:
    """Two small jobs would be cheaper than one larger, and are more than a plan may move."""
    made = cell(3)
    for place in (0, 1, 2):
        made.sit(f"small-{place}", "r0", [place], checkpoint=replace(SAVES, restart_s=1.0))
    made.sit("one", "r1", range(3), checkpoint=replace(SAVES, restart_s=7200.0))
    fill(made, "r2", range(12))
    pass_time(made, HOUR)
    block(made, "p", nodes=17)
    cheap = look(made)
    assert (cheap.outcome, cheap.bound) == (Outcome.GO, cheap.settled and cheap.settled.cost)
    made.add(PolicySet(policy=Policy(defrag_max_victims=1), by=Owner("op")))
    dear = look(made)
    assert dear.settled is not None
    assert [home.job for home in dear.settled.homes] == ["one"]
    assert dear.bound == cheap.bound


def test_where_there_is_no_plan_there_is_no_bound() -> None:
    made = cell(2)
    made.sit("dear", "r0", range(3), checkpoint=replace(SAVES, restart_s=36_000.0))
    fill(made, "r1", range(15))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    verdict = look(made)
    assert (verdict.outcome, verdict.bound) == (Outcome.DEAR, None)
