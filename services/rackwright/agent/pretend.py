"""Workers that only pretend: for load, traces and cells of thousands of nodes on one machine.

They keep the protocol of real ones: held until their gate opens, ended for good, fenced when the
lease of their node runs out. A pretended job takes `pretend_s` seconds of running in all; with a
checkpoint interval it goes on from its last checkpoint, kept here as a shared file system would.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from rackwright.agent.progress import Progress
from rackwright.agent.records import WorkerRecord, WorkerSpec, WorkerState
from rackwright.agent.refusals import HasEnded, NoLease, UnknownWorker
from rackwright.agent.timing import LIVE, Alarm, Timing
from rackwright.wire.values import JobValue

NS = 1_000_000_000
SHORTEST_S = 0.05  # between two checkpoints of a worker


@dataclass(slots=True)
class Checkpoints:
    """Seconds of work saved, by job; shared by all pretended nodes of a process."""

    saved: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretence:
    """How long a worker runs and how often it saves, in seconds; None: never. `on_notice`: it also
    saves when it is told that it must go."""

    run_s: float
    interval_s: float | None
    on_notice: bool = False

    @classmethod
    def of(cls, value: JobValue | None) -> Self:
        """As the job's owner wished; of a job that nobody knows any more, the shortest."""
        if value is None:
            return cls(run_s=0.0, interval_s=None)
        spec = value.spec
        return cls(
            run_s=spec.pretend_s or 3600.0,
            interval_s=spec.checkpoint.interval_s,
            on_notice=spec.checkpoint.on_notice_s is not None,
        )


