"""Recovery outside the rack: free racks, cleared racks, the queue; suspects and the breaker."""

from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.core.policy.spares import recover, urgency
from rackwright.wire.entries.job import JobRequeued, JobResumed, JobSuspended
from rackwright.wire.entries.node import MaintenanceScheduled
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.reasons import Rung
from tests.support.fleets import Cell, cell
from tests.support.recovery import YOUNG, crash, decided, degrade, drain, rungs, swap


def moved(entry: Any) -> tuple[str, int]:
    """Rack and number of nodes it went to."""
    assert isinstance(entry, SliceMoved)
    return entry.rack, entry.nodes.bit_count()


def without_spares(racks: int = 2, **spec: Any) -> Cell:
    """Rack r0 is full of job a, one of whose nodes is bad."""
    made = cell(racks)
    made.sit("a", "r0", range(18), **spec)
    return made


# Rung 4


def test_slice_moves_alone_when_spares_are_used_up() -> None:
    made = cell(3)
    before = made.spread("a", [("r0", range(18)), ("r1", range(16))])
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert moved(entry) == ("r2", 18)
    assert rungs(entry) == [
        (Rung.RESTART, False, "node"),
        (Rung.SPARE, False, "spares.none"),
        (Rung.LENT_SPARE, False, "lent.none"),
        (Rung.TENANT, False, "tenants.none"),
        (Rung.FREE_RACK, True, "free-rack"),
    ]
    assert entry.rungs[-1].price_gpu_h == round(34 * 4 * 180 / 3600, 3)
    after = apply(made.fleet, entry).jobs[JobId("a")]
    untouched = range(18, 34)
    assert [after.worker(r) for r in untouched] == [before.worker(r) for r in untouched]
    assert [after.slices[0].gates_of(rank) for rank in (0, 3)] == [("a/0/1",), ("a/3/1",)]
    assert (after.state, after.retries) == (JobState.RUNNING, 0)


def test_move_prefers_the_rack_that_keeps_its_spares() -> None:
    made = cell(4)
    made.sit("a", "r0", range(15))
    made.sit("b", "r0", range(15, 18))
    made.sit("c", "r1", range(2))
    made.sit("d", "r2", [0])
    made.sit("e", "r3", range(6))
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert moved(entry) == ("r2", 15)


def test_move_stays_near_the_other_slices() -> None:
    made = cell(6, blocks=2)
    made.spread("a", [("r3", range(18)), ("r5", range(16))])
    made.unfit("r3-n03")
    assert moved(decided(made)[0])[0] == "r4"
    made.sit("b", "r4", range(18))
    assert moved(decided(made)[0])[0] == "r0"


def test_move_respects_slices_per_rack() -> None:
    made = cell(2)
    made.spread("a", [("r0", range(9)), ("r1", range(8))], max_per_rack=1)
    made.sit("b", "r0", range(9, 18), job_class=JobClass.INTERACTIVE)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


def test_rack_in_repair_or_isolated_takes_no_slice() -> None:
    made = without_spares(3)
    degrade(made, "r1")
    made.unfit("r0-n03")
    assert moved(decided(made)[0])[0] == "r2"


def test_maintenance_ahead_moves_the_slice() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    now = made.fleet.time
    made.add(
        MaintenanceScheduled(
            racks=(RackId("r0"),),
            nodes=(),
            begin=now + 7200,
            end=now + 9000,
            by=Owner("op"),
        )
    )
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert moved(entry)[0] == "r1"
    assert rungs(entry)[1] == (Rung.SPARE, False, "rack.maintenance")


def test_maintenance_after_the_end_of_the_job_does_not_matter() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16), time_limit_s=3600.0)
    now = made.fleet.time
    made.add(
        MaintenanceScheduled(
            racks=(RackId("r0"),), nodes=(), begin=now + 7200, end=now + 9000, by=Owner("op")
        )
    )
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 16)]


def test_move_is_enough_for_all_wounds_of_the_slice() -> None:
    made = without_spares(2, retry_budget=1)
    made.unfit("r0-n03")
    made.unfit("r0-n04")
    crash(made, "a", 5)
    drain(made, "r0-n06")
    (entry,) = decided(made)
    assert moved(entry) == ("r1", 18)
    after = apply(made.fleet, entry).jobs[JobId("a")]
    assert (after.wounds, after.retries) == ((), 0)


# Work of part of a node, and of one node


def test_part_of_a_node_moves_to_a_node_in_use() -> None:
    made = cell(2)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.sit("b", "r1", [4], gpus=0b0001)
    made.unfit("r0-n00")
    (entry,) = decided(made)
    assert moved(entry) == ("r1", 1)
    assert (entry.nodes, entry.gpus) == (1 << 4, 0b0110)
    assert rungs(entry) == [
        (Rung.RESTART, False, "node"),
        (Rung.SPARE, False, "part-of-node"),
        (Rung.FREE_RACK, True, "free-rack"),
    ]


