"""What is said of a worker: its spec, its files, and its last record on disk."""

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}/[0-9]{1,6}/[0-9]{1,9}")
MEBIBYTE = 1024 * 1024
DIRECTORY_VARIABLE = "RACKWRIGHT_WORKER_DIR"  # marks the processes of a worker, for ever so long


class WorkerState(StrEnum):
    """prepared: held before its command; the last three are final."""

    PREPARED = "prepared"
    RUNNING = "running"
    EXITED = "exited"
    STOPPED = "stopped"
    FENCED = "fenced"


class OnLostLease(StrEnum):
    """What a running worker does when the lease of its node ends."""

    STOP = "stop"
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What to run. Either `command`, or the shell script `run`; `setup` is a script before it.

    `grace_s` counts only when the supervisor itself is asked to end (a host that shuts down).
    `cpus` (cores) and `memory_gb` limit it where its cgroup can; 0: the whole node is its own.
    """

    worker_id: str
    command: tuple[str, ...] = ()
    setup: str = ""
    run: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    gpus: tuple[int, ...] = ()
    on_lost_lease: OnLostLease = OnLostLease.STOP
    log_bytes: int = 64 * MEBIBYTE
    grace_s: float = 5.0
    cpus: float = 0.0
    memory_gb: float = 0.0

    def __post_init__(self) -> None:
        if not WORKER_ID.fullmatch(self.worker_id):
            raise ValueError(f"not a worker id: {self.worker_id!r}")
        if bool(self.command) == bool(self.run):
            raise ValueError("a worker has either a command or a run script")
        texts = [*self.command, self.setup, self.run, self.cwd, *self.env, *self.env.values()]
        if any("\0" in text for text in texts):
            raise ValueError("a command, script or environment cannot hold a NUL")
        if any(not key or "=" in key for key in self.env):
            raise ValueError("the name of an environment variable is empty or holds '='")


def full_command(spec: WorkerSpec) -> tuple[str, ...]:
    """The words to execute. A failed setup is the worker's end, with the setup's exit code."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    main = spec.command or (shell, "-c", spec.run)
    if not spec.setup:
        return main
    first = f'{shell} -c "$1" || exit; shift; exec "$@"'
    return (shell, "-c", first, "rackwright", spec.setup, *main)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFiles:
    """Where the files of a worker lie. The worker itself may write only into `shared`."""

    directory: Path

    @property
    def shared(self) -> Path:
        """Directory of the files by which worker and agent speak."""
        return self.directory / "files"

    @property
    def membership(self) -> Path:
        """Who takes part; replaced at each change."""
        return self.shared / "membership.json"

    @property
    def notice(self) -> Path:
        """What is about to happen; appears when there is something."""
        return self.shared / "notice.json"

    @property
    def report(self) -> Path:
        """Progress, written by the worker."""
        return self.shared / "report"

    @property
    def checkpoint(self) -> Path:
        """Touched by the worker when it has saved a checkpoint."""
        return self.shared / "checkpoint"

    @property
    def log(self) -> Path:
        """Its output; the older half is `output.log.1`."""
        return self.directory / "output.log"

    @property
    def control(self) -> Path:
        """FIFO to the supervisor, which alone has it open for reading."""
        return self.directory / "control"

    @property
    def state(self) -> Path:
        """The last record."""
        return self.directory / "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """The last state of a worker. `at` is Unix time, in seconds.

    `supervisor_started` and `started` are in clock ticks since boot: with the pid they name a
    process even after its pid is used again. `code` is the exit code of the leader (whose pid is
    its group), or minus the signal that ended it; None if it never ran or nobody could know.
    `reaped`: nothing of it is left, so its GPUs may be used.
    """

    worker_id: str
    state: WorkerState
    cause: str = ""
    supervisor: int = 0
    supervisor_started: int = 0
    pid: int = 0
    started: int = 0
    boot_id: str = ""
    code: int | None = None
    reaped: bool = True
    gpus: tuple[int, ...] = ()
    at: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether it never runs again."""
        return self.state in {WorkerState.EXITED, WorkerState.STOPPED, WorkerState.FENCED}

    @classmethod
    def parse(cls, data: str | bytes) -> Self:
        """Read a record as a supervisor wrote it. Raises ValueError, KeyError or TypeError."""
        raw: dict[str, Any] = json.loads(data)
        return cls(**{**raw, "state": WorkerState(raw["state"]), "gpus": tuple(raw["gpus"])})

    def line(self) -> str:
        """The record as `parse` reads it, one line."""
        raw = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(raw, separators=(",", ":")) + "\n"


# As a process has them that was killed or told to end; the latter pair as a shell tells them.
KILLED = frozenset({-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGKILL, 128 + signal.SIGTERM})


def unheard(record: WorkerRecord) -> WorkerRecord:
    """What a new agent makes of an end that the one before it may not have lived to tell.

    Who ends a container or a host kills everything in it, workers and agent in any order. So a
    killed worker that only its record tells of was lost with its agent: nobody knows its code.
    """
    if record.state is not WorkerState.EXITED or record.code not in KILLED:
        return record
    return replace(record, code=None, cause=record.cause or "lost with its agent")


def directory_name(worker_id: str) -> str:
    """One path component for a worker id; job ids hold no dot. Raises ValueError."""
    if not WORKER_ID.fullmatch(worker_id):
        raise ValueError(f"not a worker id: {worker_id!r}")
    return worker_id.replace("/", ".")
