"""Keeps processes running: starts them, starts them again when they end, stops them in order."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from rackwright.agent.linux import die_with_parent
from rackwright.bus.embedded import EmbeddedServer
from rackwright.bus.errors import BusError

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
STABLE_S = 10.0
STOP_S = 15.0
SERVER = "nats-server"

log = structlog.get_logger()

Tell = Callable[[str], None]


def _quiet(_: str) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process to keep: `python -m <module> <arguments>` with more environment.

    `nice` as in nice(1): how far it steps back when processors are short.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    nice: int = 0


class Kept:
    """A program that is kept running. `starts` counts how often it was started.

    `tell` gets a line when it has ended, and one when it is back: when `ready` says so, or at once
    where there is no such thing.
    """

    def __init__(
        self,
        program: Program,
        logs: Path,
        *,
        tell: Tell = _quiet,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.program = program
        self.starts = 0
        self._tell = tell
        self._ready = ready
        self._back: asyncio.Task[None] | None = None
        self._log = logs / f"{program.name}.log"
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._held = asyncio.Event()
        self._held.set()
        self._running = asyncio.Event()

    @property
    def pid(self) -> int:
        """Its process id; 0 while it does not run."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    def start(self) -> None:
        """Keep it from now on."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def hold(self) -> None:
        """Do not start it again before `release`."""
        self._held.clear()

    def release(self) -> None:
        """Start it again when it is down."""
        self._held.set()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Send it a signal, as an accident would; the process id that got it."""
        pid = self.pid
        if pid:
            self._running.clear()
            os.kill(pid, how)
        return pid

    async def running(self) -> int:
        """Wait until it runs; its process id."""
        await self._running.wait()
        return self.pid

    async def stop(self) -> None:
        """End it for good: SIGTERM, and SIGKILL when that takes too long."""
        if self._task is None:
            return
        process = self._process
        await _cancelled(self._task)
        await _cancelled(self._back)
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep(self) -> None:
        pause, ended = FIRST_PAUSE_S, None
        while True:
            await self._held.wait()
            began = time.monotonic()
            self._process = await self._spawn()
            self.starts += 1
            self._running.set()
            if ended is not None:
                self._back = asyncio.create_task(self._tell_back(ended))
            status = await self._process.wait()
            ended = time.monotonic()
            self._running.clear()
            await _cancelled(self._back)
            pause = _next_pause(pause, ended - began)
            _ended(self.program.name, status, pause, self._tell)
            await asyncio.sleep(pause)

    async def _tell_back(self, ended: float) -> None:
        if self._ready is not None:
            await self._ready()
        _is_back(self.program.name, ended, self._tell)

    async def _spawn(self) -> asyncio.subprocess.Process:
        file = self._open_log()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self.program.module,
                *self.program.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**_clean(os.environ), **self.program.environment},
                start_new_session=True,
                preexec_fn=_end_with_keeper,
            )
        finally:
            os.close(file)
        if self.program.nice:
            with suppress(ProcessLookupError):  # it may have ended at once
                os.setpriority(os.PRIO_PROCESS, process.pid, self.program.nice)
        return process

    def _open_log(self) -> int:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


async def keep_server(server: EmbeddedServer, tell: Tell = _quiet) -> None:
    """Start the bus again, on its data and its port, whenever it ends by itself.

    What had been acknowledged is there again; clients wait for it and go on.
    """
    pause = FIRST_PAUSE_S
    while True:
        began = time.monotonic()
        status = await server.ended()
        ended = time.monotonic()
        pause = _next_pause(pause, ended - began)
        _ended(SERVER, status, pause, tell)
        await asyncio.sleep(pause)
        while not await _started(server, tell):
            pause = min(LONGEST_PAUSE_S, pause * 2)
            await asyncio.sleep(pause)
        _is_back(SERVER, ended, tell)


async def _started(server: EmbeddedServer, tell: Tell) -> bool:
    try:
        await server.start()
    except (BusError, OSError) as error:  # a full disk, a taken port: it may pass
        log.error("process.failed", name=SERVER, why=str(error))
        tell(f"{SERVER} does not start: {error}; it is tried again")
        return False
    log.info("process.started", name=SERVER, pid=server.pid)
    return True


def _next_pause(pause: float, lived: float) -> float:
    """Seconds before the next start: the longer, the more often it ended at once."""
    return FIRST_PAUSE_S if lived > STABLE_S else min(LONGEST_PAUSE_S, pause * 2)


def _ended(name: str, status: int | None, pause: float, tell: Tell) -> None:
    log.warning("process.ended", name=name, status=status, again_in_s=round(pause, 1))
    tell(f"{name} ended: {how_ended(status)}; it is started again in {pause:.1f} s")


def _is_back(name: str, ended: float, tell: Tell) -> None:
    tell(f"{name} is back after {time.monotonic() - ended:.1f} s")


def how_ended(status: int | None) -> str:
    """The exit status of a process in words; negative: the signal that ended it."""
    if status is None:
        return "nobody knows how"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


async def _cancelled(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})


def _end_with_keeper() -> None:
    """A keeper that is killed leaves nobody running whom nobody would start again."""
    die_with_parent(signal.SIGTERM)


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Our own settings do not leak from one process into another."""
    return {key: value for key, value in environment.items() if not key.startswith("RACKWRIGHT_")}


async def stop_all(kept: Sequence[Kept]) -> None:
    """Stop them side by side."""
    await asyncio.gather(*(one.stop() for one in kept))
