"""Processes of a worker whose supervisor was killed: found by a mark, killed, watched."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rackwright.agent import processes
from rackwright.agent.records import DIRECTORY_VARIABLE


def find(directory: Path) -> list[int]:
    """Living processes that carry the worker's directory in their environment.

    Every process of the worker inherits it. One that wiped its environment is found only through
    a cgroup; one of another user only by root.
    """
    mark = f"{DIRECTORY_VARIABLE}={directory}\0".encode()
    found = []
    for pid in processes.all_pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if b"\0" + mark in b"\0" + environment and processes.start_time(pid):
            found.append(pid)
    return found


def kill(directory: Path, cgroup: Path | None) -> list[int]:
    """SIGKILL to everything left of the worker; returns what still has to die of it."""
    if cgroup is not None and (cgroup / "cgroup.kill").exists():
        (cgroup / "cgroup.kill").write_text("1")
    while True:
        left = find(directory)
        fresh = [pid for pid in left if not processes.is_doomed(pid)]
        if not fresh:
            if cgroup is not None and not left:
                with suppress(OSError):  # never made, or a process that wiped its environment
                    cgroup.rmdir()
            return left
        for pid in fresh:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


class Watch:
    """Calls `on_gone` once when every one of some processes is gone."""

    def __init__(self, pids: list[int], on_gone: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_gone = on_gone
        self._fds: set[int] = set()
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            self._fds.add(fd)
            self._loop.add_reader(fd, self._gone, fd)
        if not self._fds:
            self._loop.call_soon(on_gone)

    def _gone(self, fd: int) -> None:
        self._drop(fd)
        if not self._fds:
            self._on_gone()

    def _drop(self, fd: int) -> None:
        self._fds.discard(fd)
        self._loop.remove_reader(fd)
        os.close(fd)

    def close(self) -> None:
        """Stop watching."""
        for fd in tuple(self._fds):
            self._drop(fd)
