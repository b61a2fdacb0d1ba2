"""How a node says what its workers are."""

import pytest

from rackwright.agent.progress import Progress
from rackwright.agent.records import WorkerRecord, WorkerState
from rackwright.agent.said import worker_status
from rackwright.wire import signals

W = "j/0/1"


@pytest.mark.parametrize(
    ("progress", "ready"),
    [
        (None, True),
        (Progress(), True),
        (Progress(ready=True), True),
        (Progress(ready=False), False),
    ],
)
def test_a_running_worker_is_ready_unless_it_says_that_it_is_not(
    progress: Progress | None, ready: bool
) -> None:
    record = WorkerRecord(worker_id=W, state=WorkerState.RUNNING)
    assert worker_status(record, progress).ready is ready


def test_what_does_not_run_is_not_ready() -> None:
    record = WorkerRecord(worker_id=W, state=WorkerState.PREPARED)
    assert not worker_status(record, Progress(ready=True)).ready


def test_an_end_is_told_when_its_gpus_are_free() -> None:
    held = WorkerRecord(worker_id=W, state=WorkerState.STOPPED, reaped=False)
    assert worker_status(held, None).state is signals.WorkerState.RUNNING
    gone = WorkerRecord(worker_id=W, state=WorkerState.STOPPED)
    assert worker_status(gone, None).state is signals.WorkerState.STOPPED
