"""Recovery inside the rack at the cost of others: lent spares, tenants, a rack that is suspect."""

from typing import Any

import pytest

from rackwright.core.fold import apply
from rackwright.wire.entries.job import JobFinishing, JobRequeued
from rackwright.wire.entries.node import RackHeld, RackIsolated
from rackwright.wire.entries.slice import NodeSwap, SliceMoved, SliceSwapped
from rackwright.wire.ids import JobId, Owner, QueueName, RackId
from rackwright.wire.jobs import Checkpoint, JobClass
from rackwright.wire.nodes import Fitness, RackFitness
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung
from tests.support.fleets import Cell, cell
from tests.support.recovery import (
    YOUNG,
    decided,
    degrade,
    moved,
    rungs,
    swap,
)
from tests.unit.core.policy.defrag_cells import change

# Rung 2


def test_lent_spare_is_taken_back() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.sit("lent", "r0", [16], lent=True)
    made.sit("other", "r0", [17], lent=True, priority=90)
    made.wait(600)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]
    assert entry.evicted == ("lent",)
    assert rungs(entry) == [
        (Rung.RESTART, False, "node"),
        (Rung.SPARE, False, "spares.none"),
        (Rung.LENT_SPARE, True, "lent"),
    ]
    after = apply(made.fleet, entry)
    assert after.jobs[JobId("lent")].state == "queued"
    assert [(one.worker, one.grace_s) for one in after.racks[0].leaving] == [
        ("lent/0/1", 5.0),
        ("a/3/1", 0.0),
    ]
    assert after.jobs[JobId("a")].slices[0].gates_of(3) == ("a/3/1", "lent/0/1")


def test_free_spare_first_then_the_lent_one() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.sit("lent", "r0", [16], lent=True)
    made.unfit("r0-n03")
    made.unfit("r0-n04")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 17), (4, 4, 16)]
    assert rungs(entry)[1:] == [
        (Rung.SPARE, False, "spares.short"),
        (Rung.LENT_SPARE, True, "lent"),
    ]


def test_cheapest_of_the_lent_goes() -> None:
    made = cell(2)
    made.sit("a", "r0", range(15))
    made.sit("pair", "r0", [15, 16], lent=True)
    made.sit("lone", "r0", [17], lent=True)
    made.wait(600)
    made.unfit("r0-n03")
    assert decided(made)[0].evicted == ("lone",)
    made.unfit("r0-n04")
    assert decided(made)[0].evicted == ("pair",)


def test_pinned_work_on_lent_spares_stays() -> None:
    made = cell(1)
    made.sit("a", "r0", range(17))
    made.sit("lent", "r0", [17], lent=True, job_class=JobClass.INTERACTIVE)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert (Rung.LENT_SPARE, False, "lent.none") in rungs(entry)
    assert (Rung.TENANT, False, "tenants.none") in rungs(entry)


# Rung 3


def promising(promises: dict[str, int]) -> Policy:
    guarantee = {QueueName(queue): gpus for queue, gpus in promises.items()}
    return Policy(hold_max_s=0.0, queue_guarantee=guarantee)


def full_rack(promises: dict[str, int] | None = None, **tenant: Any) -> Cell:
    """A rack with a slice of 16 and two tenants, the second one cheaper, and no rack beside it."""
    made = cell(1, policy=promising(promises or {}))
    made.sit("a", "r0", range(16))
    made.sit("dear", "r0", [16], **{"priority": 40, **tenant})
    made.sit("cheap", "r0", [17], **{"priority": 10, **tenant})
    made.wait(YOUNG + 1)
    return made


def test_tenant_of_lower_priority_makes_room() -> None:
    made = full_rack(checkpoint=Checkpoint(on_notice_s=20.0), grace_s=3.0)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 17)]
    assert entry.evicted == ("cheap",)
    assert rungs(entry)[2:] == [
        (Rung.LENT_SPARE, False, "lent.none"),
        (Rung.TENANT, True, "tenant"),
    ]
    told = apply(made.fleet, entry).racks[0].leaving[0]
    assert (told.worker, told.notice_s, told.grace_s) == ("cheap/0/1", 20.0, 3.0)


