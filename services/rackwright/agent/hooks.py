"""Site hooks: programs of the site that set up and clear the fabric around a worker.

Called as `HOOK JOB RACK NODES INCARNATION`, the member nodes separated by commas, with its kind in
RACKWRIGHT_HOOK. A failed hook is the node's fault, not the job's.
"""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

TIME_LIMIT_S = 120.0
DEATH_LIMIT_S = 2.0  # after SIGKILL; a process that takes longer sits in the kernel
OUTPUT_BYTES = 8_192  # the last of what a hook said
ARGUMENT_BYTES = 100_000  # Linux refuses an argument over 128 KiB


class HookKind(StrEnum):
    """Before the start, at a change of membership, after the end; and of an idle node."""

    PROLOG = "prolog"
    MEMBERSHIP = "membership"
    EPILOG = "epilog"
    CHECK = "check"


class HookOutcome(StrEnum):
    """absent: the site has no such hook, which is as good as ok."""

    OK = "ok"
    ABSENT = "absent"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    NOT_STARTED = "not-started"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """What a hook is told."""

    job: str
    rack: str
    nodes: tuple[str, ...]
    incarnation: int

    def arguments(self) -> tuple[str, ...]:
        """The arguments; the nodes are cut at a comma where Linux would refuse so many."""
        nodes = ",".join(self.nodes)
        if len(nodes) > ARGUMENT_BYTES:
            nodes = nodes[:ARGUMENT_BYTES].rpartition(",")[0]
        return (self.job, self.rack, nodes, str(self.incarnation))


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """How one call went. `code`: exit code, or minus the signal; `output`: its last words."""

    kind: HookKind
    outcome: HookOutcome
    code: int | None = None
    output: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the node may go on."""
        return self.outcome in {HookOutcome.OK, HookOutcome.ABSENT}


class _Process:
    """A hook that runs, in a session of its own, with its last words."""

    def __init__(self, kind: HookKind, path: Path, arguments: tuple[str, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe, worker_end = os.pipe()
        try:
            self.pid = os.posix_spawn(
                path,
                [str(path), *arguments],
                {**os.environ, "RACKWRIGHT_HOOK": kind.value},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, worker_end, 1),
                    (os.POSIX_SPAWN_DUP2, worker_end, 2),
                ],
                setsid=True,
            )
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(worker_end)
        self.output = b""
        self.code: asyncio.Future[int] = self._loop.create_future()
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._read)
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._exited)

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, 65_536)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._pipe)
        self.output = (self.output + data)[-OUTPUT_BYTES:]

    def _exited(self) -> None:
        """Not when its output ends: a hook may leave a child behind that keeps the pipe open."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.kill()  # while its zombie still keeps the group's number
        _, status = os.waitpid(self.pid, 0)
        self.code.set_result(os.waitstatus_to_exitcode(status))

    def kill(self) -> None:
        """SIGKILL to its group. Only before it was waited for: later the number is another's."""
        if not self.code.done():
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Take its last words and let the pipe go."""
        self._read()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)


async def run_hook(
    kind: HookKind, path: Path | None, call: HookCall, *, limit_s: float = TIME_LIMIT_S
) -> HookResult:
    """Run one hook to its end or its time limit; what it left in its process group is killed."""
    if path is None:
        return HookResult(kind=kind, outcome=HookOutcome.ABSENT)
    began = time.monotonic()
    try:
        process = _Process(kind, path, call.arguments())
    except OSError as error:
        return HookResult(kind=kind, outcome=HookOutcome.NOT_STARTED, output=str(error))
    try:
        done, _ = await asyncio.wait({process.code}, timeout=limit_s)
        in_time = bool(done)
        if not in_time:
            process.kill()
            await asyncio.wait({process.code}, timeout=DEATH_LIMIT_S)
    finally:
        process.kill()
        process.close()
    code = process.code.result() if process.code.done() else None
    finished = HookOutcome.OK if code == 0 else HookOutcome.FAILED
    return HookResult(
        kind=kind,
        outcome=finished if in_time else HookOutcome.TIMED_OUT,
        code=code,
        output=process.output.decode("utf-8", errors="replace"),
        seconds=time.monotonic() - began,
    )
