"""Follows a kernel log in a file that grows, is cut or rotated, and tells its Xids.

Reading is woken by inotify, so a fault is told within a millisecond or two. The position is kept
on disk: after a restart reading goes on there, and the first time it begins at the end, for old
faults are history. A line may be told twice after a crash, with the same `source`.
"""

import asyncio
import os
import zlib
from pathlib import Path

from rackwright.agent.files import try_to_replace
from rackwright.agent.inotify import Change, Inotify, Watch
from rackwright.agent.teller import OnXid, Teller
from rackwright.agent.xid import MARK

CHUNK = 65_536  # read at a time; the loop turns between two
LONGEST_LINE = 8_192  # a longer one is cut, not kept in memory
MARKED = 256  # bytes of its beginning by which a file is known again
SAVE_S = 0.2  # the position is saved so long after a reading


class LogFile:
    """A kernel log in a file. `position` is where the place reached is kept.

    The file need not exist yet. `from_start`: read a log never seen before from its beginning.
    """

    def __init__(
        self,
        path: Path,
        position: Path,
        inotify: Inotify,
        on_xid: OnXid,
        *,
        from_start: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._position = position
        self._inotify = inotify
        self._teller = Teller(on_xid)
        self._fd = -1
        self._inode = 0
        self._offset = 0  # of the first byte not yet read
        self._partial = b""
        self._watch: Watch | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._reading: asyncio.Handle | None = None
        self._directory = inotify.watch(
            path.parent, Change.CREATE | Change.MOVED_TO, self._on_directory
        )
        self._resume(from_start)

    @property
    def lost(self) -> int:
        """Lines of kinds beyond the limit, since the start."""
        return self._teller.lost

    def close(self) -> None:
        """Stop, keep the position."""
        self._inotify.unwatch(self._directory)
        self._teller.flush()
        if self._reading is not None:
            self._reading.cancel()
        self._save()
        self._leave()

    def _resume(self, from_start: bool) -> None:
        """Go on where the last agent stopped, in the rotated file first if it was rotated since."""
        try:
            place = self._position.read_text(encoding="ascii").split()
            inode, offset, length, mark = map(int, place)
        except (FileNotFoundError, ValueError):
            if self._enter() and not from_start:
                self._offset = os.lseek(self._fd, 0, os.SEEK_END)
            self._read()
            return
        if not self._enter():
            return
        if inode != self._inode:
            self._finish_rotated(inode, offset)
        elif offset <= os.fstat(self._fd).st_size and self._mark(length) == mark:
            self._offset = offset
        self._read()

    def _finish_rotated(self, inode: int, offset: int) -> None:
        """Read what the file of the last agent got after its end, if it still lies beside."""
        for path in sorted(self._path.parent.glob(self._path.name + "*")):
            if path.stat().st_ino == inode:
                self._leave()
                self._enter(path)
                self._offset = offset
                while self._read_chunk():
                    pass
                self._leave()
                self._enter()
                return

    def _enter(self, path: Path | None = None) -> bool:
        """Open the file at its beginning; False if it is not there."""
        path = path or self._path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        self._inode = os.fstat(self._fd).st_ino
        self._offset, self._partial = 0, b""
        try:
            self._watch = self._inotify.watch(path, Change.MODIFY, lambda *_: self._read())
        except FileNotFoundError:  # renamed in between: the directory's watch tells
            self._watch = None
        return True

    def _leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._watch is not None:
            self._inotify.unwatch(self._watch)
            self._watch = None

    def _on_directory(self, change: Change, name: str) -> None:
        """A file appeared: perhaps ours, anew."""
        if name not in {self._path.name, ""}:
            return
        try:
            if self._fd >= 0 and self._path.stat().st_ino == self._inode:
                self._read()
                return
        except FileNotFoundError:
            return
        while self._fd >= 0 and self._read_chunk():  # the rest of the one rotated away
            pass
        self._leave()
        self._enter()
        self._read()

    def _read(self) -> None:
        """Read one chunk now and the next when the loop has turned."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self._fd < 0:
            return
        if self._read_chunk():
            self._reading = self._loop.call_soon(self._read)
        if self._saving is None:
            self._saving = self._loop.call_later(SAVE_S, self._save)

    def _read_chunk(self) -> bool:
        """Read and tell; False at the end of the file."""
        data = os.pread(self._fd, CHUNK, self._offset)
        if not data:
            if os.fstat(self._fd).st_size >= self._offset:
                return False
            self._offset, self._partial = 0, b""  # cut: it begins anew
            return True
        begin = self._offset - len(self._partial)
        self._offset += len(data)
        data = self._partial + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LONGEST_LINE:
            end = len(data)
        self._partial = data[end:][-LONGEST_LINE:]
        self._tell(data[:end], begin)
        return True

    def _tell(self, lines: bytes, begin: int) -> None:
        at = lines.find(MARK)
        while at >= 0:
            end = lines.find(b"\n", at)
            end = len(lines) if end < 0 else end
            self._teller.offer(lines[at:end][:LONGEST_LINE], f"{self._inode:x}:{begin + at}")
            at = lines.find(MARK, end)

    def _mark(self, length: int) -> int:
        """A number made of the file's beginning: another file may get the same inode."""
        return zlib.crc32(os.pread(self._fd, length, 0))

    def _save(self) -> None:
        """Keep the place before the line that is not complete yet."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if self._fd >= 0:
            place = self._offset - len(self._partial)
            length = min(place, MARKED)
            text = f"{self._inode} {place} {length} {self._mark(length)}\n"
            try_to_replace(self._position, text)
