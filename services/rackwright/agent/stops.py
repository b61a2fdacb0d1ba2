"""Ending workers: at once, or after a notice in which they may save.

A worker on notice is ended when it has saved, or when the time is up; the notice may be withdrawn
until then. What was told to end is remembered, so that it is told once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rackwright.agent import membership
from rackwright.agent.backend import Backend
from rackwright.agent.dressing import signal_number
from rackwright.agent.files import disk_refuses
from rackwright.agent.records import WorkerFiles
from rackwright.agent.timing import LIVE, Alarm, Timing
from rackwright.wire.ids import WorkerId
from rackwright.wire.values import JobValue, StopLine

CLEAN_S = 120.0  # policy page, 1.17: so long without a clean node is a fault of it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notice:
    """Given at `at` (Unix time); `timer` ends it."""

    at: float
    grace_s: float
    timer: Alarm


class Stops:
    """What was told to end on one node. `files` None: workers are pretended.

    `save` makes a pretended worker keep its work, which it does at once. `stuck` is called with a
    worker that something is left of `CLEAN_S` after it should have been gone.
    """

    def __init__(
        self,
        workers: Backend,
        files: Callable[[str], WorkerFiles] | None,
        save: Callable[[str], None] | None,
        timing: Timing = LIVE,
        stuck: Callable[[WorkerId], None] = lambda worker: None,
    ) -> None:
        self._workers = workers
        self._files = files
        self._save = save
        self._timing = timing
        self._stuck = stuck
        self._cleaning: dict[WorkerId, Alarm] = {}
        self._told: dict[WorkerId, StopLine] = {}
        self._notices: dict[WorkerId, _Notice] = {}

    @property
    def told(self) -> frozenset[WorkerId]:
        """Workers that were told to end, with notice or without."""
        return frozenset(self._told)

    def heard(self, lines: Iterable[StopLine]) -> frozenset[WorkerId]:
        """Workers that were told to end, but for those that are now given less time than then."""
        shorter = {line.worker for line in lines if self._is_shorter(line)}
        return frozenset(self._told.keys() - shorter)

    def _is_shorter(self, line: StopLine) -> bool:
        told = self._told.get(line.worker)
        return told is not None and (line.notice_s, line.grace_s) < (told.notice_s, told.grace_s)

    def stop(self, line: StopLine, job: JobValue | None) -> None:
        """Carry out a stop line. Raises UnknownWorker."""
        before = self._notices.pop(line.worker, None)
        if before is not None:
            before.timer.cancel()
        if line.notice_s <= 0:
            self._workers.stop(line.worker, line.grace_s)
            self.expect(line.worker, line.grace_s)
            self._told[line.worker] = line
            return
        now = self._timing.wall()
        given = self._given(line.worker)
        new = membership.Notice(reason="leaving", at=now, until=now + line.notice_s)
        notice = new if given is None else replace(given, until=min(given.until, new.until))
        timer = self._timing.later(max(0.0, notice.until - now), self._end, line.worker)
        self._notices[line.worker] = _Notice(at=notice.at, grace_s=line.grace_s, timer=timer)
        self._told[line.worker] = line
        if notice != given:
            self._tell(line.worker, notice)
        if given is None and job is not None and job.spec.notice_signal:
            self._workers.signal(line.worker, signal_number(job.spec.notice_signal))
        if self._save is not None:
            self._save(line.worker)
            if line.worker in self._notices:  # else it has told that it saved, and was ended
                self._end(line.worker)

    def _given(self, worker: WorkerId) -> membership.Notice | None:
        """The notice it has, perhaps by the agent before this one: its time is running."""
        return None if self._files is None else membership.read_notice(self._files(worker).notice)

    def _tell(self, worker: WorkerId, notice: membership.Notice) -> None:
        if self._files is None:
            return
        path = self._files(worker).notice
        try:
            membership.write_notice(path, notice)
        except OSError as error:  # it has its time and its signal all the same
            disk_refuses(path, error)

    def saved(self, worker: WorkerId, at: float | None) -> None:
        """The worker saved at `at` (Unix time): if it is on notice since before, it may go."""
        notice = self._notices.get(worker)
        if notice is not None and at is not None and at >= notice.at:
            self._end(worker)

    def go_on(self, worker: WorkerId) -> None:
        """Its notice is withdrawn; nothing happens if it was stopped already."""
        notice = self._notices.pop(worker, None)
        if notice is None:
            return
        notice.timer.cancel()
        self._told.pop(worker, None)
        if self._files is not None:
            membership.withdraw_notice(self._files(worker).notice)

    def expect(self, worker: WorkerId, in_s: float = 0.0) -> None:
        """Nothing should be left of it that soon; the first time that is said counts."""
        if worker not in self._cleaning and self._left(worker):
            timer = self._timing.later(in_s + CLEAN_S, self._overdue, worker)
            self._cleaning[worker] = timer

    def _left(self, worker: WorkerId) -> bool:
        """Is something left of it? A worker may have ended before it was told to, or at once."""
        record = self._workers.records.get(worker)
        return record is not None and not (record.ended and record.reaped)

    def _overdue(self, worker: WorkerId) -> None:
        del self._cleaning[worker]
        if self._left(worker):
            self._stuck(worker)

    def clean(self, worker: WorkerId) -> None:
        """Nothing is left of it."""
        timer = self._cleaning.pop(worker, None)
        if timer is not None:
            timer.cancel()

    def ended(self, worker: WorkerId) -> None:
        """It is gone."""
        notice = self._notices.pop(worker, None)
        if notice is not None:
            notice.timer.cancel()
        self._told.pop(worker, None)

    def _end(self, worker: WorkerId) -> None:
        notice = self._notices.pop(worker)
        notice.timer.cancel()
        record = self._workers.records.get(worker)
        if record is not None and not record.ended:
            self._workers.stop(worker, notice.grace_s)
            self.expect(worker, notice.grace_s)
