"""Every GPU-second is in one state, and work that is thrown away is found out afterwards."""

from typing import Any

import pytest

from rackwright.core.accounts import Accounts, band
from rackwright.core.occupancy import GpuState
from rackwright.wire.entries.job import JobCancelled, JobFailed, JobRequeued
from rackwright.wire.entries.node import MaintenanceScheduled, RackHeld
from rackwright.wire.entries.slice import DefragWithdrawn
from rackwright.wire.ids import JobId, Owner, PlanId, RackId
from rackwright.wire.jobs import Checkpoint, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from tests.support.accounted import Accounted, accounted
from tests.support.entries import restarted, swapped
from tests.support.recovery import crash
from tests.unit.core.test_fold_defrag import plan

WHY = Reason(code="test")
HOUR = 3600.0


def running(**spec: Any) -> Accounted:
    """Job a on four nodes of r0, half an hour at work."""
    made = accounted(1, 8)
    made.sit("a", "r0", range(4), **spec)
    made.wait(HOUR / 2)
    return made


def test_states_of_an_hour() -> None:
    made = running()
    assert made.hours() == {"useful": 8.0, "spare": 2.0, "fragment": 6.0}
    assert made.accounts.installed_s == pytest.approx(sum(made.accounts.seconds.values()))


def test_a_rack_is_counted_as_a_spare_of_the_cell_from_when_another_one_has_a_tenant() -> None:
    made = accounted(2, policy=Policy(spare_racks=1))
    made.wait(HOUR)
    assert made.hours() == {"whole_free": 72.0, "spare": 72.0}
    made.sit("a", "r1", range(18), start=False)
    made.wait(HOUR)
    assert made.hours() == {"whole_free": 72.0, "spare": 144.0, "restarting": 72.0}


def test_work_since_the_last_checkpoint_is_lost_with_a_node() -> None:
    made = running()
    made.accounts.saved(JobId("a"), made.fleet.time - 600.0)
    made.unfit("r0-n01")
    made.wait(60.0)
    made.add(swapped((1, 1, 4)))
    assert made.accounts.seconds[GpuState.LOST] == pytest.approx(16 * 600.0)
    assert made.useful() == pytest.approx(16 * 1200 / HOUR)
    assert made.accounts.seconds[GpuState.STALLED] == pytest.approx(12 * 60.0)


def test_without_a_checkpoint_all_of_it_is() -> None:
    made = running()
    crash(made, "a", 0)
    made.add(restarted(0))
    assert made.useful() == 0.0
    assert made.accounts.seconds[GpuState.LOST] == pytest.approx(16 * HOUR / 2)
    assert made.accounts.jobs[JobId("a")].ettr == 0.0


def test_a_declared_interval_stands_for_checkpoints_that_nobody_has_told_of() -> None:
    made = running(checkpoint=Checkpoint(interval_s=700.0))
    crash(made, "a", 0)
    made.add(restarted(0))
    assert made.accounts.seconds[GpuState.LOST] == pytest.approx(16 * 400.0)


def test_a_node_that_is_heard_again_has_lost_nothing() -> None:
    made = running()
    made.suspect("r0-n01")
    made.wait(10.0)
    made.clear("r0-n01")
    made.wait(10.0)
    assert made.accounts.seconds[GpuState.LOST] == 0.0
    assert made.useful() == pytest.approx(16 * 1820 / HOUR)


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        (JobFailed(job=JobId("a"), reason=WHY), True),
        (JobRequeued(job=JobId("a"), reason=WHY), True),
        (JobCancelled(job=JobId("a"), by=Owner("ann"), reason=WHY), False),
    ],
    ids=["failed", "requeued", "cancelled"],
)
def test_how_it_ends_decides(end: JobFailed | JobRequeued | JobCancelled, lost: bool) -> None:
    made = running()
    made.add(end)
    assert (made.useful() == 0.0) is lost


def test_ended_jobs_are_summed_by_size() -> None:
    made = running()
    made.finish("a")
    total = made.accounts.bands["5-32"]
    assert (total.jobs, total.useful_s, total.wall_s, total.ettr) == (1, 1800.0, 1800.0, 1.0)
    assert made.accounts.jobs == {}


def test_a_hold_ends_between_two_commits() -> None:
    made = accounted(1, 8)
    begin = made.fleet.time
    made.add(RackHeld(rack=RackId("r0"), owner=Owner("op"), until=begin + 45.0))
    made.wait(60.0)
    assert made.accounts.seconds[GpuState.HELD] == pytest.approx(32 * 45.0)


def test_maintenance_begins_between_two_commits_and_is_no_loss_of_goodput() -> None:
    made = accounted(1, 8)
    begin = made.fleet.time + 30.0
    racks = (RackId("r0"),)
    made.add(MaintenanceScheduled(racks=racks, begin=begin, end=begin + 60.0, by=Owner("op")))
    made.wait(60.0)
    assert made.accounts.seconds[GpuState.MAINTENANCE] == pytest.approx(32 * 30.0)
    assert made.accounts.goodput() == 0.0
    assert made.accounts.training_goodput() == 1.0


def test_counting_may_begin_anywhere() -> None:
    made = running()
    later = Accounts()
    later.begin(made.fleet)
    later.run(made.fleet, made.fleet.time + 100.0)
    assert later.seconds[GpuState.USEFUL] == pytest.approx(1600.0)
    assert later.installed_s == pytest.approx(3200.0)


def test_bands() -> None:
    assert [band(gpus) for gpus in (1, 4, 5, 64, 65, 1024, 1025)] == [
        "1-4",
        "1-4",
        "5-32",
        "33-64",
        "65-256",
        "257-1024",
        "1025+",
    ]


def in_plan() -> Accounted:
    """Job b has worked for half an hour and is to move from r0 to r1 for job a."""
    made = accounted(2, 8)
    made.sit("b", "r0", [0, 1])
    made.queue("a", JobSpec(name=JobId("a"), nodes=8))
    made.wait(HOUR / 2)
    made.add(plan(notice_s=60.0, expires_at=made.fleet.time + 600.0))
    made.wait(30.0)
    return made


def test_a_withdrawn_plan_has_thrown_nothing_away() -> None:
    made = in_plan()
    made.add(DefragWithdrawn(plan=PlanId("p1"), spared=(JobId("b"),), reason=WHY))
    made.start("b")
    assert made.accounts.seconds[GpuState.LOST] == 0.0
    assert made.useful() == pytest.approx(8 * HOUR / 2 / HOUR)


def test_a_victim_that_is_up_at_its_home_has_lost_its_work() -> None:
    made = in_plan()
    made.start("b")
    assert made.accounts.seconds[GpuState.LOST] == pytest.approx(8 * HOUR / 2)
    assert made.accounts.seconds[GpuState.RESTARTING] == pytest.approx((8 + 32) * 30.0)
