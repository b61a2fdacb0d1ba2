"""The workers of one node, as its agent starts, stops, finds again and forgets them.

Everything is in a directory of the node, so that an agent that starts again finds its workers. A
record is written atomically and not flushed: what a power loss could take back has ended by it.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import structlog

from rackwright.agent import kept_logs, lease, orphans, processes
from rackwright.agent.files import disk_refuses, try_to_replace
from rackwright.agent.launch import Launcher, launch, lay_out, tell
from rackwright.agent.records import (
    WorkerFiles,
    WorkerRecord,
    WorkerSpec,
    WorkerState,
    directory_name,
    unheard,
)
from rackwright.agent.refusals import (
    DiskRefuses,
    GpusBusy,
    HasEnded,
    NodeTaken,
    NoLease,
    UnknownWorker,
)

log = structlog.get_logger()
SAID = 4096  # bytes of a supervisor's last words that are looked at


def _last_line(path: Path) -> str:
    """What a supervisor said last before it ended, as Python says why it could not go on."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - SAID))
            return file.read().decode(errors="replace").strip().rpartition("\n")[2]
    except OSError:
        return ""


class WorkerStore:
    """Workers below `root`. `on_change` hears each new record, in the event loop.

    `cgroups`: where worker cgroups can be made (`cgroups.writable_root`), or None. `launcher`:
    starts supervisors faster, and may be shared by the nodes of one agent.
    """

    def __init__(
        self,
        root: Path,
        on_change: Callable[[WorkerRecord], None],
        *,
        cgroups: Path | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self.root = root.absolute()
        self._on_change = on_change
        self._cgroups = cgroups
        self._launch = launch if launcher is None else launcher.launch
        self._records: dict[str, WorkerRecord] = {}
        self._forgotten: set[str] = set()
        self._going: set[str] = set()
        self._watched: dict[str, int] = {}  # pidfd of each living supervisor
        self._cleaning: dict[str, orphans.Watch] = {}
        self._lock = -1
        self._events = -1
        self._heard = b""
        self._boot = processes.boot_id()
        self._lease_ns = 0

    def open(self) -> tuple[WorkerRecord, ...]:
        """Take the node, and find the workers of an earlier agent; returns those alive.

        Raises NodeTaken. What has died meanwhile is cleaned up and told through `on_change`.
        """
        self._loop = asyncio.get_running_loop()
        for name in ("workers", "gpus", "logs"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise NodeTaken(self.root) from None
        self._lease_ns = lease.read(str(self.root / "lease"))
        if not (self.root / "events").exists():
            os.mkfifo(self.root / "events", 0o600)
        self._events = os.open(self.root / "events", os.O_RDWR | os.O_NONBLOCK)
        self._loop.add_reader(self._events, self._hear)
        if (self.root / "ended").exists():
            self._forgotten = set((self.root / "ended").read_text(encoding="ascii").split())
        for directory in sorted((self.root / "workers").iterdir()):
            self._find(directory.name.replace(".", "/"))
        return tuple(r for r in self._records.values() if not r.ended)

    def close(self) -> None:
        """Let go of the node. Workers run on, as long as their lease does."""
        for worker_id in tuple(self._watched):
            self._unwatch(worker_id)
        for watch in self._cleaning.values():
            watch.close()
        self._loop.remove_reader(self._events)
        os.close(self._events)
        self._events = -1
        os.close(self._lock)

    @property
    def records(self) -> Mapping[str, WorkerRecord]:
        """The last record of each worker that is not forgotten."""
        return MappingProxyType(self._records)

    @property
    def lease_ns(self) -> int:
        """Until when the node may run workers, in ns of CLOCK_BOOTTIME; 0 without a lease."""
        return self._lease_ns

    def feed(self, until_ns: int) -> None:
        """Extend the lease of the node; a lease never becomes shorter."""
        if until_ns > self._lease_ns:
            try:
                lease.write(str(self.root / "lease"), until_ns)
            except OSError as error:  # what runs has its lease, and no longer one
                disk_refuses(self.root / "lease", error)
                return
            self._lease_ns = until_ns

    def files(self, worker_id: str) -> WorkerFiles:
        """Where a worker's files lie, whether it exists or not. Raises ValueError."""
        return WorkerFiles(directory=self.root / "workers" / directory_name(worker_id))

    def prepare(self, spec: WorkerSpec) -> WorkerRecord:
        """Start a supervisor, held before the command. Again for the same id changes nothing.

        Raises NoLease, HasEnded and DiskRefuses.
        """
        known = self._records.get(spec.worker_id)
        if spec.worker_id in self._forgotten or (known is not None and known.ended):
            raise HasEnded(spec.worker_id)
        if known is not None:
            return known
        self._check_lease()
        files = self.files(spec.worker_id)
        try:
            lay_out(files, spec, node=self.root, cgroup=self._cgroup(spec.worker_id))
            pid = self._launch(files)
        except OSError as error:
            shutil.rmtree(files.directory, ignore_errors=True)
            raise DiskRefuses(spec.worker_id, error) from error
        record = WorkerRecord(
            worker_id=spec.worker_id,
            state=WorkerState.PREPARED,
            supervisor=pid,
            supervisor_started=processes.start_time(pid),
            boot_id=self._boot,
            gpus=spec.gpus,
            at=time.time(),
        )
        self._records[spec.worker_id] = record
        self._watch(spec.worker_id, pid)
        return record

    def go(self, worker_id: str) -> None:
        """Start the command of a prepared worker; nothing if it runs already.

        Raises UnknownWorker, HasEnded, NoLease and GpusBusy.
        """
        record = self._known(worker_id)
        if record.ended:
            raise HasEnded(worker_id)
        if record.state is WorkerState.RUNNING or worker_id in self._going:
            return
        self._check_lease()
        for other in self._records.values():
            shared = frozenset(record.gpus) & frozenset(other.gpus)
            if shared and other.worker_id != worker_id and self._holds_gpus(other):
                raise GpusBusy(worker_id, other.worker_id, shared)
        self._going.add(worker_id)
        tell(self.files(worker_id), "go\n")

    def stop(self, worker_id: str, grace_s: float) -> None:
        """SIGTERM, and SIGKILL when the grace is over; 0 is SIGKILL at once. Raises UnknownWorker.

        A second stop may shorten the grace. A worker that has ended stays as it is.
        """
        if not self._known(worker_id).ended:
            tell(self.files(worker_id), f"stop {grace_s:.3f}\n")

    def signal(self, worker_id: str, number: int) -> None:
        """Send a signal to the worker's leader, if it runs. Raises UnknownWorker."""
        if not self._known(worker_id).ended:
            tell(self.files(worker_id), f"signal {number:d}\n")

    def forget(self, worker_id: str) -> None:
        """Remove the files of an ended and reaped worker but for its output; its id stays spent.

        Raises UnknownWorker, DiskRefuses; ValueError for a worker that lives or is not reaped.
        """
        record = self._known(worker_id)
        if not (record.ended and record.reaped):
            raise ValueError(f"worker {worker_id} is {record.state}")
        try:
            kept_logs.keep(self.files(worker_id), self.root / "logs")
        except OSError as error:
            raise DiskRefuses(worker_id, error) from error
        self._use_up(worker_id)
        del self._records[worker_id]
        shutil.rmtree(self.files(worker_id).directory)
        cgroup = self._cgroup(worker_id)
        if cgroup is not None:  # the kernel may have been too slow for whoever tried before
            with suppress(OSError):
                cgroup.rmdir()

    def spend(self, worker_id: str) -> WorkerRecord:
        """Use up the id of a worker that was never here, so that no old order starts it.

        Raises DiskRefuses.
        """
        if worker_id in self._records:
            return self._records[worker_id]
        if worker_id not in self._forgotten:
            self._use_up(worker_id)
        return WorkerRecord(worker_id=worker_id, state=WorkerState.STOPPED, cause="never started")

    def _use_up(self, worker_id: str) -> None:
        try:
            with open(self.root / "ended", "a", encoding="ascii") as file:
                file.write(worker_id + "\n")
        except OSError as error:
            raise DiskRefuses(worker_id, error) from error
        self._forgotten.add(worker_id)

    def _known(self, worker_id: str) -> WorkerRecord:
        try:
            return self._records[worker_id]
        except KeyError:
            raise UnknownWorker(worker_id) from None

    def _holds_gpus(self, record: WorkerRecord) -> bool:
        if record.ended:
            return not record.reaped
        return record.state is WorkerState.RUNNING or record.worker_id in self._going

    def _check_lease(self) -> None:
        now = lease.now_ns()
        if now >= self._lease_ns:
            raise NoLease(self._lease_ns, now)

    def _cgroup(self, worker_id: str) -> Path | None:
        if self._cgroups is None:
            return None
        # Nodes of other cells on this host may have workers of the same id.
        node = hashlib.blake2s(os.fsencode(self.root), digest_size=6).hexdigest()
        return self._cgroups / f"rackwright-{node}-{directory_name(worker_id)}"

    def _find(self, worker_id: str) -> None:
        """Adopt one worker of an earlier agent, or see to its end."""
        files = self.files(worker_id)
        record = unheard(self._read(worker_id))
        self._records[worker_id] = record
        if record.ended and record.reaped:
            return
        if record.boot_id not in {"", self._boot}:
            self._settle(record, WorkerState.EXITED, "reboot", reaped=True)
        elif not tell(files, "") or not (
            record.supervisor == 0
            or processes.is_same(record.supervisor, record.supervisor_started)
        ):
            self._clean(worker_id)
        elif record.supervisor == 0:  # its agent died while starting it: nobody knows its pid
            self._records[worker_id] = replace(record, state=WorkerState.STOPPED, reaped=False)
            tell(files, "stop 0\n")
        else:
            self._watch(worker_id, record.supervisor)

    def _read(self, worker_id: str) -> WorkerRecord:
        """The record on disk. One that cannot be read is of a worker whose end nobody saw."""
        try:
            return WorkerRecord.parse(self.files(worker_id).state.read_bytes())
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return WorkerRecord(worker_id=worker_id, state=WorkerState.PREPARED, reaped=False)

    def _watch(self, worker_id: str, pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._loop.call_soon(self._on_supervisor_gone, worker_id)
            return
        self._watched[worker_id] = fd
        self._loop.add_reader(fd, self._on_supervisor_gone, worker_id)

    def _unwatch(self, worker_id: str) -> None:
        fd = self._watched.pop(worker_id, None)
        if fd is not None:
            self._loop.remove_reader(fd)
            os.close(fd)

    def _on_supervisor_gone(self, worker_id: str) -> None:
        """Its end is normal behind a last record; else its worker must be cleaned up."""
        if self._events < 0:  # closed in between
            return
        self._unwatch(worker_id)
        if worker_id not in self._records:  # forgotten in between
            return
        with suppress(ChildProcessError):  # adopted: not our child
            os.waitpid(self._records[worker_id].supervisor, os.WNOHANG)
        self._hear()
        record = self._records.get(worker_id)
        if record is not None and not (record.ended and record.reaped):
            self._apply(self._read(worker_id))
            record = self._records[worker_id]
            if not (record.ended and record.reaped):
                said = _last_line(self.files(worker_id).directory / "supervisor.log")
                log.error("supervisor.lost", worker=worker_id, state=record.state.value, said=said)
                self._clean(worker_id)

    def _clean(self, worker_id: str) -> None:
        """End a worker without a supervisor. SIGKILL pending is an end; gone is reaped."""
        left = orphans.kill(self.files(worker_id).directory, self._cgroup(worker_id))
        record = self._records[worker_id]
        state = record.state if record.ended else WorkerState.EXITED
        self._cleaning.pop(worker_id, None)
        if left:
            again = lambda: self._clean(worker_id)  # noqa: E731
            self._cleaning[worker_id] = orphans.Watch(left, again)
        self._settle(record, state, record.cause or "supervisor lost", reaped=not left)

    def _settle(
        self, record: WorkerRecord, state: WorkerState, cause: str, *, reaped: bool
    ) -> None:
        """Write an end in place of a supervisor that cannot."""
        ended = replace(record, state=state, cause=cause, reaped=reaped, at=time.time())
        try_to_replace(self.files(record.worker_id).state, ended.line())
        self._apply(ended)

    def _hear(self) -> None:
        """Take the records that supervisors have sent."""
        try:
            self._heard += os.read(self._events, 65_536)
        except BlockingIOError:
            return
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            self._apply(WorkerRecord.parse(line))

    def _apply(self, record: WorkerRecord) -> None:
        """Take a record unless it says nothing new. An end is final."""
        known = self._records.get(record.worker_id)
        if known is None or known == record or (known.ended and not record.ended):
            return
        if known.ended and known.reaped:
            return
        self._records[record.worker_id] = record
        if record.state is not WorkerState.PREPARED:
            self._going.discard(record.worker_id)
        self._on_change(record)
