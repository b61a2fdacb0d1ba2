"""The cheapest ways to clear a rack, and sets of racks in the order of their cost."""

from itertools import combinations, islice, product
from random import Random

import pytest

from rackwright.core.policy.defrag_cost import Blocked, blocked
from rackwright.core.policy.defrag_racks import Option, Survey, Way, covers_of, surveys
from rackwright.core.policy.defrag_search import cheapest_sets
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint
from tests.support.fleets import Cell, cell, hardware, node_name, rack_spec
from tests.unit.core.policy.defrag_cells import HOUR, block, fill, pass_time


def case_of(made: Cell, job: str = "p") -> Blocked:
    found = blocked(made.fleet, made.job(job), {}, made.fleet.time)
    assert isinstance(found, Blocked)
    return found


def ways(made: Cell, rack: str, size: int = 16) -> list[Way]:
    number = made.rack(rack).number
    return [
        way
        for survey in surveys(case_of(made))
        for way in survey.ways.get(size, ())
        if way.rack == number
    ]


def names(way: Way) -> set[str]:
    return {str(name) for name, _ in way.leaves}


def saving(minutes: float = 10.0) -> Checkpoint:
    """Costs 4 GPUs x `minutes` for each node, and nothing is lost."""
    return Checkpoint(on_notice_s=60.0, restart_s=minutes * 60.0)


@pytest.mark.parametrize("seed", range(40))
def test_covers_are_the_cheapest_of_all_subsets(seed: int) -> None:
    random = Random(seed)
    groups: list[list[Option]] = []
    for number in range(random.randint(1, 7)):
        one: list[Option] = []
        freed = 0
        for index in range(random.randint(1, 2)):
            freed += random.randint(1, 5)
            leaves = tuple((JobId(f"j{number}"), at) for at in range(index + 1))
            one.append((freed, (float(random.randint(1, 30)), 1, leaves)))
        groups.append(one)
    need = random.randint(1, 14)
    brute = min(
        (
            sum(option[1][0] for option in chosen if option is not None)
            for chosen in product(*([None, *options] for options in groups))
            if sum(option[0] for option in chosen if option is not None) >= need
        ),
        default=None,
    )
    found = [cover for _, cover in covers_of(groups, need, need)]
    print(f"seed={seed} need={need} groups={groups}")
    assert (min(found)[0] if found else None) == brute


def test_a_full_rack_is_no_obstacle_if_its_work_may_be_moved() -> None:
    """Lesson 28: what counts is free and evictable together."""
    made = cell(1)
    for number in range(9):
        made.sit(f"v{number}", "r0", [2 * number, 2 * number + 1])
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    best = ways(made, "r0")[0]
    assert len(best.leaves) == 8
    assert best.hold == 0.0


def test_pins_that_leave_too_little_make_a_rack_impossible() -> None:
    made = cell(1)
    fill(made, "r0", range(3))
    made.sit("v", "r0", range(3, 9))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert ways(made, "r0") == []


def test_enough_leaves_and_no_blocker_stays_behind() -> None:
    """Lesson 29: too few victims to free the rack, or a shared node with one tenant left."""
    made = cell(1)
    made.sit("half", "r0", [0], gpus=0b0011, checkpoint=saving())
    made.sit("other", "r0", [0], gpus=0b1100, checkpoint=saving())
    made.sit("big", "r0", range(1, 9), checkpoint=saving(600.0))
    made.sit("small", "r0", [9, 10], checkpoint=saving())
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert [names(way) for way in ways(made, "r0")] == [{"big", "small"}, {"big", "half", "other"}]
    block(made, "q", nodes=18, slice_nodes=18)
    found = [way for survey in surveys(case_of(made, "q")) for way in survey.ways[18]]
    assert [names(way) for way in found] == [{"big", "half", "other", "small"}]


def test_a_shared_node_with_a_pinned_tenant_cannot_come_free() -> None:
    made = cell(1)
    made.sit("half", "r0", [0], gpus=0b0011)
    made.sit("note", "r0", [0], gpus=0b1100, preemptible=False)
    made.sit("v", "r0", range(1, 3))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert [names(way) for way in ways(made, "r0")] == [{"v"}]
    block(made, "q", nodes=18, slice_nodes=18)
    assert [survey.ways for survey in surveys(case_of(made, "q"))] == [{18: ()}]


def test_one_large_victim_rather_than_many_small_ones_of_equal_cost() -> None:
    made = cell(1)
    made.sit("two", "r0", range(2), checkpoint=saving())
    made.sit("a", "r0", [2], checkpoint=saving())
    made.sit("b", "r0", [3], checkpoint=saving())
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert names(ways(made, "r0")[0]) == {"two"}


def test_small_slices_leave_the_spares_of_those_who_stay() -> None:
    """A slice smaller than the operator's does not take spares, so more must leave."""
    made = cell(1)
    made.sit("stays", "r0", range(8), preemptible=False)
    made.sit("v", "r0", range(8, 12), checkpoint=saving())
    made.sit("w", "r0", range(12, 15), checkpoint=saving())
    pass_time(made, HOUR)
    # 3 free, 2 of them kept as spares.
    block(made, "p", nodes=5)
    assert names(ways(made, "r0", 5)[0]) == {"v"}
    block(made, "q", nodes=6)
    found = [way for survey in surveys(case_of(made, "q")) for way in survey.ways[6]]
    assert names(found[0]) == {"v", "w"}


