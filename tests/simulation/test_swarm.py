"""A thousand worlds with faults: no harm at any step, rest within a bound, the same every time."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from rackwright.core.policy.placement import place_on
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobSpec
from tests.simulation.knobs import KINDS, RATES, RATES_ADDED, draw
from tests.simulation.shrink import Case, shrink
from tests.simulation.story import fits, play
from tests.simulation.swarm import swarm
from tests.support.fleets import cell

SEEDS = 1000
SAY = "from tests.simulation.swarm import one; print(one({}, brief=True).digest)"


@pytest.mark.swarm
def test_a_thousand_seeds() -> None:
    broken: list[str] = []
    faults: Counter[str] = Counter()
    for outcome in swarm(0, SEEDS, brief=True):
        faults.update(outcome.faults)
        if outcome.violation:
            case = Case(seed=outcome.seed, brief=True)
            broken.append(f"{outcome.violation}\n  {case.command()}")
    assert broken == []
    assert {*RATES, *RATES_ADDED} - set(faults) == set(), "every kind of fault came"


@pytest.mark.parametrize("seed", [7, 9_700_041])  # in the second, several pauses are ended
def test_a_seed_is_the_same_story_in_another_process_with_another_hash_seed(seed: int) -> None:
    found = {play(draw(seed, brief=True)).digest}
    for hash_seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", SAY.format(seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(made.stdout.strip())
    assert len(found) == 1, found


def test_a_failing_seed_is_shrunk_to_what_it_needs() -> None:
    """By a stand-in for playing: it fails as long as two of its faults are there."""
    needed = {"node dies", "agent killed"}

    def fails(case: Case) -> str:
        return "" if needed & case.without else "j1 is lost"

    small = shrink(Case(seed=3), "j7 is lost", fails)
    assert small.without >= set(draw(3).rates) - needed
    assert not small.without & needed
    assert small.jobs == 0
    assert small.chaos_s == 2.0
    assert "SEED_START=3" in small.command()


def test_leaving_a_fault_out_changes_no_other_knob() -> None:
    whole = draw(11)
    less = draw(11, without=frozenset(KINDS) - {"fault"})
    assert (less.racks, less.nodes, less.jobs, less.copies) == (
        whole.racks,
        whole.nodes,
        whole.jobs,
        whole.copies,
    )


def test_work_without_gpus_has_room_where_no_full_slice_fits() -> None:
    """What the swarm asks of a cell at rest is what placement does."""
    small = cell(1, nodes=4, policy=draw(0).policy)
    job = small.queue("tokens", JobSpec(name=JobId("tokens"), gpus=0))
    assert (fits(small.fleet, job), place_on(small.fleet, job) is not None) == (False, False)
    small.unfit(small.rack("r0").nodes[0].name)
    assert (fits(small.fleet, job), place_on(small.fleet, job) is not None) == (True, True)
