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
FLUSH_S = 1.0  # for the last words to reach the disk
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
        self._queue: _queue.SimpleQueue[bytes | None] = _queue.SimpleQueue()
        self._records: list[bytes] = []
        self._queued = 0  # bytes ever queued and dropped: counted by the main thread
        self._dropped = 0
        self._written = 0  # bytes ever written, and the drops told: counted by the writer
        self._told = 0
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
            self._queue.put(data)
            self._queued += len(data)
            while self._queued - self._dropped - self._written > BACKLOG:
                self._drop_oldest()
        return True

    def record(self, record: bytes) -> None:
        """Replace the state file soon, and tell the agent."""
        self._records.append(record)
        self._queue.put(b"")

    def finish(self, record: bytes) -> None:
        """Write all that was queued, then replace the state file and tell the agent.

        Where the disk hangs the agent is told all the same: others wait for this end.
        """
        self._queue.put(None)
        if self._idle.acquire(timeout=FLUSH_S):
            self.write_record(record)
        else:
            self._tell(record)
            self._replace(record)

    def write_record(self, record: bytes) -> None:
        """Replace the state file now, and tell the agent."""
        self._replace(record)
        self._tell(record)

    def _replace(self, record: bytes) -> None:
        try:
            scratch = os.open(self._state + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(scratch, record)
            os.close(scratch)
            os.replace(self._state + ".new", self._state)
        except OSError as error:  # a full disk: the agent still hears it
            os.write(2, f"state not written: {error}\n".encode())

    def _tell(self, record: bytes) -> None:
        try:
            events = os.open(self._events, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no agent: the next one reads the state file
            return
        try:  # noqa: SIM105
            os.write(events, record)
        except BlockingIOError:
            pass  # an agent that does not read: it looks again when the supervisor ends
        os.close(events)

    def _drop_oldest(self) -> None:
        """The last words of a worker are worth more than its first."""
        try:
            self._dropped += len(self._queue.get_nowait() or b"")
        except _queue.Empty:  # the writer was faster
            return

    def _write_all(self) -> None:
        while (data := self._queue.get()) is not None:
            while self._records:
                self.write_record(self._records.pop(0))
            if self._told != self._dropped:
                gap, self._told = self._dropped - self._told, self._dropped
                self._append(b"\n[rackwright: %d bytes of output dropped]\n" % gap)
            self._append(data)
            self._written += len(data)
        while self._records:
            self.write_record(self._records.pop(0))
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
