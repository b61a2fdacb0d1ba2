"""Since when GPUs stand idle: by the mean of many readings, and only where all of a worker's do."""

import pytest

from rackwright.agent.idle import IDLE, IdleGpus, idle_since
from rackwright.agent.nvml import GpuReading, NodeReading
from rackwright.agent.records import WorkerRecord, WorkerState
from rackwright.agent.said import worker_status

LOOK_S = 30.0


def reading(*uses: float | None) -> NodeReading:
    gpus = tuple(
        GpuReading(
            index=index,
            uuid=f"u{index}",
            serial="",
            pci="",
            model="GB200",
            links_active=None,
            remap_pending=None,
            remap_failed=None,
            processes=(),
            use=use,
        )
        for index, use in enumerate(uses)
    )
    return NodeReading(driver="1", count=len(gpus), gpus=gpus)


def test_idle_from_the_first_reading_on_until_one_that_is_not() -> None:
    idle = IdleGpus()
    assert idle.look(reading(0.0, 1.0, None), 100.0)
    assert idle.since == {0: 100.0}
    assert not idle.look(reading(0.0, 1.0, None), 130.0), "nothing new"
    assert idle.since == {0: 100.0}
    assert idle.look(reading(1.0, 1.0, None), 10_000.0)
    assert idle.since == {}


@pytest.mark.parametrize(("every", "idle"), [(40, True), (10, False)])
def test_short_bursts_count_by_their_share_of_the_time(every: int, idle: bool) -> None:
    """In one of so many readings a GPU is fully in use: 2.5 % and 10 % of the time."""
    made = IdleGpus()
    for turn in range(240):
        made.look(reading(float(turn % every == 0)), turn * LOOK_S)
    assert (0 in made.since) is idle
    assert (1 / every < IDLE) is idle


def test_a_gpu_that_is_gone_is_not_idle() -> None:
    made = IdleGpus()
    made.look(reading(0.0, 0.0), 0.0)
    assert made.look(reading(0.0), LOOK_S)
    assert made.since == {0: 0.0}


def test_a_worker_is_idle_since_the_last_of_its_gpus_is_and_since_it_runs() -> None:
    since = {0: 50.0, 1: 80.0}
    assert idle_since((0, 1), since, 10.0) == 80.0
    assert idle_since((0,), since, 60.0) == 60.0
    assert idle_since((0, 2), since, 10.0) is None
    assert idle_since((), since, 10.0) is None


def test_only_a_running_worker_is_said_to_be_idle() -> None:
    record = WorkerRecord(worker_id="a/0/1", state=WorkerState.RUNNING, gpus=(0,), at=10.0)
    assert worker_status(record, None, {0: 50.0}).idle_since == 50.0
    assert worker_status(record, None).idle_since is None
    ended = WorkerRecord(worker_id="a/0/1", state=WorkerState.EXITED, gpus=(0,), at=10.0)
    assert worker_status(ended, None, {0: 50.0}).idle_since is None
