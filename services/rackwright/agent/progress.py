"""How a worker tells its progress, and how the agent hears of it.

A worker touches RACKWRIGHT_CHECKPOINT_FILE when it has saved a checkpoint, and may append JSON
lines to RACKWRIGHT_REPORT_FILE (or replace it): `{"ready": true, "step": 1200,
"checkpoint_at": 1767225600.0}`, each key optional, later lines over earlier ones. `ready` says
that the worker has joined its peers; it is told in the first line or repeated, as only the first
and the last `TAIL_BYTES` of the file are read.
"""

import asyncio
import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackwright.agent.inotify import Change, Inotify, Watch
from rackwright.agent.records import WorkerFiles

TAIL_BYTES = 65_536
MOST = 1 << 63  # a larger step is nonsense
PAUSE_S = 0.2  # between two readings of one worker's report


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a worker has told so far. Times are Unix times in seconds, never in the future."""

    ready: bool | None = None
    step: int | None = None
    checkpoint_at: float | None = None
    progress_at: float | None = None


def parse_report(data: bytes) -> dict[str, object]:
    """The union of the JSON objects in a report, the last word counting; what is none is passed."""
    told: dict[str, object] = {}
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # no JSON, or a line that is still being written
            continue
        if isinstance(value, dict):
            told |= value
    return told


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_regular(path: Path) -> tuple[bytes, float] | None:
    """Head and tail of a file and when it was changed; None unless it is an ordinary file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        head = os.pread(fd, TAIL_BYTES, 0)
        rest = max(len(head), found.st_size - TAIL_BYTES)
        return head + b"\n" * (rest > len(head)) + os.pread(fd, TAIL_BYTES, rest), found.st_mtime
    finally:
        os.close(fd)


def read_progress(files: WorkerFiles, *, now: float) -> Progress:
    """What a worker has told by its files."""
    report, saved = _read_regular(files.report), _read_regular(files.checkpoint)
    told = parse_report(report[0]) if report else {}
    step, said, ready = told.get("step"), told.get("checkpoint_at"), told.get("ready")
    times = [said] if isinstance(said, int | float) and _is_number(said) else []
    if saved:
        times.append(saved[1])
    times = [float(min(at, now)) for at in times if at > 0]  # NaN is not
    return Progress(
        ready=ready if isinstance(ready, bool) else None,
        step=step if isinstance(step, int) and _is_number(step) and abs(step) < MOST else None,
        checkpoint_at=max(times, default=None),
        progress_at=min(report[1], now) if report else None,
    )


class ProgressReader:
    """Calls `on_progress(worker_id, progress)` when a worker has told something new."""

    def __init__(self, inotify: Inotify, on_progress: Callable[[str, Progress], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._inotify = inotify
        self._on_progress = on_progress
        self._watches: dict[str, Watch] = {}
        self._files: dict[str, WorkerFiles] = {}
        self._last: dict[str, Progress] = {}
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        self._again: set[str] = set()

    def follow(self, worker_id: str, files: WorkerFiles) -> None:
        """Start reading one worker's files; what they say already is told at once."""
        if worker_id in self._watches:
            return
        changes = Change.MODIFY | Change.CLOSE_WRITE | Change.ATTRIB | Change.MOVED_TO
        names = {files.report.name, files.checkpoint.name, ""}
        self._files[worker_id] = files
        self._last[worker_id] = Progress()
        self._watches[worker_id] = self._inotify.watch(
            files.shared, changes, lambda _, name: self._changed(worker_id, name in names)
        )
        self._read(worker_id)

    def release(self, worker_id: str) -> None:
        """Read one last time, and stop."""
        if worker_id not in self._watches:
            return
        self._inotify.unwatch(self._watches.pop(worker_id))
        if pause := self._pauses.pop(worker_id, None):
            pause.cancel()
        self._again.discard(worker_id)
        self._tell(worker_id)
        del self._files[worker_id], self._last[worker_id]

    def _changed(self, worker_id: str, ours: bool) -> None:
        if not ours or worker_id not in self._watches:
            return
        if worker_id in self._pauses:
            self._again.add(worker_id)
        else:
            self._read(worker_id)

    def _read(self, worker_id: str) -> None:
        self._pauses[worker_id] = self._loop.call_later(PAUSE_S, self._resume, worker_id)
        self._tell(worker_id)

    def _resume(self, worker_id: str) -> None:
        del self._pauses[worker_id]
        if worker_id in self._again:
            self._again.discard(worker_id)
            self._read(worker_id)

    def _tell(self, worker_id: str) -> None:
        progress = read_progress(self._files[worker_id], now=time.time())
        if progress != self._last[worker_id]:
            self._last[worker_id] = progress
            self._on_progress(worker_id, progress)
