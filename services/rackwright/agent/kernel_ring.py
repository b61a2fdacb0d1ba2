"""Follows the kernel's own log, /dev/kmsg, and tells its Xids."""

import asyncio
import os
import time
from pathlib import Path

from rackwright.agent import processes
from rackwright.agent.files import try_to_replace
from rackwright.agent.teller import OnXid, Teller
from rackwright.agent.xid import MARK


class KernelRing:
    """The kernel's own ring, /dev/kmsg: one record a read. Lines written by users are passed."""

    def __init__(self, fd: int, position: Path, on_xid: OnXid) -> None:
        """Follow `fd`, an open /dev/kmsg; `open_ring` gives one."""
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._position = position
        self._teller = Teller(on_xid)
        self._boot = processes.boot_id()
        self._last = self._told()
        self.overwritten = 0  # times that the kernel wrote faster than we read
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def close(self) -> None:
        """Stop."""
        self._teller.flush()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _told(self) -> int:
        """The number of the last record told in this boot; -1 for none."""
        try:
            boot, number = self._position.read_text(encoding="ascii").split()
        except (FileNotFoundError, ValueError):
            return -1
        return int(number) if boot == self._boot else -1

    def _read(self) -> None:
        deadline = time.monotonic() + 0.005  # then the loop may turn
        told = self._last
        while time.monotonic() < deadline:
            try:
                record = os.read(self._fd, 8_192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the next read goes on with the oldest record there is
                self.overwritten += 1
                continue
            self._take(record)
        if self._last != told:
            try_to_replace(self._position, f"{self._boot} {self._last}\n")

    def _take(self, record: bytes) -> None:
        prefix, _, text = record.partition(b";")
        priority, number = prefix.split(b",")[:2]
        if int(priority) >> 3 == 0 and int(number) > self._last and text.startswith(MARK):
            self._last = int(number)
            line = text.partition(b"\n")[0]
            self._teller.offer(line, f"{self._boot}:{self._last}")


def open_ring(position: Path) -> int:
    """Open /dev/kmsg: after the last record told if that was in this boot, else at the end.

    Raises OSError where the ring cannot be read.
    """
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    known = position.exists() and position.read_text("ascii").startswith(processes.boot_id())
    os.lseek(fd, 0, os.SEEK_SET if known else os.SEEK_END)
    return fd