@pytest.mark.parametrize(
    ("promise", "evicted"),
    [(0, "cheap"), (4, "cheap"), (8, None)],
    ids=["nothing promised", "one may go", "none may go"],
)
def test_no_tenant_goes_whose_queue_would_have_less_than_it_is_promised(
    promise: int, evicted: str | None
) -> None:
    made = full_rack({"theirs": promise}, queue="theirs")
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert getattr(entry, "evicted", ()) == ((evicted,) if evicted else ())
    skipped = (Rung.TENANT, False, "tenants.none") in rungs(entry)
    assert skipped is (evicted is None)


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({"preempted": 3}, True),
        ({"preempted": 2}, False),
        ({"moved_ago": 3_590.0}, True),
        ({"moved_ago": 3_610.0}, False),
    ],
    ids=lambda value: str(value),
)
def test_a_tenant_that_was_disturbed_often_or_lately_stays(
    changes: dict[str, float], stays: bool
) -> None:
    made = full_rack()
    now = made.fleet.time
    stops = (now - 60.0,) * int(changes.get("preempted", 0))
    moved_at = now - changes["moved_ago"] if "moved_ago" in changes else None
    for name in ("dear", "cheap"):
        change(made, name, preempted=stops, moved_at=moved_at)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued if stays else SliceSwapped)


def test_tenants_of_one_queue_are_counted_together() -> None:
    """Either may go by itself, and with both its queue would have less than it is promised."""
    made = full_rack({"theirs": 4}, queue="theirs")
    made.unfit("r0-n03")
    made.unfit("r0-n04")
    (entry,) = decided(made)
    assert isinstance(entry, JobRequeued)


def test_within_a_queue_and_on_lent_spares_no_promise_keeps_a_tenant() -> None:
    made = full_rack({"default": 72})
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceSwapped)
    assert entry.evicted == ("cheap",)
    made = cell(1, policy=promising({"theirs": 72}))
    made.sit("a", "r0", range(17))
    made.sit("lent", "r0", [17], lent=True, queue="theirs")
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceSwapped)
    assert entry.evicted == ("lent",)


@pytest.mark.parametrize(
    "tenant",
    [
        {"priority": 50},
        {"priority": 90},
        {"preemptible": False},
        {"restartable": False},
        {"job_class": JobClass.INTERACTIVE},
        {"job_class": JobClass.SERVICE},
        {"time_limit_s": YOUNG + 300},
    ],
)
def test_tenant_that_may_not_be_evicted(tenant: dict[str, Any]) -> None:
    made = full_rack(**tenant)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert (Rung.TENANT, False, "tenants.none") in rungs(entry)


def test_young_tenant_is_left_alone() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    made.sit("b", "r0", [16, 17], priority=10)
    made.unfit("r0-n03")
    assert (Rung.TENANT, False, "tenants.none") in rungs(decided(made)[0])


