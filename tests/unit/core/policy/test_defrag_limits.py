"""Ways that no plan within its limits can hold are left out, and none that one can hold."""

from random import Random

import pytest

from rackwright.core.policy.defrag import over_limits
from rackwright.core.policy.defrag_cost import Blocked, blocked
from rackwright.core.policy.defrag_limits import avoiding, within
from rackwright.core.policy.defrag_racks import surveys
from rackwright.core.policy.defrag_search import Chosen, cheapest_sets
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import Checkpoint
from rackwright.wire.policy import Policy
from tests.support.fleets import cell
from tests.unit.core.policy.defrag_cells import HOUR, block, pass_time


def case_of(seed: int) -> Blocked:
    """Six racks with single jobs and one in two racks; a job misses one to three of them."""
    random = Random(seed)
    policy = Policy(
        defrag_max_share=random.choice((0.02, 0.05, 0.1)),
        defrag_max_victims=random.randint(1, 6),
    )
    made = cell(6, policy=policy, sound=False)
    saves = Checkpoint(interval_s=HOUR)
    for number in range(6):
        place = 4 if number in (1, 2) else 0
        while place < 8:
            nodes = random.randint(1, 4)
            rack, minutes = f"r{number}", random.randint(1, 50)
            saves = Checkpoint(interval_s=HOUR, restart_s=60.0 * minutes)
            made.sit(f"v{number}-{place}", rack, range(place, place + nodes), checkpoint=saves)
            place += nodes
    made.spread("d", [("r1", range(4)), ("r2", range(4))], slice_nodes=4)
    pass_time(made, HOUR)
    block(made, "p", nodes=16 * random.randint(1, 3), priority=60)
    found = blocked(made.fleet, made.job("p"), {}, made.fleet.time)
    assert isinstance(found, Blocked)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_sets_within_the_limits_are_the_same(seed: int) -> None:
    case = case_of(seed)
    found = surveys(case)

    def good(narrow: bool) -> list[Chosen]:
        seen = [within(case, one) for one in found] if narrow else found
        return [one for one in cheapest_sets(case, seen) if over_limits(case, one) is None]

    print(f"seed={seed} missing={[one.missing for one in found]}")
    assert good(narrow=True) == good(narrow=False)


def test_the_limits_do_leave_ways_out() -> None:
    dropped = kept = 0
    for seed in range(20):
        case = case_of(seed)
        for survey in surveys(case):
            before = sum(len(ways) for ways in survey.ways.values())
            after = sum(len(ways) for ways in within(case, survey).ways.values())
            dropped, kept = dropped + before - after, kept + after
    assert dropped > 0
    assert kept > 0


def test_who_has_no_home_is_in_no_set_that_avoids_it() -> None:
    case = case_of(1)
    (survey,) = surveys(case)
    name = next(iter(cheapest_sets(case, [survey]))).leaves[0][0]
    without = avoiding(survey, {JobId(name)})
    assert all(name not in one.victims for one in cheapest_sets(case, [without]))


@pytest.mark.parametrize("seed", range(20))
def test_with_a_limit_on_victims_the_other_sets_come_as_without(seed: int) -> None:
    case = case_of(seed)
    found = surveys(case)

    def alone(chosen: Chosen) -> int:
        return sum(len(case.fleet.jobs[name].slices) == 1 for name in chosen.victims)

    for most in range(6):
        print(f"seed={seed} most={most}")
        wanted = [one for one in cheapest_sets(case, found) if alone(one) <= most]
        assert list(cheapest_sets(case, found, most)) == wanted
