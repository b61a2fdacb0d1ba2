"""Who can have no home is in no set that is tried; nobody else is left out."""

from random import Random

import pytest

from rackwright.core.policy.defrag import Outcome, judge
from rackwright.core.policy.defrag_cost import Blocked, blocked
from rackwright.core.policy.defrag_homes import settle
from rackwright.core.policy.defrag_hopeless import with_homes
from rackwright.core.policy.defrag_racks import Way, surveys
from rackwright.core.policy.defrag_search import cheapest_sets
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.fleets import Cell, cell
from tests.unit.core.policy.defrag_cells import HOUR, block, fill, pass_time

SAVES = Checkpoint(interval_s=HOUR, restart_s=60.0)


def case_of(made: Cell, name: str = "p") -> Blocked:
    found = blocked(made.fleet, made.job(name), {}, made.fleet.time)
    assert isinstance(found, Blocked)
    return found


def left_out(case: Blocked) -> set[Way]:
    (survey,) = surveys(case)
    ((size, _),) = survey.missing
    return set(survey.ways[size]) - set(with_homes(case, survey).ways[size])


def random_case(seed: int) -> Blocked:
    """Six racks with work of all sizes, some of lower priority; a job misses a slice or two."""
    random = Random(seed)
    made = cell(6, policy=Policy(spares_large=random.choice((0, 2))), sound=False)
    for number in range(6):
        place = random.choice((0, 0, 2, 14))
        while place < 18 and random.random() < 0.8:
            nodes = min(18 - place, random.choice((1, 2, 3, 4, 8, 15, 16, 17)))
            made.sit(
                f"v{number}-{place}",
                f"r{number}",
                range(place, place + nodes),
                checkpoint=SAVES,
                priority=random.choice((10, 50)),
            )
            place += nodes
    pass_time(made, HOUR)
    size = random.choice((10, 12, 15, 16, 17, 18))
    block(made, "p", nodes=size * random.randint(1, 3), slice_nodes=size, priority=50)
    return case_of(made)


@pytest.mark.parametrize("seed", range(40))
def test_no_set_with_them_has_a_home_for_everybody(seed: int) -> None:
    print(f"seed={seed}")
    case = random_case(seed)
    found = surveys(case)
    gone = [way for one in found for ways in one.ways.values() for way in ways]
    for one in found:
        for ways in with_homes(case, one).ways.values():
            gone = [way for way in gone if way not in ways]
    for chosen in cheapest_sets(case, found):
        if any(way in gone for way in chosen.ways):
            assert isinstance(settle(case, chosen), Reason), chosen


def test_some_are_left_out() -> None:
    dropped = 0
    for seed in range(40):
        for survey in surveys(case := random_case(seed)):
            dropped += with_homes(case, survey) != survey
    assert dropped > 5


def test_work_as_large_as_the_job_has_no_home_where_no_other_rack_is_free() -> None:
    made = cell(2)
    made.sit("v", "r0", range(12), checkpoint=SAVES)
    fill(made, "r1", range(12))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert {way.leaves for way in left_out(case_of(made))} == {(("v", 0),)}
    verdict = judge(made.fleet, made.job("p"), {}, made.fleet.time)
    assert verdict.outcome is Outcome.NO_HOMES
    assert verdict.failed == ()


def test_it_stays_where_another_rack_takes_it() -> None:
    made = cell(3)
    made.sit("v", "r0", range(5), checkpoint=SAVES)
    fill(made, "r1", range(12))
    fill(made, "r2", range(12))
    pass_time(made, HOUR)
    block(made, "p", nodes=16)
    assert left_out(case_of(made)) == set()
    assert judge(made.fleet, made.job("p"), {}, made.fleet.time).outcome is Outcome.GO
