"""The lease of a node on disk: until when its workers may run, in ns of CLOCK_BOOTTIME.

One file per node, replaced by its agent at each echo and read by each supervisor when the
deadline it knows has come. It is never flushed to the disk: it means nothing after a reboot.
Two files of equal length take turns, and both are there before the first lease counts, so that a
disk that has become full ends no lease.
"""

import os
import time

from rackwright.agent import linux
from rackwright.agent.processes import boot_id


def now_ns() -> int:
    """CLOCK_BOOTTIME in nanoseconds: it goes on while the host sleeps and is never set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def write(path: str, until_ns: int) -> None:
    """Replace the lease. Raises OSError, for the first one on a full disk for instance."""
    scratch = path + ".new"
    data = f"{until_ns:020d} {boot_id()}\n".encode("ascii")
    _fill(scratch, data)
    if os.path.exists(path):
        linux.exchange(scratch, path)
        return
    first = path + ".first"
    _fill(first, data)
    os.replace(first, path)


def _fill(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)  # not emptied: its room is kept
    try:
        os.write(fd, data)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def read(path: str) -> int:
    """Until when the lease runs; 0 if there is none, or only one of an earlier boot."""
    try:
        with open(path, encoding="ascii") as file:
            until, _, boot = file.read().partition(" ")
    except FileNotFoundError:
        return 0
    return int(until) if boot.strip() == boot_id() else 0
