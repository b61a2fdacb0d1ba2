"""What becomes of placed jobs, by what their nodes say."""

import pytest

from rackwright.core.jobs import JobState
from rackwright.wire.entries.job import JobFailed, JobFinished, JobRequeued
from rackwright.wire.entries.slice import NodeSwap, SliceRestarted, SliceSwapped
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from rackwright.wire.reasons import Reason, Rung, RungTaken
from rackwright.wire.signals import WorkerState
from tests.support.fleets import cell
from tests.unit.placer.desk import Desk, desk, ends, failures

RUNNING, EXITED = WorkerState.RUNNING, WorkerState.EXITED
SPARE = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="spare")),)


@pytest.fixture
def at() -> Desk:
    return desk(cell(2))


def swap(at: Desk, job: str, rank: int) -> None:
    """The spare-manager gives a rank the next free node of its rack."""
    known = at.cell.job(job)
    part = known.slice_of(rank)
    usable = at.fleet.racks[part.rack].usable
    one = NodeSwap(
        rank=rank,
        old=part.nodes[rank - part.first_rank],
        new=(usable & -usable).bit_length() - 1,
    )
    at.other(
        SliceSwapped(
            job=known.id,
            membership=known.membership + 1,
            index=part.index,
            swaps=(one,),
            rungs=SPARE,
        )
    )


def restart(at: Desk, job: str, rank: int, *, charge: bool) -> None:
    """The spare-manager starts a rank anew where it is."""
    known = at.cell.job(job)
    at.other(
        SliceRestarted(
            job=known.id,
            membership=known.membership + 1,
            index=known.slice_of(rank).index,
            ranks=(rank,),
            charge=charge,
            rungs=(RungTaken(rung=Rung.RESTART, taken=True, reason=Reason(code="process")),),
        )
    )


def test_started_when_every_rank_is_up(at: Desk) -> None:
    at.submit("a", nodes=3)
    at.run()
    at.worker("a", 0, RUNNING)
    at.worker("a", 2, RUNNING)
    at.worker("a", 1, WorkerState.PREPARED)
    assert at.run() == []
    at.worker("a", 1, RUNNING)
    (started,) = at.run()
    assert (started.TYPE, started.cause) == ("job.started", "s-r0-n01")
    assert at.cell.job("a").started == 1


def test_a_report_of_an_earlier_worker_is_old(at: Desk) -> None:
    at.submit("a", nodes=2)
    at.run()
    at.worker("a", 0, RUNNING)
    at.worker("a", 1, RUNNING, incarnation=7)
    assert at.run() == []


def test_finishing_with_the_first_rank_finished_with_the_last(at: Desk) -> None:
    at.started("a", nodes=3)
    at.worker("a", 1, EXITED, 0)
    assert at.types() == ["job.finishing"]
    at.worker("a", 0, EXITED, 0)
    assert at.run() == []
    at.worker("a", 2, EXITED, 0)
    assert at.types() == ["job.finished"]
    assert "a" not in at.fleet.jobs


def test_all_ranks_at_once_have_finished(at: Desk) -> None:
    at.started("a", nodes=3)
    at.exit_all("a")
    assert at.types() == ["job.finished"]


def test_a_job_may_end_before_it_was_seen_to_start(at: Desk) -> None:
    at.submit("a", nodes=2)
    at.run()
    at.exit_all("a")
    assert at.types() == ["job.finished"]


def test_survivors_of_a_swap_count_as_before(at: Desk) -> None:
    """F5: a survivor's exit is not old because the membership is new."""
    at.started("a", nodes=3)
    at.cell.unfit("r0-n01")
    at.folded()
    swap(at, "a", 1)
    at.worker("a", 1, RUNNING)
    assert at.types() == ["job.started"]
    at.exit_all("a")
    assert at.types() == ["job.finished"]


def test_an_exit_waits_for_a_node_fault(at: Desk) -> None:
    at.started("a", nodes=2, retry_budget=1)
    at.worker("a", 0, EXITED, 1)
    assert 45.0 in at.wakes()
    at.wait(44.0)
    assert at.run() == []
    at.wait(1.0)
    said = at.run()
    assert failures(said) == [(0, "exit.1")]
    assert at.cell.job("a").wounds[0].charge


def test_exits_beside_a_node_fault_are_symptoms(at: Desk) -> None:
    at.started("a", nodes=3)
    at.worker("a", 0, EXITED, 1)
    at.worker("a", 2, EXITED, -6)
    assert at.run() == []
    at.cell.unfit("r0-n01")
    at.folded()
    assert failures(at.run()) == [(0, "symptom"), (2, "symptom")]
    assert not any(wound.charge for wound in at.cell.job("a").wounds)


