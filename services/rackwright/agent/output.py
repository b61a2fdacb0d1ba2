"""A worker's output: taken from its pipe at once, written to a bounded log by a thread.

The supervisor's main thread never writes to a disk once the worker runs, so that a slow disk
delays neither the worker nor its fence.
"""

import _queue
import _thread
import fcntl
import os

CHUNK = 65_536
BACKLOG = 4 * 1024 * 1024  # bytes waiting for the disk; beyond it output is dropped and counted
PIPE_BYTES = 1024 * 1024
READS = 20  # more than a full pipe


class Output:
    """Pipe, queue and log of one worker. `log_bytes` bounds `output.log` and `output.log.1`."""

    def __init__(self, directory: str, *, log_bytes: int, events: str) -> None:
        self.fd, self.worker_end = os.pipe()
        os.set_blocking(self.fd, False)
        try:  # noqa: SIM105 - contextlib takes milliseconds to import
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except PermissionError:
            pass  # the pages of this user's pipes are used up: the default of 64 KiB will do
        self._log = directory + "/output.log"
        self._state = directory + "/state"
        self._events = events
        self._half = max(1, log_bytes // 2)
        self._size = 0
        self._file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._queue: _queue.SimpleQueue[tuple[str, bytes]] = _queue.SimpleQueue()
        self._queued = 0  # counted by the main thread
        self._written = 0  # counted by the writer
        self._dropped = 0
        self._idle = _thread.allocate_lock()

    def start(self) -> None:
        """Start writing. The worker is forked before: a fork wants a single thread."""
        os.close(self.worker_end)
        self._idle.acquire()
        _thread.start_new_thread(self._write_all, ())

    def drain(self) -> bool:
        """Take what the worker has written; False when every writer has closed its end.

        At most `READS` pieces, so that a worker that floods cannot keep its fence waiting.
        """
        for _ in range(READS):
            try:
                data = os.read(self.fd, CHUNK)
            except BlockingIOError:
                return True
            if not data:
                return False
            if self._queued - self._written > BACKLOG:
                self._dropped += len(data)
                continue
            self._note_dropped()
            self._put("log", data)
        return True

    def record(self, record: bytes) -> None:
        """Replace the state file behind the output queued so far, and tell the agent."""
        self._put("record", record)

    def finish(self) -> None:
        """Wait until all that was queued is written."""
        self._note_dropped()
        self._put("end", b"")
        self._idle.acquire()

    def write_record(self, record: bytes) -> None:
        """Replace the state file now, and tell the agent if there is one."""
        try:
            scratch = os.open(self._state + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(scratch, record)
            os.close(scratch)
            os.replace(self._state + ".new", self._state)
        except OSError as error:  # a full disk: the agent still hears it
            os.write(2, f"state not written: {error}\n".encode())
        try:
            events = os.open(self._events, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no agent: the next one reads the state file
            return
        try:  # noqa: SIM105
            os.write(events, record)
        except BlockingIOError:
            pass  # an agent that does not read: it looks again when the supervisor ends
        os.close(events)

    def _put(self, kind: str, data: bytes) -> None:
        self._queued += len(data)
        self._queue.put((kind, data))

    def _note_dropped(self) -> None:
        if self._dropped:
            self._put("log", b"\n[rackwright: %d bytes of output dropped]\n" % self._dropped)
            self._dropped = 0

    def _write_all(self) -> None:
        while True:
            kind, data = self._queue.get()
            if kind == "log":
                self._append(data)
            elif kind == "record":
                self.write_record(data)
            else:
                break
            self._written += len(data)
        self._idle.release()

    def _append(self, data: bytes) -> None:
        for at in range(0, len(data), self._half):
            piece = data[at : at + self._half]
            try:
                if self._size + len(piece) > self._half:
                    self._rotate()
                self._size += os.write(self._file, piece)
            except OSError:  # a full disk costs output, never the worker
                self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        os.replace(self._log, self._log + ".1")
        fresh = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(fresh, self._file, inheritable=False)
        os.close(fresh)
        self._size = 0
