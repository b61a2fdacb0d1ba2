"""Ending workers at once, on notice, and not after all."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.agent.membership import read_notice
from rackwright.agent.records import WorkerFiles, WorkerRecord, WorkerState
from rackwright.agent.stops import CLEAN_S, Stops
from rackwright.wire.ids import WorkerId
from rackwright.wire.values import StopLine

W = WorkerId("j/0/1")


class Workers:
    """A node with one running worker; remembers what it was told."""

    def __init__(self) -> None:
        self.records = {W: WorkerRecord(worker_id=W, state=WorkerState.RUNNING)}
        self.told: list[tuple[str, float]] = []
        self.signals: list[tuple[str, int]] = []
        self.stopped = asyncio.Event()

    def stop(self, worker: str, grace_s: float) -> None:
        self.told.append((worker, grace_s))
        self.stopped.set()

    def signal(self, worker: str, number: int) -> None:
        self.signals.append((worker, number))


@pytest.fixture
def files(tmp_path: Path) -> WorkerFiles:
    found = WorkerFiles(directory=tmp_path)
    found.shared.mkdir()
    return found


def stops(workers: Any, files: WorkerFiles) -> Stops:
    return Stops(workers, lambda _: files, None)


def line(notice_s: float = 0.0) -> StopLine:
    return StopLine(worker=W, notice_s=notice_s, grace_s=3.0)


async def test_without_notice_it_is_stopped_at_once(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(), None)
    assert workers.told == [(W, 3.0)]
    assert made.told == {W}
    assert not files.notice.exists()


async def test_on_notice_it_is_told_and_stopped_when_the_time_is_up(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(0.05), None)
    assert (workers.told, files.notice.exists()) == ([], True)
    async with asyncio.timeout(10):
        await workers.stopped.wait()
    assert workers.told == [(W, 3.0)]


async def test_it_may_go_as_soon_as_it_has_saved_after_the_notice(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(3600.0), None)
    made.saved(W, None)
    made.saved(W, 1.0)
    assert workers.told == []
    made.saved(W, 1e12)
    assert workers.told == [(W, 3.0)]


async def test_a_withdrawn_notice_is_forgotten(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(3600.0), None)
    made.go_on(W)
    assert (made.told, files.notice.exists()) == (frozenset(), False)
    made.saved(W, 1e12)
    assert workers.told == []


async def test_what_was_stopped_cannot_go_on(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(), None)
    made.go_on(W)
    assert made.told == {W}


async def test_what_has_ended_is_not_stopped_again(files: WorkerFiles) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(3600.0), None)
    made.ended(W)
    made.saved(W, 1e12)
    assert (workers.told, made.told) == ([], frozenset())


async def test_a_pretended_worker_saves_and_goes_at_once(files: WorkerFiles) -> None:
    workers: Any = Workers()
    saved: list[str] = []
    Stops(workers, None, saved.append).stop(line(3600.0), None)
    assert (saved, workers.told) == ([W], [(W, 3.0)])


async def test_a_line_with_less_time_is_carried_out_again_another_is_not(
    files: WorkerFiles,
) -> None:
    workers = Workers()
    made = stops(workers, files)
    made.stop(line(600.0), None)
    assert made.heard([line(600.0)]) == {W}
    hard = StopLine(worker=W)
    assert made.heard([hard]) == frozenset()
    made.stop(hard, None)
    assert workers.told == [(W, 0.0)]
    assert made.heard([hard]) == {W}


class Later:
    """Alarms that ring when they are told to, and a clock on the wall that stands."""

    def __init__(self) -> None:
        self.due: dict[float, Callable[[], None]] = {}
        self.time = 1000.0

    def wall(self) -> float:
        return self.time

    def later(self, delay_s: float, call: Callable[..., None], *args: Any) -> "Alarm":
        self.due[delay_s] = partial(call, *args)
        return Alarm(self, delay_s)


@dataclass
class Alarm:
    """One of them."""

    timing: Later
    delay_s: float

    def cancel(self) -> None:
        del self.timing.due[self.delay_s]


def watched(workers: Workers, files: WorkerFiles) -> tuple[Stops, Later, list[str]]:
    """Stops, its alarms, and the workers it found stuck."""
    timing, stuck = Later(), list[str]()
    given: Any = (workers, lambda _: files, None, timing, stuck.append)
    return Stops(*given), timing, stuck


def gone(*, reaped: bool) -> WorkerRecord:
    return WorkerRecord(worker_id=W, state=WorkerState.STOPPED, reaped=reaped)


def told_at(files: WorkerFiles) -> tuple[float, float]:
    """From when until when the worker was told that it has time."""
    notice = read_notice(files.notice)
    assert notice is not None
    return notice.at, notice.until


async def test_an_agent_that_restarts_does_not_start_a_notice_anew(files: WorkerFiles) -> None:
    workers = Workers()
    job: Any = SimpleNamespace(spec=SimpleNamespace(notice_signal="SIGUSR1"))
    for passed in (0.0, 20.0, 50.0):
        made, timing, _ = watched(workers, files)
        timing.time += passed
        made.stop(line(60.0), job)
        assert list(timing.due) == [60.0 - passed]
        assert told_at(files) == (1000.0, 1060.0)
    assert workers.signals == [(W, signal.SIGUSR1)]
    made.saved(W, 1010.0)
    assert workers.told == [(W, 3.0)], "what it saved under the agent before counts"


async def test_time_that_ran_out_while_no_agent_was_there_is_over(files: WorkerFiles) -> None:
    watched(Workers(), files)[0].stop(line(60.0), None)
    made, timing, _ = watched(Workers(), files)
    timing.time += 3600.0
    made.stop(line(60.0), None)
    assert list(timing.due) == [0.0]


async def test_a_notice_may_become_shorter_and_begins_anew_once_withdrawn(
    files: WorkerFiles,
) -> None:
    made, timing, _ = watched(Workers(), files)
    made.stop(line(60.0), None)
    timing.time += 10.0
    made.stop(line(20.0), None)
    assert (list(timing.due), told_at(files)) == ([20.0], (1000.0, 1030.0))
    made.go_on(W)
    made.stop(line(60.0), None)
    assert (list(timing.due), told_at(files)) == ([60.0], (1010.0, 1070.0))


async def test_a_notice_that_cannot_be_read_is_given_again(files: WorkerFiles) -> None:
    files.notice.write_text("{", encoding="ascii")
    made, timing, _ = watched(Workers(), files)
    made.stop(line(60.0), None)
    assert (list(timing.due), told_at(files)) == ([60.0], (1000.0, 1060.0))


async def test_a_worker_of_which_something_is_left_for_long_is_told_of(files: WorkerFiles) -> None:
    workers = Workers()
    made, timing, stuck = watched(workers, files)
    made.stop(line(), None)
    workers.records[W] = gone(reaped=False)
    made.ended(W)
    made.expect(W)
    assert list(timing.due) == [3.0 + CLEAN_S]
    timing.due[3.0 + CLEAN_S]()
    assert stuck == [W]


async def test_a_worker_of_which_nothing_is_left_is_no_fault(files: WorkerFiles) -> None:
    workers = Workers()
    made, timing, stuck = watched(workers, files)
    made.stop(line(), None)
    workers.records[W] = gone(reaped=True)
    made.ended(W)
    made.clean(W)
    made.clean(W)
    assert (timing.due, stuck) == ({}, [])


async def test_a_worker_that_ends_while_it_is_told_to_is_no_fault(files: WorkerFiles) -> None:
    class AtOnce(Workers):
        """As pretended workers end."""

        def stop(self, worker: str, grace_s: float) -> None:
            self.records[W] = gone(reaped=True)
            made.ended(W)
            made.clean(W)

    made, timing, stuck = watched(AtOnce(), files)
    made.stop(line(), None)
    assert (timing.due, stuck) == ({}, [])


async def test_a_worker_that_has_ended_before_it_is_told_to_is_no_fault(
    files: WorkerFiles,
) -> None:
    workers = Workers()
    workers.records[W] = gone(reaped=True)
    made, timing, stuck = watched(workers, files)
    made.stop(line(), None)
    assert (timing.due, stuck) == ({}, [])


async def test_what_is_there_when_the_time_is_up_counts_not_who_was_told(
    files: WorkerFiles,
) -> None:
    workers = Workers()
    made, timing, stuck = watched(workers, files)
    made.stop(line(), None)
    del workers.records[W]  # forgotten since, as nobody asks for it any more
    timing.due[3.0 + CLEAN_S]()
    assert stuck == []