def test_exits_after_a_swap_are_symptoms(at: Desk) -> None:
    at.started("a", nodes=3)
    at.cell.unfit("r0-n01")
    at.folded()
    swap(at, "a", 1)
    at.worker("a", 0, EXITED, 1)
    assert failures(at.run()) == [(0, "symptom")]


def test_one_crash_is_charged_once(at: Desk) -> None:
    at.started("a", nodes=3, retry_budget=3)
    at.worker("a", 1, EXITED, 1)
    at.wait(2.0)
    at.worker("a", 0, EXITED, 134)
    at.wait(45.0)
    assert failures(at.run()) == [(1, "exit.1"), (0, "symptom")]
    at.worker("a", 2, EXITED, 1)
    assert failures(at.run()) == [(2, "symptom")]


def test_the_next_process_of_a_rank_is_charged_anew(at: Desk) -> None:
    """Else a worker that fails at once would be started again for nothing, as often as it can."""
    at.started("a", nodes=3, retry_budget=1)
    at.worker("a", 1, EXITED, 1)
    at.wait(45.0)
    assert failures(at.run()) == [(1, "exit.1")]
    restart(at, "a", 1, charge=True)
    at.worker("a", 1, EXITED, 1)
    at.worker("a", 0, EXITED, 134)
    assert failures(at.run()) == [(0, "symptom")]
    at.wait(45.0)
    assert ends(at.run()) == [("job.failed", "exit.1")]


def test_an_offer_that_was_refused_has_blamed_nobody(at: Desk) -> None:
    at.started("a", nodes=2, retry_budget=1)
    at.worker("a", 1, EXITED, 1)
    at.wait(45.0)
    (offer,) = at.offers()
    assert at.refuse(offer) == []
    assert failures(at.run()) == [(1, "exit.1")]


def test_without_tries_left_the_job_has_failed(at: Desk) -> None:
    at.started("a", nodes=2)
    at.worker("a", 1, EXITED, 3)
    at.wait(45.0)
    (failed,) = at.run()
    assert isinstance(failed, JobFailed)
    assert (failed.reason.code, failed.reason.numbers["rank"]) == ("exit.3", 1)


def test_work_that_cannot_restart_fails_with_its_node(at: Desk) -> None:
    at.started("a", nodes=2, restartable=False)
    at.cell.fail("r0-n01")
    at.folded()
    assert ends(at.run()) == [("job.failed", "lost.node")]


def test_work_that_cannot_restart_fails_with_its_process(at: Desk) -> None:
    at.started("a", nodes=2, restartable=False)
    at.worker("a", 0, EXITED, 1)
    at.wait(45.0)
    assert ends(at.run()) == [("job.failed", "exit.1")]


def test_a_wound_of_work_that_restarts_is_the_spare_managers(at: Desk) -> None:
    at.started("a", nodes=2)
    at.cell.fail("r0-n01")
    at.folded()
    assert at.run() == []


def test_a_failed_start_goes_back_and_waits_longer_each_time(at: Desk) -> None:
    at.submit("a", nodes=2, retry_budget=3)
    at.run()
    waits = []
    for _ in range(3):
        at.worker("a", 0, EXITED, 1)
        at.wait(45.0)
        (back,) = at.run()
        assert isinstance(back, JobRequeued)
        assert back.charge
        waits.append(back.not_before - at.fleet.time)
        assert at.run() == []
        assert waits[-1] in at.wakes()
        at.wait(waits[-1])
        assert at.types() == ["job.placed"]
    assert waits == [10.0, 20.0, 40.0]
    at.worker("a", 1, EXITED, 1)
    at.wait(45.0)
    assert ends(at.run()) == [("job.failed", "exit.1")]


def test_a_job_that_never_starts_does_not_starve_the_rest(at: Desk) -> None:
    at.submit("bad", nodes=18, priority=90, retry_budget=9)
    at.submit("also", nodes=18, priority=90)
    at.submit("good", nodes=18)
    at.run()
    assert at.cell.job("good").state is JobState.QUEUED
    at.worker("bad", 0, EXITED, 1)
    at.wait(45.0)
    assert at.types() == ["job.requeued", "job.placed"]
    assert at.cell.job("good").state is JobState.PLACED


def test_a_fenced_worker_is_nobodys_fault(at: Desk) -> None:
    at.started("a", nodes=2)
    at.worker("a", 1, WorkerState.FENCED, -9)
    assert failures(at.run()) == [(1, "fenced")]
    assert not at.cell.job("a").wounds[0].charge