def test_part_of_a_node_may_move_within_its_rack() -> None:
    made = cell(1)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.unfit("r0-n00")
    (entry,) = decided(made)
    assert moved(entry) == ("r0", 1)
    assert entry.gpus == 0b0011


def test_part_of_a_node_that_crashed_restarts_in_place() -> None:
    made = cell(1)
    made.sit("a", "r0", [0], gpus=0b0011, retry_budget=1)
    crash(made, "a", 0)
    assert isinstance(decided(made)[0], SliceRestarted)


def test_part_of_a_node_without_a_place_is_requeued() -> None:
    made = cell(1, nodes=1)
    made.sit("a", "r0", [0], gpus=0b0011)
    made.unfit("r0-n00")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert rungs(entry)[-2:] == [
        (Rung.EVICT, False, "part-of-node"),
        (Rung.REQUEUE, True, "no-place"),
    ]


def test_one_node_is_swapped_where_no_spare_is_kept() -> None:
    made = cell(1)
    made.sit("a", "r0", [0])
    made.unfit("r0-n00")
    assert swap(decided(made)[0]) == [(0, 0, 1)]


def test_lent_work_evicts_nobody() -> None:
    made = cell(1)
    made.sit("p", "r0", range(16))
    made.sit("a", "r0", [16], lent=True, preemptible=True, priority=90)
    made.sit("b", "r0", [17], priority=0)
    made.wait(YOUNG + 1)
    made.unfit("r0-n16")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert [one for one in rungs(entry) if one[1]] == [(Rung.REQUEUE, True, "no-place")]


# Rung 5


def busy(**tenant: Any) -> Cell:
    """Job a fills r0; r1 and r2 are full of tenants, those of r2 cheaper."""
    made = without_spares(3)
    spec: dict[str, Any] = {"priority": 0, "checkpoint": Checkpoint(interval_s=600.0)} | tenant
    made.sit("b", "r1", range(18), **spec)
    made.sit("c", "r2", range(4), **spec)
    made.sit("d", "r2", range(4, 8), **spec)
    made.wait(YOUNG + 1)
    return made


def test_cheapest_rack_is_cleared_for_a_wounded_slice() -> None:
    made = busy()
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert moved(entry) == ("r2", 18)
    assert entry.evicted == ("c", "d")
    assert rungs(entry)[-2:] == [(Rung.FREE_RACK, False, "racks.none"), (Rung.EVICT, True, "evict")]
    after = apply(made.fleet, entry)
    assert after.jobs[JobId("c")].state is JobState.QUEUED
    assert len(after.jobs[JobId("c")].preempted) == 1


def test_higher_priority_is_not_cleared_away() -> None:
    made = busy(priority=60)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert rungs(entry)[-2:] == [
        (Rung.EVICT, False, "victims.none"),
        (Rung.REQUEUE, True, "no-place"),
    ]


def test_equal_priority_is_cleared_away_only_by_more_slices() -> None:
    made = busy(priority=50)
    made.unfit("r0-n03")
    assert isinstance(decided(made)[0], JobRequeued)
    made = cell(4)
    made.spread("a", [("r0", range(18)), ("r3", range(18))])
    made.sit("b", "r1", range(18))
    made.sit("c", "r2", range(18), job_class=JobClass.INTERACTIVE)
    made.wait(YOUNG + 1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert moved(entry) == ("r1", 18)
    assert entry.evicted == ("b",)


def test_clearing_that_does_not_pay_is_skipped() -> None:
    made = busy(checkpoint=Checkpoint(interval_s=360_000.0))
    made.wait(90_000)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert rungs(entry)[-2:] == [
        (Rung.EVICT, False, "victims.dear"),
        (Rung.REQUEUE, True, "no-place"),
    ]


def test_interactive_work_is_never_touched() -> None:
    made = busy(job_class=JobClass.INTERACTIVE)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


# Rung 8


def test_requeued_with_its_first_submit_time_and_budget() -> None:
    made = without_spares(1, retry_budget=2)
    first = made.job("a").submitted_at
    made.wait(1000)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert (entry.charge, entry.not_before, entry.reason.code) == (False, 0.0, "no-place")
    assert entry.rungs[-1].price_gpu_h == round(72 * (1800 + 600 + 1000) / 3600, 3)
    after = apply(made.fleet, entry).jobs[JobId("a")]
    assert (after.state, after.submitted_at, after.retries) == (JobState.QUEUED, first, 0)


def test_requeue_of_one_slice_makes_swaps_of_others_pointless() -> None:
    made = cell(2)
    made.spread("a", [("r0", range(16)), ("r1", range(18))])
    made.unfit("r0-n03")
    made.unfit("r1-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


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
