"""Windows of planned maintenance: how many at a time, what is queued before them, their end."""

from typing import Any

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.cell import WishRefused
from rackwright.wire.entries.job import JobRequeued, JobShrunk
from rackwright.wire.entries.node import MaintenanceEnded, MaintenanceScheduled, NodeCordoned
from rackwright.wire.ids import JobId, Owner, RackId
from rackwright.wire.jobs import Group, JobClass
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason
from rackwright.wire.wishes import ScheduleMaintenance
from tests.support.fleets import cell, node_name
from tests.unit.placer.desk import Desk, desk

OP = Owner("op")


def plan(at: Desk, *racks: str, in_s: float = 1000.0, for_s: float = 100.0) -> str:
    """What is said to a window."""
    begin = at.fleet.time + in_s
    names = tuple(RackId(name) for name in racks)
    at.wish(ScheduleMaintenance(racks=names, begin=begin, end=begin + for_s), owner="op")
    (said,) = at.run()
    return said.reason.code if isinstance(said, WishRefused) else said.TYPE


@pytest.mark.parametrize(
    ("share", "racks", "answer"),
    [
        (0.05, ("r0",), "maintenance.scheduled"),
        (0.05, ("r0", "r1"), "policy.maintenance_share"),
        (0.5, ("r0", "r1"), "maintenance.scheduled"),
    ],
)
def test_at_most_a_share_of_the_racks_but_always_one(
    share: float, racks: tuple[str, ...], answer: str
) -> None:
    at = desk(cell(4, nodes=2, policy=Policy(maintenance_share=share)))
    assert plan(at, *racks) == answer


def test_windows_that_do_not_meet_do_not_count_together() -> None:
    at = desk(cell(2, nodes=2))
    assert plan(at, "r0", in_s=100.0) == "maintenance.scheduled"
    assert plan(at, "r1", in_s=150.0) == "policy.maintenance_share"
    assert plan(at, "r1", in_s=200.0) == "maintenance.scheduled"


def drained(**spec: Any) -> Desk:
    """Job a is on r0, which is to be left, and there is no better place."""
    at = desk(cell(1, nodes=2))
    at.started("a", **({"nodes": 2} | spec))
    begin = at.fleet.time + 400.0
    racks = (RackId("r0"),)
    at.other(MaintenanceScheduled(racks=racks, begin=begin, end=begin + 100.0, by=OP))
    drains = (
        NodeCordoned(node=node_name("r0", place), drain=True, by=OP, because="maintenance")
        for place in range(2)
    )
    at.other(*drains)
    return at


def test_what_has_found_no_better_place_is_queued_shortly_before() -> None:
    at = drained()
    assert [one.TYPE for one in at.live(99)] == ["job.notified"]
    (said,) = [one for one in at.live(2) if isinstance(one, JobRequeued)]
    assert (said.job, said.reason.code, said.charge) == ("a", "maintenance", False)
    assert at.cell.job("a").state is JobState.QUEUED


def test_what_cannot_be_restarted_stays_to_its_end() -> None:
    at = drained(restartable=False)
    assert not any(isinstance(one, JobRequeued) for one in at.live(399))


def web() -> Desk:
    """As `drained`, a service of replicas of one node each."""
    group = Group(name=JobId("web"), nodes=1, replicas=2)
    spec: dict[str, Any] = {"nodes": None, "groups": (group,), "job_class": JobClass.SERVICE}
    return drained(**spec)


def test_a_replica_that_can_leave_alone_is_not_the_placers_work() -> None:
    assert not any(isinstance(one, JobRequeued) for one in web().live(401))


def test_the_last_replica_takes_the_job_along_when_the_window_begins() -> None:
    at = web()
    why = Reason(code="maintenance")
    at.other(JobShrunk(job=JobId("a"), membership=2, indexes=(0,), reason=why, rungs=()))
    assert not any(isinstance(one, JobRequeued) for one in at.live(399))
    (said,) = [one for one in at.live(2) if isinstance(one, JobRequeued)]
    assert (said.job, said.reason.code) == ("a", "maintenance")


def test_a_window_ends() -> None:
    at = desk(cell(1, nodes=2))
    plan(at, "r0", in_s=10.0, for_s=10.0)
    assert [type(one) for one in at.live(21)] == [MaintenanceEnded]