def test_a_fenced_worker_of_a_node_in_doubt_is_the_health_monitors(at: Desk) -> None:
    at.started("a", nodes=2)
    at.cell.unfit("r0-n01", Fitness.NONE)
    at.folded()
    at.worker("a", 1, WorkerState.FENCED, -9)
    assert at.run() == []


def test_a_job_that_is_finishing_and_loses_a_rank_has_failed(at: Desk) -> None:
    at.started("a", nodes=3)
    at.worker("a", 0, EXITED, 0)
    at.run()
    at.cell.fail("r0-n02")
    at.folded()
    assert at.run() == []
    at.wait(45.0)
    assert ends(at.run()) == [("job.failed", "lost.finishing")]


def test_a_node_that_dies_after_its_rank_ended_well_changes_nothing(at: Desk) -> None:
    at.started("a", nodes=2)
    at.worker("a", 0, EXITED, 0)
    at.run()
    at.cell.fail("r0-n00")
    at.folded()
    at.wait(45.0)
    assert at.run() == []
    at.worker("a", 1, EXITED, 0)
    assert at.types() == ["job.finished"]


def test_time_limit(at: Desk) -> None:
    at.started("a", nodes=1, time_limit_s=100.0)
    assert 100.0 in at.wakes()
    at.wait(99.0)
    assert at.run() == []
    at.wait(1.0)
    assert ends(at.run()) == [("job.failed", "time-limit")]


def test_a_rank_that_does_not_start_has_a_failed_node(at: Desk) -> None:
    at.started("a", nodes=3)
    at.cell.unfit("r0-n01")
    at.folded()
    swap(at, "a", 1)
    assert at.live(60) == []
    at.worker("a", 1, EXITED, -9, incarnation=1)
    assert at.live(59) == []
    assert failures(at.live(6)) == [(1, "start-timeout")]


def test_a_new_rank_that_runs_and_is_not_ready_in_time_has_a_failed_node(at: Desk) -> None:
    at.started("a", nodes=3)
    at.cell.unfit("r0-n01")
    at.folded()
    swap(at, "a", 1)
    at.worker("a", 1, EXITED, -9, incarnation=1)
    at.worker("a", 1, WorkerState.RUNNING, ready=False)
    assert at.live(175) == []
    assert failures(at.live(15)) == [(1, "start-timeout")]


def test_a_first_start_may_take_its_time(at: Desk) -> None:
    at.submit("a", nodes=1)
    at.run()
    at.worker("a", 0, WorkerState.RUNNING, ready=False)
    assert at.live(300) == []


def test_a_job_that_starts_whole_again_may_take_its_time(at: Desk) -> None:
    at.started("a", nodes=2)
    at.other(JobRequeued(job=at.cell.job("a").id, reason=Reason(code="test")))
    at.run()
    assert at.cell.job("a").slices
    for rank in (0, 1):
        at.worker("a", rank, EXITED, -9, incarnation=1)
        at.worker("a", rank, WorkerState.RUNNING, ready=False)
    assert at.live(300) == []


def test_gates_are_waited_for(at: Desk) -> None:
    """The clock of a start runs only while nothing else has to end first."""
    at.started("a", nodes=3)
    at.cell.unfit("r0-n01")
    at.folded()
    swap(at, "a", 1)
    assert at.live(200) == []


def test_a_rank_that_has_started_in_time_is_left_alone(at: Desk) -> None:
    at.submit("a", nodes=2)
    at.run()
    at.worker("a", 0, RUNNING)
    at.worker("a", 1, RUNNING)
    at.run()
    assert at.live(100) == []


def test_a_restarted_placer_judges_from_last_values(at: Desk) -> None:
    at.started("a", nodes=2)
    again = desk(at.cell)
    again.told = at.told
    for node, workers in at.told.items():
        for name, status in workers.items():
            workers[name] = type(status)(worker=status.worker, state=EXITED, code=0)
        again.status(node)
    assert [type(one) for one in again.run()] == [JobFinished]


def test_refused_verdicts_are_judged_anew(at: Desk) -> None:
    at.started("a", nodes=1)
    at.exit_all("a")
    (offer,) = at.offers()
    assert at.refuse(offer) == []
    assert at.types() == ["job.finished"]


def test_exit_verdict_is_a_knob() -> None:
    at = desk(cell(1, policy=Policy(exit_verdict_s=0.0)))
    at.started("a", nodes=1)
    at.exit_all("a", 1)
    assert ends(at.run()) == [("job.failed", "exit.1")]
    assert JobId("a") in at.fleet.tombstones