class PretendedWorkers:
    """A Backend without processes. `of(worker)` tells how long a worker runs.

    Rank 0 saves for its job, and tells of it by `on_progress` as a real worker's report would.
    """

    def __init__(
        self,
        on_change: Callable[[WorkerRecord], None],
        of: Callable[[str], Pretence],
        checkpoints: Checkpoints,
        on_progress: Callable[[str, Progress], None],
        timing: Timing = LIVE,
    ) -> None:
        self._timing = timing
        self._on_change = on_change
        self._of = of
        self._checkpoints = checkpoints
        self._on_progress = on_progress
        self._records: dict[str, WorkerRecord] = {}
        self._spent: set[str] = set()
        self._timers: dict[str, Alarm] = {}
        self._saves: dict[str, Alarm] = {}
        self._began: dict[str, float] = {}
        self._lease_ns = 0
        self._fence: Alarm | None = None

    @property
    def records(self) -> Mapping[str, WorkerRecord]:
        """The last record of each worker that is not forgotten."""
        return MappingProxyType(self._records)

    @property
    def lease_ns(self) -> int:
        """Until when the node may run workers."""
        return self._lease_ns

    def feed(self, until_ns: int) -> None:
        """Extend the lease."""
        self._lease_ns = max(self._lease_ns, until_ns)
        if self._fence is None and self._running():
            self._arm()

    def prepare(self, spec: WorkerSpec) -> WorkerRecord:
        """Hold a worker before its start. Raises HasEnded, NoLease."""
        known = self._records.get(spec.worker_id)
        if spec.worker_id in self._spent or (known is not None and known.ended):
            raise HasEnded(spec.worker_id)
        if known is not None:
            return known
        self._check_lease()
        record = WorkerRecord(
            worker_id=spec.worker_id,
            state=WorkerState.PREPARED,
            gpus=spec.gpus,
            at=self._timing.wall(),
        )
        self._records[spec.worker_id] = record
        return record

    def go(self, worker_id: str) -> None:
        """Pretend to run. Raises UnknownWorker, HasEnded, NoLease."""
        record = self._known(worker_id)
        if record.ended:
            raise HasEnded(worker_id)
        if record.state is WorkerState.RUNNING:
            return
        self._check_lease()
        plan = self._of(worker_id)
        left = max(0.0, plan.run_s - self._checkpoints.saved.get(_job(worker_id), 0.0))
        self._began[worker_id] = self._timing.now_ns() / NS
        self._timers[worker_id] = self._timing.later(left, self._finish, worker_id)
        self._put(replace(record, state=WorkerState.RUNNING, at=self._timing.wall()))
        self._save_later(worker_id, plan)
        if self._fence is None:
            self._arm()

    def stop(self, worker_id: str, grace_s: float) -> None:
        """End it at once; what was not saved is lost. Raises UnknownWorker."""
        if not self._known(worker_id).ended:
            self._end(worker_id, WorkerState.STOPPED, None)

    def save(self, worker_id: str) -> None:
        """It has been told that it must go: keep what has been done so far, if it does so then."""
        if worker_id in self._began and self._of(worker_id).on_notice:
            self._keep(worker_id)

    def signal(self, worker_id: str, number: int) -> None:
        """It takes no signals; of a notice it hears by `save`. Raises UnknownWorker."""
        self._known(worker_id)

    def forget(self, worker_id: str) -> None:
        """The id stays spent. Raises UnknownWorker."""
        self._known(worker_id)
        self._spent.add(worker_id)
        del self._records[worker_id]

    def spend(self, worker_id: str) -> WorkerRecord:
        """Use up an id that was never here."""
        self._spent.add(worker_id)
        return WorkerRecord(worker_id=worker_id, state=WorkerState.STOPPED, cause="never started")

    def close(self) -> None:
        """Nothing of it outlives its process."""
        for timer in (*self._timers.values(), *self._saves.values()):
            timer.cancel()
        if self._fence is not None:
            self._fence.cancel()

    def _known(self, worker_id: str) -> WorkerRecord:
        try:
            return self._records[worker_id]
        except KeyError:
            raise UnknownWorker(worker_id) from None

    def _check_lease(self) -> None:
        now = self._timing.now_ns()
        if now >= self._lease_ns:
            raise NoLease(self._lease_ns, now)

    def _running(self) -> list[str]:
        return [w for w, r in self._records.items() if r.state is WorkerState.RUNNING]

    def _arm(self) -> None:
        left = max(0.0, (self._lease_ns - self._timing.now_ns()) / NS)
        self._fence = self._timing.later(left, self._fenced)

    def _fenced(self) -> None:
        self._fence = None
        if self._timing.now_ns() >= self._lease_ns:
            for worker_id in self._running():
                self._end(worker_id, WorkerState.FENCED, None)
        elif self._running():
            self._arm()

    def _finish(self, worker_id: str) -> None:
        self._end(worker_id, WorkerState.EXITED, 0)

    def _end(self, worker_id: str, state: WorkerState, code: int | None) -> None:
        for timers in (self._timers, self._saves):
            timer = timers.pop(worker_id, None)
            if timer is not None:
                timer.cancel()
        self._began.pop(worker_id, None)
        self._put(replace(self._records[worker_id], state=state, code=code, at=self._timing.wall()))

    def _save_later(self, worker_id: str, plan: Pretence) -> None:
        """Only rank 0 writes checkpoints, so that a job's work is counted once."""
        if plan.interval_s is not None and worker_id.split("/")[1] == "0":
            pause = max(plan.interval_s, SHORTEST_S)
            self._saves[worker_id] = self._timing.later(pause, self._save_again, worker_id)

    def _save_again(self, worker_id: str) -> None:
        self._keep(worker_id)
        self._save_later(worker_id, self._of(worker_id))

    def _keep(self, worker_id: str) -> None:
        """What it has done since its start or its last checkpoint is safe."""
        if worker_id.split("/")[1] != "0":
            return
        now, job = self._timing.now_ns() / NS, _job(worker_id)
        done = now - self._began[worker_id]
        self._began[worker_id] = now
        self._checkpoints.saved[job] = self._checkpoints.saved.get(job, 0.0) + done
        self._on_progress(worker_id, Progress(ready=True, checkpoint_at=self._timing.wall()))

    def _put(self, record: WorkerRecord) -> None:
        self._records[record.worker_id] = record
        self._on_change(record)


def _job(worker_id: str) -> str:
    return worker_id.partition("/")[0]
