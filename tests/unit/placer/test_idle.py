"""Interactive work whose GPUs stand idle: its owner hears of it; only some queues end it."""

from typing import Any

import pytest

from rackwright.core.telling import tell
from rackwright.wire.entries.job import JobFailed, JobNotified, JobPinned
from rackwright.wire.entries.node import NodeCordoned
from rackwright.wire.ids import JobId, NodeId, Owner, QueueName
from rackwright.wire.jobs import JobClass
from rackwright.wire.policy import Policy
from rackwright.wire.signals import WorkerState
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk

IDLE_S = 300.0
LATEST = 65  # the placer looks once a minute


def at(*, ends: bool = False, **spec: Any) -> Desk:
    queues = (QueueName("default"),) if ends else ()
    policy = Policy(idle_gpus_s=IDLE_S, idle_stop_queues=queues, idle_notice_s=120.0)
    made = desk(cell(1, policy=policy))
    made.started("a", **({"gpus": 2, "job_class": JobClass.INTERACTIVE} | spec))
    return made


def told(made: Desk, seconds: float) -> list[JobNotified]:
    return [one for one in made.live(seconds) if isinstance(one, JobNotified)]


def test_its_owner_is_told_once_that_its_gpus_are_idle() -> None:
    made = at()
    made.idle("a", made.fleet.time)
    assert told(made, IDLE_S - 1) == []
    (said,) = told(made, LATEST)
    assert (said.job, said.notice_s, said.reason.code) == ("a", 0.0, "gpus.idle")
    assert said.idle_s == pytest.approx(IDLE_S, abs=LATEST)
    assert made.cell.job("a").idle_told is not None
    assert "end it if they are not needed" in tell(said, made.fleet)
    assert told(made, 4 * IDLE_S) == []
    assert "a" in made.fleet.jobs


def test_one_in_use_again_and_idle_again_is_told_of_again() -> None:
    made = at()
    made.idle("a", made.fleet.time)
    assert len(told(made, IDLE_S + LATEST)) == 1
    made.idle("a", None)
    assert told(made, 2 * IDLE_S) == []
    made.idle("a", made.fleet.time)
    assert len(told(made, IDLE_S + LATEST)) == 1


@pytest.mark.parametrize("spec", [{"job_class": JobClass.BATCH}, {"nodes": 1, "gpus": None}])
def test_other_work_and_work_nobody_calls_idle_is_left_alone(spec: dict[str, Any]) -> None:
    made = at(ends=True, **spec)
    if spec.get("job_class") is JobClass.BATCH:
        made.idle("a", made.fleet.time)
    assert made.live(2 * IDLE_S) == []


def test_where_the_queue_ends_such_work_it_has_the_notice_first() -> None:
    made = at(ends=True)
    made.idle("a", made.fleet.time)
    (said,) = told(made, IDLE_S + 1)
    assert said.notice_s == 120.0
    assert "it is ended in 120 s if they stay so" in tell(said, made.fleet)
    assert made.live(110) == []
    (end,) = made.live(LATEST)
    assert isinstance(end, JobFailed)
    assert end.reason.code == "gpus.idle-ended"


def test_one_that_is_used_within_the_notice_goes_on() -> None:
    made = at(ends=True)
    made.idle("a", made.fleet.time)
    assert len(told(made, IDLE_S + 1)) == 1
    made.idle("a", None)
    assert made.live(300) == []


def test_an_operators_pin_keeps_it() -> None:
    made = at(ends=True)
    made.other(JobPinned(job=JobId("a"), pinned=True, by=Owner("op")))
    made.idle("a", made.fleet.time)
    (said,) = told(made, 3 * IDLE_S)
    assert said.notice_s == 0.0
    assert "a" in made.fleet.jobs


def test_a_clock_that_is_behind_counts_from_the_start_of_the_job() -> None:
    made = at()
    made.idle("a", 1.0)
    assert told(made, IDLE_S - LATEST) == []
    assert len(told(made, 2 * LATEST)) == 1


def test_work_that_nobody_calls_idle_wakes_nobody() -> None:
    made = at()
    made.live(600)
    assert made.state.idles == []
    made.idle("a", made.fleet.time)
    assert len(told(made, IDLE_S + LATEST)) == 1
    made.idle("a", None)
    made.live(600)
    assert made.state.idles == []


def test_gpus_that_were_idle_before_the_start_was_told_are_looked_at_from_it_on() -> None:
    made = desk(cell(1, policy=Policy(idle_gpus_s=IDLE_S)))
    made.submit("a", gpus=2, job_class=JobClass.INTERACTIVE)
    made.run()
    made.worker("a", 0, WorkerState.RUNNING)
    made.idle("a", made.fleet.time)
    made.run()
    assert len(told(made, IDLE_S + LATEST)) == 1


def test_on_a_drained_node_where_it_stays_to_its_end_it_is_told_and_ended_as_anywhere() -> None:
    made = at(ends=True)
    made.other(NodeCordoned(node=NodeId("r0-n00"), drain=True, by=Owner("op")))
    made.idle("a", made.fleet.time)
    (said,) = told(made, IDLE_S + LATEST)
    assert said.reason.code == "gpus.idle"
    assert [type(one) for one in made.live(120 + LATEST)] == [JobFailed]
