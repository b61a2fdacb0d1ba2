"""The worked example of the policy page, section 3, to the digit."""

from dataclasses import replace

import pytest

from rackwright.core.evolve import evolve
from rackwright.core.invariants import check
from rackwright.core.policy.defrag import Outcome, Verdict, entry_of, judge
from rackwright.core.policy.defrag_racks import Way
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import JobId, PlanId
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import (
    HOUR,
    MINUTE,
    PINNED,
    SAVES,
    block,
    change,
    fill,
    pass_time,
)

RACKS = 60


def example() -> tuple[Cell, dict[JobId, float]]:
    """14:00:30. Two racks fit, two are missing; r3 and r5 have nine free nodes for victims."""
    made = cell(RACKS, sound=False)
    for name, places in (("r0", range(2)), ("r1", range(2)), ("r3", range(13)), ("r5", range(14))):
        fill(made, name, places)
    made.sit("A", "r7", range(2), checkpoint=SAVES)
    made.sit("B", "r7", range(2, 5))
    fill(made, "r7", [5])
    made.sit("E", "r12", range(2))
    made.sit("F", "r12", range(2, 4))
    made.sit("C", "r11", range(16))
    others = [f"r{number}" for number in range(30, 46)]
    made.spread("D", [*((rack, range(16)) for rack in others), ("r9", range(4))])
    fill(made, "r20", range(3))
    busy = {"r0", "r1", "r3", "r5", "r7", "r9", "r11", "r12", "r20", *others}
    for rack in (f"r{number}" for number in range(RACKS)):
        if rack not in busy:
            made.sit(f"full-{rack}", rack, range(18), slice_nodes=18, **PINNED)
    for rack in others:
        fill(made, rack, [16, 17])
    now = pass_time(made, 9 * HOUR)
    change(made, "B", preempted=(now - 5 * HOUR,))
    block(made, "P", since=30.0, nodes=64)
    check(made.fleet)
    return made, {
        JobId("B"): now - 4 * MINUTE,
        JobId("F"): now - 10 * MINUTE,
        JobId("C"): now - 25 * MINUTE,
    }


def verdict(made: Cell, checkpoints: dict[JobId, float]) -> Verdict:
    return judge(made.fleet, made.job("P"), checkpoints, made.fleet.time)


def by_rack(found: Verdict, made: Cell) -> dict[str, Way]:
    """The cheapest way of each rack."""
    ways: dict[str, Way] = {}
    for survey in found.found:
        for way in survey.ways[16]:
            ways.setdefault(made.fleet.rack_name(way.rack), way)
    return ways


@pytest.fixture(scope="module")
def made() -> tuple[Cell, dict[JobId, float]]:
    return example()


def test_cheapest_way_of_each_rack(made: tuple[Cell, dict[JobId, float]]) -> None:
    found = verdict(*made)
    ways = by_rack(found, made[0])
    costs = {rack: round(ways[rack].cost, 2) for rack in ("r7", "r12", "r11", "r9")}
    assert costs == {"r7": 10.13, "r12": 6.27, "r11": 40.80, "r9": 55.33}
    assert ways["r7"].leaves == (("A", 0), ("B", 0))
    assert ways["r12"].leaves == (("F", 0),)
    assert ways["r9"].leaves == (("D", 16),)
    assert "r20" not in ways
    assert [(survey.missing) for survey in found.found] == [((16, 2),)]


def test_terms_of_each_victim(made: tuple[Cell, dict[JobId, float]]) -> None:
    found = verdict(*made)
    assert found.case is not None
    prices = {name: found.case.price(JobId(name)) for name in "ABCDF"}
    totals = {n: round(p.total - 1.0, 2) for n, p in prices.items() if not isinstance(p, str)}
    assert totals == {"A": 1.33, "B": 4.80, "C": 39.47, "D": 52.00, "F": 2.93}
    ways = by_rack(found, made[0])
    holds = {rack: round(ways[rack].hold, 2) for rack in ("r7", "r12", "r11", "r9")}
    assert holds == {"r7": 2.00, "r12": 2.33, "r11": 0.33, "r9": 2.33}


def test_plan_benefit_and_next_best(made: tuple[Cell, dict[JobId, float]]) -> None:
    found = verdict(*made)
    assert found.outcome is Outcome.GO
    assert found.settled is not None
    assert found.next_best is not None
    assert (round(found.settled.cost, 1), found.benefit) == (16.4, 128.0)
    assert round(found.next_best.cost, 1) == 47.1
    assert found.bound == found.settled.cost, "homes are free at once: none could be cheaper"
    assert {made[0].fleet.rack_name(number) for number in found.next_best.racks} == {"r11", "r12"}


def test_every_victim_has_a_home_in_a_broken_rack(made: tuple[Cell, dict[JobId, float]]) -> None:
    found = verdict(*made)
    entry = entry_of(found, PlanId("plan"))
    assert isinstance(entry, DefragPlanned)
    homes = {victim.job: victim.homes[0].rack for victim in entry.victims}
    assert set(homes) == {"A", "B", "F"}
    assert set(homes.values()) <= {"r3", "r5"}
    assert {part.rack for part in entry.slices} == {"r0", "r1", "r7", "r12"}
    assert [part.nodes.bit_count() for part in entry.slices] == [16] * 4


def test_a_dear_plan_waits_in_proportion(made: tuple[Cell, dict[JobId, float]]) -> None:
    """One of 150 GPU-hours waits until 35 minutes: 150 / 256 h."""
    fleet = made[0].fleet
    kappa = 150.0 / 16.4
    dear = evolve(fleet, policy=replace(fleet.policy, defrag_kappa=kappa))
    found = judge(dear, made[0].job("P"), made[1], fleet.time)
    assert found.outcome is Outcome.DEAR
    assert found.again is not None
    assert (found.again - (fleet.time - 30.0)) / MINUTE == pytest.approx(35.2, abs=0.1)
    later = evolve(dear, time=found.again + 1.0)
    kept = {name: at + found.again - fleet.time for name, at in made[1].items()}
    assert judge(later, made[0].job("P"), kept, later.time).outcome is Outcome.GO