def test_tenant_dearer_than_a_move_stays() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.sit("b", "r0", [16, 17], priority=49)
    made.wait(YOUNG + 1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    (tenant,) = [one for one in entry.rungs if one.rung is Rung.TENANT]
    assert (tenant.taken, tenant.reason.code) == (False, "tenants.dear")
    move = 64 * 180 / 3600
    assert tenant.reason.numbers["other_gpu_h"] == round(move, 3)
    assert tenant.price_gpu_h is not None
    assert tenant.price_gpu_h > move


def test_tenant_cheaper_than_a_move_of_a_large_job_goes() -> None:
    made = cell(4)
    made.spread("a", [(f"r{rack}", range(16)) for rack in range(3)], priority=100)
    made.sit("b", "r0", [16], priority=0, checkpoint=Checkpoint(restart_s=60, interval_s=60))
    made.sit("c", "r0", [17], job_class=JobClass.INTERACTIVE)
    made.wait(YOUNG + 1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]
    assert entry.evicted == ("b",)


def test_shared_node_is_freed_of_all_its_tenants_or_none() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    made.sit("b", "r0", [16], gpus=0b0011, priority=10)
    made.sit("c", "r0", [16], gpus=0b1100, priority=10)
    made.sit("d", "r0", [17], gpus=0b0011, priority=10)
    made.sit("e", "r0", [17], gpus=0b1100, job_class=JobClass.INTERACTIVE)
    made.wait(YOUNG + 1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert swap(entry) == [(3, 3, 16)]
    assert entry.evicted == ("b", "c")


# The rack itself


def isolate(made: Cell) -> None:
    """The rack r0 fell silent."""
    made.add(RackIsolated(rack=RackId("r0"), reason=Reason(code="silence")))


def test_isolated_rack_is_not_touched() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    isolate(made)
    assert decided(made) == []


def test_a_slice_leaves_an_isolated_rack_when_its_dead_are_known() -> None:
    """Not while a node of it is in doubt, and to no other node of that rack."""
    made = cell(2)
    made.sit("a", "r0", range(4))
    isolate(made)
    made.suspect("r0-n02")
    assert decided(made) == []
    made.fail("r0-n01")
    assert decided(made) == []
    made.clear("r0-n02")
    (entry,) = decided(made)
    assert moved(entry) == ("r1", 4)
    assert rungs(entry)[1:] == [
        (Rung.SPARE, False, "rack.isolated"),
        (Rung.FREE_RACK, True, "free-rack"),
    ]


def test_a_worker_on_one_node_leaves_an_isolated_rack_too() -> None:
    made = cell(2)
    made.sit("a", "r0", [5], gpus=0b0011)
    isolate(made)
    made.fail("r0-n05")
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert entry.rack == "r1"


def test_failures_that_made_the_rack_suspect_are_healed_inside() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    made.unfit("r0-n04")
    degrade(made)
    assert swap(decided(made)[0]) == [(3, 3, 16), (4, 4, 17)]


def test_next_failure_in_a_suspect_rack_moves_the_slice() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    degrade(made)
    made.wait(1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert rungs(entry)[1:] == [
        (Rung.SPARE, False, "rack.degraded"),
        (Rung.FREE_RACK, True, "free-rack"),
    ]


def test_suspect_rack_is_better_than_none() -> None:
    made = cell(1)
    made.sit("a", "r0", range(16))
    degrade(made)
    made.wait(1)
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert rungs(entry)[1:] == [
        (Rung.SPARE, False, "rack.degraded"),
        (Rung.FREE_RACK, False, "racks.none"),
        (Rung.SPARE, True, "spare"),
    ]


@pytest.mark.parametrize("fitness", [RackFitness.EVACUATE, RackFitness.DOWN])
def test_rack_that_must_be_left_gives_no_spares(fitness: RackFitness) -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    degrade(made, fitness=fitness)
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert rungs(entry)[1] == (Rung.SPARE, False, f"rack.{fitness}")


def test_held_rack_keeps_its_free_nodes() -> None:
    made = cell(2)
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03")
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("op"), until=made.fleet.time + 60))
    (entry,) = decided(made)
    assert isinstance(entry, SliceMoved)
    assert rungs(entry)[1] == (Rung.SPARE, False, "rack.held")


# Not ours


def test_finishing_job_is_not_swapped() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.add(JobFinishing(job=JobId("a")))
    made.unfit("r0-n03")
    assert decided(made) == []


def test_job_that_cannot_restart_is_left_to_the_placer() -> None:
    made = cell()
    made.sit("a", "r0", range(16), restartable=False)
    made.unfit("r0-n03")
    assert decided(made) == []


def test_node_that_suffices_is_no_wound() -> None:
    made = cell()
    made.sit("a", "r0", range(16))
    made.unfit("r0-n03", Fitness.RACK, code="ib-down")
    assert made.job("a").wounds == ()
    assert decided(made) == []


def test_placed_job_that_has_not_started_is_healed_too() -> None:
    made = cell()
    made.sit("a", "r0", range(16), start=False)
    made.unfit("r0-n03")
    assert swap(decided(made)[0]) == [(3, 3, 16)]


def test_policy_of_no_spares_still_swaps_with_what_is_free() -> None:
    made = cell(1, policy=Policy(spares_large=0, spares_small=0))
    made.sit("a", "r0", range(17))
    made.unfit("r0-n03")
    (entry,) = decided(made)
    assert isinstance(entry, SliceSwapped)
    assert entry.swaps == (NodeSwap(rank=3, old=3, new=17),)