def test_a_rack_may_let_in_several_slices() -> None:
    made = cell(1)
    made.sit("v", "r0", range(8), checkpoint=saving())
    made.sit("w", "r0", range(8, 16), checkpoint=saving())
    pass_time(made, HOUR)
    block(made, "p", nodes=16, slice_nodes=8)
    found = ways(made, "r0", 8)
    assert {way.pieces for way in found} == {1, 2}
    chosen = next(iter(cheapest_sets(case_of(made), surveys(case_of(made)))))
    assert set(chosen.victims) == {"v", "w"}
    assert [way.pieces for way in chosen.ways] == [2]


def test_a_victim_in_two_racks_is_paid_for_once() -> None:
    made = cell(3)
    made.spread("d", [("r0", range(4)), ("r1", range(4))], slice_nodes=4)
    fill(made, "r2", range(4))
    pass_time(made, HOUR)
    block(made, "p", nodes=32, priority=60)
    case = case_of(made)
    chosen = next(iter(cheapest_sets(case, surveys(case))))
    price = case.price(JobId("d"))
    assert not isinstance(price, str)
    assert chosen.victims == {"d": (0, 1)}
    assert chosen.cost == pytest.approx(price.total + chosen.hold)
    assert sum(way.cost for way in chosen.ways) > chosen.cost


def brute_sets(case: Blocked, survey: Survey) -> list[float]:
    ((size, missing),) = survey.missing
    costs = []
    for chosen in combinations(survey.ways[size], missing):
        if len({way.rack for way in chosen}) == missing:
            jobs = {name for way in chosen for name, _ in way.leaves}
            prices = [case.price(name) for name in sorted(jobs)]
            total = sum(price.total for price in prices if not isinstance(price, str))
            costs.append(round(total + sum(way.hold for way in chosen), 6))
    return sorted(costs)


@pytest.mark.parametrize("seed", range(12))
def test_sets_come_in_the_order_of_their_cost(seed: int) -> None:
    """Against all combinations, with a job in several racks that makes sets cheaper."""
    random = Random(seed)
    made = cell(6, sound=False)
    for number in range(6):
        place = 0
        while place < 8:
            nodes = random.randint(1, 4)
            if not (number in (1, 2) and place == 0):
                minutes = float(random.randint(1, 60))
                made.sit(
                    f"v{number}-{place}",
                    f"r{number}",
                    range(place, place + nodes),
                    checkpoint=saving(minutes),
                )
            else:
                nodes = 4
            place += nodes
    made.spread("d", [("r1", range(4)), ("r2", range(4))], slice_nodes=4)
    pass_time(made, HOUR)
    block(made, "p", nodes=16 * random.randint(1, 3), priority=60)
    case = case_of(made)
    (survey,) = surveys(case)
    print(f"seed={seed} missing={survey.missing}")
    wanted = brute_sets(case, survey)
    found = [round(chosen.cost, 6) for chosen in islice(cheapest_sets(case, [survey]), 25)]
    assert found == sorted(found)
    assert found[0] == wanted[0]
    assert set(found) <= set(wanted)


def test_nodes_of_a_job_are_all_alike() -> None:
    made = cell(2)
    made.define(rack_spec("r9", 18), join=False)
    for place in range(18):
        name = node_name("r9", place)
        made.join(name, hardware(name, model="other"))
    for rack in ("r0", "r1", "r9"):
        made.sit(f"v-{rack}", rack, range(4), checkpoint=saving())
    pass_time(made, HOUR)
    block(made, "p", nodes=32)
    found = surveys(case_of(made))
    assert [survey.same[0] for survey in found] == ["gb200", "other"]
    sets = list(cheapest_sets(case_of(made), found))
    assert [set(chosen.victims) for chosen in sets] == [{"v-r0", "v-r1"}]


def test_racks_that_may_not_be_used_are_not_looked_at() -> None:
    made = cell(2)
    for rack in ("r0", "r1"):
        made.sit(f"v-{rack}", rack, range(4), checkpoint=saving())
    pass_time(made, HOUR)
    barred = tuple(node_name("r0", place) for place in range(4))
    block(made, "p", nodes=16, exclude_nodes=barred)
    assert ways(made, "r0") == []
    assert [names(way) for way in ways(made, "r1")] == [{"v-r1"}]


def test_gpus_of_one_node() -> None:
    made = cell(1, nodes=2)
    made.sit("a", "r0", [0], gpus=0b0011, checkpoint=saving())
    made.sit("b", "r0", [1], gpus=0b0001, checkpoint=saving())
    made.sit("c", "r0", [1], gpus=0b0110, checkpoint=saving())
    pass_time(made, HOUR)
    block(made, "p", gpus=3)
    found = ways(made, "r0", 0)
    assert [names(way) for way in found] == [{"c"}, {"a"}]  # the node with less to hold first
