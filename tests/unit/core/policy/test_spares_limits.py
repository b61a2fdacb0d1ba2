"""When recovery holds back: poison jobs, the breaker, and who comes first."""

from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.core.policy.spares import recover, urgency
from rackwright.wire.entries.job import JobResumed, JobSuspended
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, Owner
from tests.support.fleets import Cell, cell
from tests.support.recovery import crash, decided, drain, swap

# Poison


def wedge(made: Cell, code: str = "xid.79") -> list[Any]:
    """The node of rank 0 goes bad, is healed, and the job runs on."""
    part = made.job("a").slices[0]
    made.unfit(made.fleet.node_at(part.rack, part.nodes[0]).name, code=code)
    entries = decided(made)
    for entry in entries:
        made.add(entry)
    if made.job("a").state is not JobState.SUSPENDED:
        made.start("a")
    made.wait(60)
    return entries


def test_job_that_wedges_node_after_node_is_stopped() -> None:
    made = cell(1)
    made.sit("a", "r0", range(10))
    for _ in range(3):
        assert isinstance(wedge(made)[0], SliceSwapped)
    (entry,) = wedge(made)
    assert isinstance(entry, JobSuspended)
    assert entry.reason.code == "suspect_workload"
    assert entry.reason.numbers == {"signal": "xid.79", "swaps": 3, "window_s": 3600.0}
    made.add(JobResumed(job=JobId("a"), by=Owner("op")))
    assert made.job("a").swaps == ()


def test_poison_is_found_across_moves_of_small_work_too() -> None:
    made = cell(2)
    made.sit("a", "r0", [0], gpus=0b1111)
    for _ in range(3):
        assert isinstance(wedge(made)[0], SliceMoved | SliceSwapped)
    assert isinstance(wedge(made)[0], JobSuspended)


def test_different_signals_are_no_poison() -> None:
    made = cell(1)
    made.sit("a", "r0", range(10))
    for code in ("xid.79", "xid.48", "xid.79", "xid.62", "xid.79"):
        assert isinstance(wedge(made, code)[0], SliceSwapped)


def test_swaps_of_an_earlier_hour_are_forgotten() -> None:
    made = cell(1)
    made.sit("a", "r0", range(10))
    for _ in range(3):
        wedge(made)
    made.wait(3600)
    assert isinstance(wedge(made)[0], SliceSwapped)


def test_nodes_lost_at_one_moment_count_once() -> None:
    made = cell(1)
    made.sit("a", "r0", range(10))
    for place in (1, 2, 3):
        made.unfit(f"r0-n{place:02d}")
    made.add(*decided(made))
    made.start("a")
    made.wait(1)
    assert isinstance(wedge(made)[0], SliceSwapped)


# Breaker


def culprits(made: Cell, count: int) -> None:
    """So many idle nodes of r1 are named culprits at once."""
    for place in range(count):
        made.unfit(f"r1-n{place:02d}")


def test_open_breaker_holds_back_inferred_failures() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    culprits(made, 5)
    made.unfit("r0-n03")
    assert decided(made) == []
    later = made.fleet.time + 300 + 900
    (entry,) = recover(made.fleet, made.job("a"), later)
    assert swap(entry) == [(3, 3, 16)]


def test_silence_is_inferred_too() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    culprits(made, 6)
    made.fail("r0-n03", code="silence")
    assert decided(made) == []


def test_confirmed_failures_heal_all_the_same() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16), retry_budget=1)
    culprits(made, 6)
    made.unfit("r0-n03")
    crash(made, "a", 3)
    assert swap(decided(made)[0]) == [(3, 3, 16)]
    made = cell(2)
    made.sit("b", "r0", range(16), retry_budget=1)
    culprits(made, 6)
    crash(made, "b", 4)
    made.unfit("r0-n05")
    (entry,) = decided(made, "b")
    assert isinstance(entry, SliceRestarted)
    assert entry.ranks == (4,)


def test_closed_breaker_holds_nothing_back() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    culprits(made, 4)
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 16)]


# Order between jobs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"priority": 60, "nodes": 2}, {"priority": 50, "nodes": 8}),
        ({"priority": 50, "nodes": 8}, {"priority": 50, "nodes": 2}),
    ],
)
def test_priority_then_gpus_that_stand_still(one: dict[str, int], other: dict[str, int]) -> None:
    made = cell(2)
    made.sit("z", "r0", range(one["nodes"]), priority=one["priority"])
    made.sit("a", "r1", range(other["nodes"]), priority=other["priority"])
    made.unfit("r0-n00")
    made.unfit("r1-n00")
    assert urgency(made.fleet, made.job("z")) < urgency(made.fleet, made.job("a"))


def test_drained_job_does_not_stand_still() -> None:
    made = cell(2)
    made.sit("a", "r0", range(8))
    made.sit("z", "r1", range(2))
    drain(made, "r0-n00")
    made.unfit("r1-n00")
    assert urgency(made.fleet, made.job("z")) < urgency(made.fleet, made.job("a"))
