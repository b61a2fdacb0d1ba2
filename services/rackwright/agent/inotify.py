"""File changes as events of the asyncio loop: one inotify descriptor for any number of paths."""

import asyncio
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from rackwright.agent import linux

_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 65_536
_MASK_ADD = 0x2000_0000


class Change(IntFlag):
    """What happened, as inotify(7) numbers it."""

    MODIFY = 0x2
    CLOSE_WRITE = 0x8
    MOVED_TO = 0x80
    CREATE = 0x100
    ATTRIB = 0x4
    OVERFLOW = 0x4000
    IGNORED = 0x8000


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A standing wish to hear of changes of one path."""

    number: int
    on_change: Callable[[Change, str], None]


class Inotify:
    """Hears of changes and calls `on_change(change, name)`; the name is empty for a file's own.

    When the kernel has lost events every watch is called with OVERFLOW: listeners look at the
    files, so a lost event costs nothing.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = linux.inotify()
        self._watches: dict[int, list[Watch]] = {}
        self._loop.add_reader(self._fd, self._read)

    def watch(self, path: Path, changes: Change, on_change: Callable[[Change, str], None]) -> Watch:
        """Start hearing of a file or directory. Raises OSError if it cannot be watched."""
        number = linux.inotify_add(self._fd, str(path), changes | _MASK_ADD)
        watch = Watch(number, on_change)
        self._watches.setdefault(number, []).append(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Stop hearing."""
        watches = self._watches.get(watch.number, [])
        if watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[watch.number]
                linux.inotify_remove(self._fd, watch.number)

    def close(self) -> None:
        """Stop hearing of everything."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._watches.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        at, seen = 0, set[tuple[int, int, str]]()
        while at < len(data):
            number, mask, _, length = _HEADER.unpack_from(data, at)
            at += _HEADER.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            if (number, mask, name) not in seen:  # a thousand writes are one change
                seen.add((number, mask, name))
                self._tell(number, Change(mask & 0xFFFF), name)

    def _tell(self, number: int, change: Change, name: str) -> None:
        if Change.OVERFLOW in change:
            for told in tuple(self._watches):
                self._call(told, change, "")
        else:
            self._call(number, change, name)
        if Change.IGNORED in change:  # the kernel dropped it: the file is gone
            self._watches.pop(number, None)

    def _call(self, number: int, change: Change, name: str) -> None:
        for watch in tuple(self._watches.get(number, ())):
            watch.on_change(change, name)
