"""The end of a run before its time."""

import signal
from collections.abc import Iterator

import pytest

from rackwright.simulator.cell import plain_racks
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.policies import POLICIES
from rackwright.simulator.running import Plan, run
from rackwright.simulator.stopping import Stop, stopping
from rackwright.simulator.workload import HOUR, SimJob
from rackwright.wire.ids import JobId

PLAN = Plan(racks=plain_racks(1, 18, 4), failures=FailureModel(), span_s=50 * HOUR)
JOBS = [SimJob(id=JobId("a"), submit_s=0.0, gpus=4, work_s=60 * HOUR)]


def test_it_ends_between_two_events_and_what_was_is_counted() -> None:
    stop = Stop()

    def after_ten_hours(_: object, at: float) -> None:
        if at >= 10 * HOUR:
            stop.ask()

    made = run(POLICIES["rackwright"], JOBS, PLAN, told=after_ten_hours, stop=stop)
    assert made.partial
    assert made.result["seconds"] == 10 * HOUR
    assert made.result["installed_gpu_s"] == pytest.approx(72 * 10 * HOUR)
    assert sum(made.result["gpu_s"].values()) == pytest.approx(72 * 10 * HOUR)
    assert stop.heard == []


def test_one_that_was_told_to_end_before_it_began() -> None:
    made = run(POLICIES["rackwright"], JOBS, PLAN, stop=Stop(asked=True))
    assert made.partial
    assert made.result["seconds"] == 0.0


def test_one_that_is_whole_is_not_partial() -> None:
    stop = Stop()

    def at_its_end(_: object, at: float) -> None:
        if at >= 50 * HOUR:
            stop.ask()

    assert not run(POLICIES["rackwright"], JOBS, PLAN, told=at_its_end, stop=stop).partial


@pytest.fixture
def interrupts() -> Iterator[None]:
    """What Python does of itself; a shell starts what is in its background without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_the_second_signal_does_what_it_did_before() -> None:
    with stopping((signal.SIGINT,)) as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
