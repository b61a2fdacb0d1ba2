"""Recovery outside the rack: free racks, cleared racks, the queue; suspects and the breaker."""

from typing import Any

from rackwright.core.fold import apply
from rackwright.core.jobs import JobState
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.node import MaintenanceScheduled
from rackwright.wire.entries.slice import SliceMoved, SliceRestarted
from rackwright.wire.ids import JobId, Owner, QueueName, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Rung
from tests.support.fleets import Cell, cell
from tests.support.recovery import (
    YOUNG,
    crash,
    decided,
    degrade,
    drain,
    moved,
    rungs,
    swap,
    without_spares,
)

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
    assert rungs(entry)[-4:] == [
        (Rung.EVICT, False, "part-of-node"),
        (Rung.SHRINK, False, "not-elastic"),
        (Rung.WAIT, False, "release.none"),
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


def test_a_rack_is_not_cleared_of_what_another_queue_is_promised() -> None:
    """The tenants of all racks are of one queue. Of r2 each could go, but not both together."""
    for promise, cleared in ((72, True), (73, False)):
        made = busy(queue="theirs")
        policy = Policy(hold_max_s=0.0, queue_guarantee={QueueName("theirs"): promise})
        made.add(PolicySet(policy=policy, by=Owner("op")))
        made.unfit("r0-n03")
        (entry,) = decided(made)
        assert (Rung.EVICT, cleared) in [rung[:2] for rung in rungs(entry)]
        assert isinstance(entry, SliceMoved if cleared else JobRequeued)


def test_higher_priority_is_not_cleared_away() -> None:
    made = busy(priority=60)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)
    assert rungs(entry)[-4:] == [
        (Rung.EVICT, False, "victims.none"),
        (Rung.SHRINK, False, "not-elastic"),
        (Rung.WAIT, False, "release.none"),
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
    assert rungs(entry)[-4:] == [
        (Rung.EVICT, False, "victims.dear"),
        (Rung.SHRINK, False, "not-elastic"),
        (Rung.WAIT, False, "release.none"),
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
