"""A kernel log that is written to while it is followed."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rackwright.agent import processes
from rackwright.agent.inotify import Inotify
from rackwright.agent.kernel_log import LONGEST_LINE, LogFile
from rackwright.agent.kernel_ring import KernelRing
from rackwright.agent.limits import MOST, XidSignal
from tests.integration.agent.helpers import PATIENCE_S

CHATTER = "[ 1.0] usb 1-1: new high-speed USB device number 2\n"


def xid(number: int, gpu: int = 0) -> str:
    """A whole line of the driver."""
    return f"[ 2.5] NVRM: Xid (PCI:0000:{gpu:02x}:00): {number}, GPU has fallen off the bus.\n"


class Log:
    """A log file, its follower and what that told."""

    def __init__(self, folder: Path, inotify: Inotify) -> None:
        self.path = folder / "kernel.log"
        self._position = folder / "kernel.position"
        self._inotify = inotify
        self._news = asyncio.Event()
        self.told: list[XidSignal] = []
        self.follower: LogFile | None = None

    def _hear(self, signal: XidSignal) -> None:
        self.told.append(signal)
        self._news.set()

    def follow(self, *, from_start: bool = False) -> None:
        """Start following, as an agent that starts."""
        self.follower = LogFile(
            self.path, self._position, self._inotify, self._hear, from_start=from_start
        )

    def leave(self) -> None:
        """Stop, as an agent that ends well."""
        assert self.follower is not None
        self.follower.close()
        self.follower = None

    def write(self, text: str) -> None:
        """Append."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    async def until(self, *numbers: int) -> None:
        """Wait until exactly these Xids were told, in this order."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.told) < len(numbers):
                self._news.clear()
                await self._news.wait()
        assert tuple(signal.line.xid for signal in self.told) == numbers


@pytest.fixture
async def inotify() -> AsyncIterator[Inotify]:
    inotify = Inotify()
    yield inotify
    inotify.close()


@pytest.fixture
async def log(tmp_path: Path, inotify: Inotify) -> AsyncIterator[Log]:
    log = Log(tmp_path, inotify)
    yield log
    if log.follower is not None:
        log.leave()


async def test_new_lines_are_told_and_old_ones_are_history(log: Log) -> None:
    log.write(xid(48) + CHATTER)
    log.follow()
    log.write(CHATTER + xid(79))
    await log.until(79)
    log.write(xid(119) + CHATTER)
    await log.until(79, 119)
    assert log.told[0].line.pci == "0000:00:00"


async def test_a_log_from_its_start_if_asked(log: Log) -> None:
    log.write(xid(48))
    log.follow(from_start=True)
    await log.until(48)


async def test_a_log_that_comes_later(log: Log) -> None:
    log.follow()
    log.write(xid(79))
    await log.until(79)


async def test_a_line_in_two_pieces(log: Log) -> None:
    log.path.touch()
    log.follow()
    line = xid(79)
    log.write(xid(48) + line[:30])
    await log.until(48)
    log.write(line[30:])
    await log.until(48, 79)


async def test_a_line_without_end_is_bounded(log: Log) -> None:
    log.path.touch()
    log.follow()
    log.write("NVRM: Xid (" + "x" * 20 * LONGEST_LINE)
    log.write("\n" + xid(79))
    await log.until(79)
    assert log.follower is not None
    assert len(log.follower._partial) <= LONGEST_LINE


async def test_rotation_loses_nothing(log: Log) -> None:
    log.write(CHATTER)
    log.follow()
    log.write(xid(48))
    log.path.rename(log.path.with_name("kernel.log.1"))
    log.write(xid(79))
    await log.until(48, 79)
    log.path.unlink()
    log.write(xid(119))
    await log.until(48, 79, 119)


async def test_a_log_cut_in_place_begins_anew(log: Log) -> None:
    log.write(CHATTER * 50)
    log.follow()
    log.write(xid(48))
    await log.until(48)
    os.truncate(log.path, 0)
    log.write(xid(79))
    await log.until(48, 79)


async def test_reading_goes_on_where_it_stopped(log: Log) -> None:
    log.path.touch()
    log.follow()
    log.write(xid(48))
    await log.until(48)
    log.leave()
    log.write(xid(79))
    log.follow()
    await log.until(48, 79)


async def test_a_half_line_at_the_stop_is_read_whole_later(log: Log) -> None:
    log.path.touch()
    log.follow()
    line = xid(79)
    log.write(xid(48) + line[:20])
    await log.until(48)
    log.leave()
    log.write(line[20:])
    log.follow()
    await log.until(48, 79)


async def test_rotated_while_nobody_followed(log: Log) -> None:
    log.path.touch()
    log.follow()
    log.write(xid(48))
    await log.until(48)
    log.leave()
    log.write(xid(79))
    log.path.rename(log.path.with_name("kernel.log.1"))
    log.write(xid(119))
    log.follow()
    await log.until(48, 79, 119)


async def test_another_file_with_the_same_inode_is_read_from_its_start(log: Log) -> None:
    log.path.touch()
    log.follow()
    log.write(xid(48))
    await log.until(48)
    log.leave()
    os.truncate(log.path, 0)  # keeps the inode, as a removed and new file may get it again
    log.write(xid(79) + CHATTER * 20)
    log.follow()
    await log.until(48, 79)


async def test_a_line_read_twice_has_the_same_source(log: Log) -> None:
    log.path.touch()
    log.follow()
    log.write(CHATTER + xid(79))
    await log.until(79)
    log.leave()
    log.follow(from_start=True)
    position = log.path.with_name("kernel.position")
    log.leave()
    position.unlink()
    log.follow(from_start=True)
    await log.until(79, 79)
    assert log.told[0].source == log.told[1].source


async def test_a_million_lines_cost_a_few_signals(log: Log) -> None:
    log.path.touch()
    log.follow()
    storm = [
        f"NVRM: Xid (PCI:0000:{n % 4:02x}:00): 45, pid={n}, name=python, Ch {n:08x}\n"
        for n in range(1_000)
    ]
    for _ in range(1_000):
        log.write("".join(storm))
    log.write(xid(79, gpu=7))
    await log.until(45, 45, 45, 45, 79)
    log.leave()
    assert len(log.told) <= 2 * MOST
    assert sum(signal.count for signal in log.told) == 1_000_001


async def test_many_logs_on_one_descriptor(tmp_path: Path, inotify: Inotify) -> None:
    logs = []
    for n in range(72):
        folder = tmp_path / f"n{n}"
        folder.mkdir()
        logs.append(Log(folder, inotify))
        logs[-1].follow()
    for log in logs:
        log.write(xid(79))
    for log in logs:
        await log.until(79)
        log.leave()


class Ring:
    """A pair of sockets that keeps records apart, as /dev/kmsg does."""

    def __init__(self, folder: Path) -> None:
        self.position = folder / "ring.position"
        self.told: list[XidSignal] = []
        self.news = asyncio.Event()
        self.number = 0
        self.follow()

    def follow(self) -> None:
        """Start following, from the oldest record."""
        self.kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.follower = KernelRing(ours.detach(), self.position, self._hear)

    def _hear(self, signal: XidSignal) -> None:
        self.told.append(signal)
        self.news.set()

    def write(self, text: str, *, number: int, facility: int = 0) -> None:
        """One record."""
        self.kernel.send(f"{facility << 3 | 4},{number},12345,-;{text} SUBSYSTEM=pci\n".encode())

    def close(self) -> None:
        """Stop."""
        self.follower.close()
        self.kernel.close()


@pytest.fixture
async def make_ring(tmp_path: Path) -> AsyncIterator[Callable[[], Ring]]:
    rings: list[Ring] = []

    def make() -> Ring:
        rings.append(Ring(tmp_path))
        return rings[-1]

    yield make
    for ring in rings:
        ring.close()


async def test_only_the_kernels_own_records_count(make_ring: Callable[[], Ring]) -> None:
    ring = make_ring()
    ring.write(xid(119)[7:], number=1, facility=1)  # any user may write there
    ring.write("usb 1-1: new device", number=2)
    ring.write(xid(79)[7:], number=3)
    async with asyncio.timeout(PATIENCE_S):
        await ring.news.wait()
    assert [(s.line.xid, s.source) for s in ring.told] == [(79, f"{processes.boot_id()}:3")]


async def test_records_told_in_this_boot_are_passed(make_ring: Callable[[], Ring]) -> None:
    first = make_ring()
    first.write(xid(79)[7:], number=3)
    async with asyncio.timeout(PATIENCE_S):
        await first.news.wait()
    second = make_ring()
    for number, code in ((3, 79), (4, 119)):
        second.write(xid(code)[7:], number=number)
    async with asyncio.timeout(PATIENCE_S):
        await second.news.wait()
    assert [signal.line.xid for signal in second.told] == [119]
