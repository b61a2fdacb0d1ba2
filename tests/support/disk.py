"""A small file system of one's own, to be filled, slowed, frozen, made read-only, or cut off.

It is ext4 in an image behind a loop device; making one needs root. A cut drops everything that was
not yet written to the device, as a power loss does; what the device has, it keeps.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSHING = 2
BLKIO = Path("/sys/fs/cgroup/blkio")
MIB = 1024 * 1024


def _run(*words: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


@dataclass(slots=True, kw_only=True)
class Disk:
    """Mounted at `at`. All of it blocks for a moment."""

    image: Path
    at: Path
    device: str = ""

    def mount(self) -> None:
        """Put it there, after whatever recovery its journal needs."""
        if not self.device:
            # A device keeps the mark of being read-only from whoever had it last.
            _run("blockdev", "--setrw", _run("losetup", "--find"))
            self.device = _run("losetup", "--find", "--show", self.image)
        _run("mount", "-o", "errors=remount-ro", self.device, self.at)

    def unmount(self) -> None:
        """Take it away; nobody may have a file open on it.

        A container that starts at the same time sees every mount of the machine for a moment, and
        keeps the file system as it is; so the next mount has a device of its own.
        """
        _run("umount", self.at)
        self._give_back()

    def detach(self) -> None:
        """Give the device back."""
        if os.path.ismount(self.at):
            self.unmount()
        if self.device:
            self._give_back()

    def _give_back(self) -> None:
        _run("losetup", "--detach", self.device)
        self.device = ""

    @contextmanager
    def full(self) -> Iterator[None]:
        """No room for one byte more, while the block runs."""
        filler = self.at / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            for size in (MIB, 4096, 1):
                try:
                    while True:
                        os.write(fd, b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
            yield
        finally:
            os.close(fd)
            filler.unlink()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Every write waits, while the block runs."""
        _run("fsfreeze", "--freeze", self.at)
        try:
            yield
        finally:
            _run("fsfreeze", "--unfreeze", self.at)

    @contextmanager
    def slow(self, pid: int, writes_a_second: int) -> Iterator[None]:
        """A process gets so many writes to the device, while the block runs (cgroup v1 blkio)."""
        if not (BLKIO / "blkio.throttle.write_iops_device").exists():
            pytest.fail("a slow disk needs the blkio controller of cgroup v1; this kernel has none")
        group = BLKIO / f"rackwright-{os.getpid()}"
        group.mkdir()
        try:
            number = os.stat(self.device).st_rdev
            limit = f"{os.major(number)}:{os.minor(number)} {writes_a_second}"
            (group / "blkio.throttle.write_iops_device").write_text(limit)
            (group / "cgroup.procs").write_text(str(pid))
            yield
        finally:
            for one in (group / "cgroup.procs").read_text().split():
                (BLKIO / "cgroup.procs").write_text(one)
            group.rmdir()

    def read_only(self) -> None:
        """What ext4 does when its device fails: read-only at once, whoever has files open."""
        _run("mount", "-o", "remount,abort", self.at)

    def cut(self, pid: int) -> None:
        """The power of a child process and of its disk is gone: what the device has not, is lost.

        The process is stopped first. It would go on answering, and a server that finds its fsync
        refused answers as if it had succeeded; without power it says nothing more.
        """
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        fd = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
        finally:
            os.close(fd)


@contextmanager
def own_disk(image: Path, at: Path, mib: int = 160) -> Iterator[Disk]:
    """A new file system at `at` while the block runs."""
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    _run("mkfs.ext4", "-q", "-m", "0", image)
    at.mkdir(parents=True, exist_ok=True)
    disk = Disk(image=image, at=at)
    disk.mount()
    try:
        yield disk
    finally:
        disk.detach()
        image.unlink()
