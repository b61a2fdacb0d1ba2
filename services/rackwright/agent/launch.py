"""Lays out a worker's directory and starts its supervisor, which is told things by a FIFO."""

import os
import select
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rackwright.agent.records import DIRECTORY_VARIABLE, WorkerFiles, WorkerSpec, full_command

SUPERVISE = Path(__file__).with_name("supervise.py")
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}  # nothing of the agent's, which may hold credentials
PERIOD_US = 100_000  # of cpu.max, the kernel's default
GB = 1_000_000_000
SERVER_LIMIT_S = 5.0  # a server that does not answer is replaced


def _write_words(path: Path, words: Iterable[str]) -> None:
    """A NUL-separated file, as the supervisor reads it. Environments may hold secrets: 0600."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))


def lay_out(files: WorkerFiles, spec: WorkerSpec, *, node: Path, cgroup: Path | None) -> None:
    """Make the directory of a worker. Raises FileExistsError if the id was ever used here."""
    files.directory.mkdir(mode=0o700)
    files.shared.mkdir()
    settings = {
        "worker": spec.worker_id,
        "on_lost_lease": spec.on_lost_lease.value,
        "log_bytes": str(spec.log_bytes),
        "grace_s": str(spec.grace_s),
        "cwd": spec.cwd,
        "gpus": ",".join(map(str, spec.gpus)),
        "gpu_locks": str(node / "gpus"),
        "lease": str(node / "lease"),
        "events": str(node / "events"),
        "cgroup": "" if cgroup is None else str(cgroup),
        "cpu.max": f"{int(spec.cpus * PERIOD_US)} {PERIOD_US}" if spec.cpus else "",
        "memory.max": str(int(spec.memory_gb * GB)) if spec.memory_gb else "",
    }
    env = {**spec.env, DIRECTORY_VARIABLE: str(files.directory)}
    _write_words(files.directory / "spec", (f"{key}={value}" for key, value in settings.items()))
    _write_words(files.directory / "env", (f"{key}={value}" for key, value in env.items()))
    _write_words(files.directory / "command", full_command(spec))
    os.mkfifo(files.control, 0o600)


def _python(*arguments: str) -> list[str]:
    """The words that start our script: isolated and without site-packages."""
    return [sys.executable, "-I", "-S", str(SUPERVISE), *arguments]


def launch(files: WorkerFiles) -> int:
    """Start the supervisor, held before the command; returns its pid.

    It is in its own session and lives on when the agent is killed. Its standard input is the
    control FIFO, opened for both directions so that it never ends.
    """
    control = os.open(files.control, os.O_RDWR | os.O_NONBLOCK)
    log = files.directory / "supervisor.log"
    try:
        return os.posix_spawn(
            sys.executable,
            _python(str(files.directory)),
            ENVIRONMENT,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, control, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(control)


class Launcher:
    """Starts supervisors through a server that forks them; without it, one by one.

    One serves all nodes of an agent. The server goes when the agent does.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._requests = -1
        self._answers = -1
        self._start()

    def launch(self, files: WorkerFiles) -> int:
        """Start a supervisor, as `launch` does."""
        if not self._pid:
            self._start()
        with suppress(BrokenPipeError):  # the server was killed
            os.write(self._requests, os.fsencode(files.directory) + b"\0")
            if select.select([self._answers], [], [], SERVER_LIMIT_S)[0]:
                answer = os.read(self._answers, 64)
                if answer:
                    return int(answer)
        late = self.close()
        return int(late) if late else launch(files)

    def close(self) -> bytes:
        """End the server; supervisors live on. Returns an answer that was still on its way.

        The end of its answers comes when what it forked last has told its pid or died, so after it
        nothing more is started.
        """
        if not self._pid:
            return b""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._pid = 0
        os.close(self._requests)
        late = b""
        while data := os.read(self._answers, 64):
            late += data
        os.close(self._answers)
        return late

    def _start(self) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                _python(),
                ENVIRONMENT,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, requests, 0),
                    (os.POSIX_SPAWN_DUP2, answers, 1),
                ],
                setsid=True,
            )
        finally:
            os.close(requests)
            os.close(answers)


def tell(files: WorkerFiles, order: str) -> bool:
    """Give a supervisor an order; False if it is not there any more.

    Only the supervisor has the FIFO open for reading, so this also tells whether it lives,
    whatever its pid is used for now.
    """
    try:
        fd = os.open(files.control, os.O_WRONLY | os.O_NONBLOCK)
    except (FileNotFoundError, OSError):
        return False
    try:
        os.write(fd, order.encode("ascii"))
    finally:
        os.close(fd)
    return True
