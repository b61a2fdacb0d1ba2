"""What the defragmenter remembers of what nodes say about their workers' checkpoints."""

from rackwright.wire.entries.job import JobFinished
from rackwright.wire.ids import JobId
from rackwright.wire.signals import WorkerState
from tests.unit.defragmenter.driver import blocked_cell

V = JobId("v")


def test_a_job_is_saved_when_all_ranks_that_save_have() -> None:
    driver = blocked_cell()
    driver.status("r0-n00", ("v/0/1", WorkerState.RUNNING, 200.0))
    driver.status("r0-n01", ("v/1/1", WorkerState.RUNNING, 100.0))
    driver.status("r0-n02", ("v/2/1", WorkerState.RUNNING, None))
    assert driver.state.seen.checkpoints() == {"v": 100.0}
    driver.status("r0-n01", ("v/1/1", WorkerState.RUNNING, 300.0))
    assert driver.state.seen.checkpoints() == {"v": 200.0}


def test_an_older_worker_of_a_rank_does_not_speak_for_a_newer_one() -> None:
    driver = blocked_cell()
    driver.status("r0-n05", ("v/0/2", WorkerState.RUNNING, 500.0))
    driver.status("r0-n00", ("v/0/1", WorkerState.STOPPED, 900.0))
    assert driver.state.seen.checkpoints() == {"v": 500.0}


def test_ended_jobs_are_forgotten() -> None:
    driver = blocked_cell()
    driver.turn()
    driver.all_run("v", checkpoint=driver.now)
    driver.fold(JobFinished(job=V))
    assert driver.state.seen.checkpoints() == {}
    driver.status("r0-n00", ("v/0/1", WorkerState.EXITED, 1.0))
    assert driver.state.seen.checkpoints() == {}
