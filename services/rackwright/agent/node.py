"""One node: its session, its lease, its workers; obeys its assignment and reports.

It decides nothing. What it must do comes from `obey.orders`; what it can see of its workers goes
into its status. Several nodes of one process share the bus and the watches, not their state.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from rackwright.agent import membership, obey
from rackwright.agent.backend import Backend
from rackwright.agent.dressing import membership_of, signal_number, slice_of, worker_spec
from rackwright.agent.files import replace_file
from rackwright.agent.hold import Hold
from rackwright.agent.hooks import HookCall, HookKind, run_hook
from rackwright.agent.lease import now_ns
from rackwright.agent.progress import Progress, ProgressReader
from rackwright.agent.records import WorkerFiles, WorkerRecord
from rackwright.agent.refusals import Refused
from rackwright.agent.said import Who, other_fault, worker_status
from rackwright.wire.ids import CellName, LedgerId, SessionId, WorkerId, parse_worker
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Fault, NodeStatus, SignalKind, WorkerStatus
from rackwright.wire.values import AssignmentLine, JobValue, RackAssignments, StopLine

DYING_NS = 5_000_000_000  # a worker that lives on so long after its lease was told to

log = structlog.get_logger()


class NodeAgent:
    """The node `who`. `say` is called when its status has changed, `tell` with each fault.

    `job_of(job)` gives the newest value of a job, None while it is not known yet. `hooks` is the
    directory of the site's hooks, `root` the node's own directory (None: nothing is kept).
    """

    def __init__(
        self,
        *,
        cell: CellName,
        who: Who,
        hardware: Hardware,
        job_of: Callable[[str], JobValue | None],
        say: Callable[[], None],
        tell: Callable[[Fault], None],
        root: Path | None = None,
        hooks: Path | None = None,
    ) -> None:
        self.who = who
        self.hold = Hold(session=who.session)
        self.silent = False
        self._cell = cell
        self._hardware = hardware
        self._job_of = job_of
        self._say = say
        self._tell = tell
        self._root = root
        self._hooks = hooks
        self._backend: Backend | None = None
        self._files: Callable[[str], WorkerFiles] | None = None
        self._save: Callable[[str], None] | None = None
        self._reader: ProgressReader | None = None
        self._progress: dict[str, Progress] = {}
        self._value: RackAssignments | None = None
        self._seen = self._load_seen()
        self._stopping: dict[WorkerId, asyncio.TimerHandle | None] = {}
        self._noticed: dict[WorkerId, float] = {}
        self._spent: dict[WorkerId, WorkerRecord] = {}
        self._membership: dict[str, int] = {}
        self._starting: dict[WorkerId, asyncio.Task[None]] = {}
        self._refused: dict[WorkerId, type[Refused]] = {}
        self._n = 0

    def attach(
        self,
        backend: Backend,
        files: Callable[[str], WorkerFiles] | None,
        save: Callable[[str], None] | None = None,
    ) -> None:
        """Give it its workers. `save` makes a pretended worker keep its work on notice."""
        self._backend = backend
        self._files = files
        self._save = save
        self._say()

    def read_progress_with(self, reader: ProgressReader) -> None:
        """Follow the reports of real workers."""
        self._reader = reader

    def named(self) -> set[WorkerId]:
        """Workers that the newest assignment or this node itself speaks of."""
        found = {WorkerId(worker) for worker in self.workers.records}
        mine = self._value.nodes.get(self.who.node) if self._value is not None else None
        if mine is not None:
            found |= {line.worker for line in mine.run} | {stop.worker for stop in mine.stop}
        return found

    @property
    def workers(self) -> Backend:
        """Its workers. Raises RuntimeError before `attach`."""
        if self._backend is None:
            raise RuntimeError(f"node {self.who.node} has no workers attached")
        return self._backend

    def status(self) -> NodeStatus:
        """What the node says of itself now."""
        self._n += 1
        told: list[WorkerStatus] = [
            worker_status(record, self._progress.get(worker))
            for worker, record in sorted(self.workers.records.items())
        ]
        told += [worker_status(record, None) for _, record in sorted(self._spent.items())]
        return NodeStatus(
            node=self.who.node,
            rack=self.who.rack,
            session=self.who.session,
            boot=self.who.boot,
            n=self._n,
            obeyed=self._seen.seq,
            hardware=self._hardware,
            workers=tuple(told),
        )

    def renew_if_lapsed(self) -> bool:
        """Take a new session when the lease of this one has run out; True when it did.

        The old session may have been fenced in the ledger, which is for good. Workers that stop
        with the lease are waited for, so that the join does not list what is being killed.
        """
        lapsed_ns = now_ns() - self.hold.until_ns
        if self.hold.until_ns == 0 or lapsed_ns < 0 or self.silent:
            return False
        dying = any(not record.ended for record in self.workers.records.values())
        if dying and lapsed_ns < DYING_NS:
            return False
        session = SessionId(f"s{secrets.token_hex(6)}")
        log.warning("session.renewed", node=self.who.node, old=self.who.session, new=session)
        self.who = replace(self.who, session=session)
        self.hold = Hold(session=session)
        self._value = None
        self._say()
        return True

    def echoed(self, session: Any, n: int, lease_s: float, head: int) -> None:
        """A monitor has heard us: the lease runs on, and what waited for it is tried again."""
        had = self.workers.lease_ns > now_ns()
        if not self.silent and self.hold.echoed(session, n, lease_s, head):
            self.workers.feed(self.hold.until_ns)
            if not had:
                self.obey_again()

    def on_record(self, record: WorkerRecord) -> None:
        """A worker has changed."""
        if record.ended:
            worker = WorkerId(record.worker_id)
            timer = self._stopping.pop(worker, None)
            if timer is not None:
                timer.cancel()
            self._noticed.pop(worker, None)
            if self._reader is not None:
                self._reader.release(record.worker_id)
            if record.reaped:
                self._epilog(worker)
        self._say()
        self.obey_again()

    def on_progress(self, worker: str, progress: Progress) -> None:
        """A worker has told how far it is."""
        self._progress[worker] = progress
        noticed = self._noticed.get(WorkerId(worker))
        saved = progress.checkpoint_at
        if noticed is not None and saved is not None and saved >= noticed:
            self._end(WorkerId(worker))
        self._say()

    def assigned(self, value: RackAssignments) -> None:
        """A new value of our rack."""
        if obey.accept(self._seen, self.who.session, self.who.node, value) is None:
            return
        self._value = value
        newer = obey.Seen(ledger=value.ledger, seq=value.seq)
        if newer != self._seen:
            self._seen = newer
            self._store_seen()
        self.obey_again()

    def obey_again(self) -> None:
        """Do what is left to do; called again whenever something it may wait for has come."""
        value = self._value
        if value is None:
            return
        mine = value.nodes[self.who.node]
        named = {line.worker for line in mine.run} | {stop.worker for stop in mine.stop}
        self._spent = {w: r for w, r in self._spent.items() if w in named}
        known: dict[str, WorkerRecord] = dict(self.workers.records)
        known |= {str(worker): record for worker, record in self._spent.items()}
        for order in obey.orders(mine, known, frozenset(self._stopping)):
            self._do(order)

    def _do(self, order: obey.Order) -> None:
        try:
            match order:
                case obey.Prepare(line=line):
                    self._prepare(line)
                case obey.Go(worker=worker):
                    self._start(worker)
                case obey.Stop(line=line):
                    self._stop(line)
                case obey.GoOn(worker=worker):
                    self._go_on(worker)
                case obey.Spend(worker=worker):
                    self._spent[worker] = self.workers.spend(worker)
                    self._say()
                case obey.Forget(worker=worker):
                    self.workers.forget(worker)
                    self._progress.pop(worker, None)
                    self._membership.pop(worker, None)
                    self._say()
            self._refused.pop(_worker_of(order), None)
        except Refused as refusal:
            self._note_refusal(_worker_of(order), refusal)

    def _note_refusal(self, worker: WorkerId, refusal: Refused) -> None:
        """Say it once a worker and kind: orders are tried again whenever something changes."""
        kind = type(refusal)
        if self._refused.get(worker) is not kind:
            self._refused[worker] = kind
            log.info("order.refused", node=self.who.node, worker=worker, problem=str(refusal))

    def _prepare(self, line: AssignmentLine) -> None:
        job = self._job_of(line.job)
        if job is None or job.membership < line.membership:
            return
        files = self._files(line.worker) if self._files is not None else None
        worker = worker_spec(self._cell, self.who, self._hardware, line, job, files)
        self.workers.prepare(worker)
        if files is not None:
            membership.write_membership(files.membership, membership_of(job))
            if self._reader is not None:
                self._reader.follow(line.worker, files)
        self._membership[line.worker] = job.membership
        self._say()
        if line.open:
            self._start(line.worker)

    def _start(self, worker: WorkerId) -> None:
        """Run the prolog, if the site has one, then the command."""
        hook = self._hook(HookKind.PROLOG)
        if hook is None:
            self.workers.go(worker)
            return
        if worker not in self._starting:
            task = asyncio.get_running_loop().create_task(self._start_with(worker, hook))
            self._starting[worker] = task

    async def _start_with(self, worker: WorkerId, hook: Path) -> None:
        result = await run_hook(HookKind.PROLOG, hook, self._call(worker))
        del self._starting[worker]
        if not result.passed:
            text = f"prolog {result.outcome} {result.code}: {result.output}"
            self._tell(other_fault(self.who, SignalKind.HOOK_FAILED, time.time(), text))
            return
        try:
            self.workers.go(worker)
        except Refused as refusal:
            self._note_refusal(worker, refusal)

    def _stop(self, line: StopLine) -> None:
        """With notice: the worker is told, and ended when it has saved or the time is up."""
        if line.notice_s <= 0:
            self._stopping[line.worker] = None
            self.workers.stop(line.worker, line.grace_s)
            return
        self._noticed[line.worker] = time.time()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(line.notice_s, self._end, line.worker, line.grace_s)
        self._stopping[line.worker] = timer
        self._notify(line)

    def _notify(self, line: StopLine) -> None:
        job = self._job_of(parse_worker(line.worker)[0])
        if self._files is not None:
            now = time.time()
            notice = membership.Notice(reason="leaving", at=now, until=now + line.notice_s)
            membership.write_notice(self._files(line.worker).notice, notice)
        if job is not None and job.spec.notice_signal:
            self.workers.signal(line.worker, signal_number(job.spec.notice_signal))
        if self._save is not None:
            self._save(line.worker)
            self._end(line.worker)

    def _end(self, worker: WorkerId, grace_s: float = 0.0) -> None:
        self._noticed.pop(worker, None)
        timer = self._stopping.get(worker)
        if timer is not None:
            timer.cancel()
        self._stopping[worker] = None
        record = self.workers.records.get(worker)
        if record is not None and not record.ended:
            self.workers.stop(worker, grace_s)

    def _go_on(self, worker: WorkerId) -> None:
        """The plan was withdrawn before the worker was stopped."""
        timer = self._stopping.get(worker)
        if timer is None:
            return
        timer.cancel()
        del self._stopping[worker]
        self._noticed.pop(worker, None)
        if self._files is not None:
            membership.withdraw_notice(self._files(worker).notice)

    def job_changed(self, job: JobValue) -> None:
        """A job's value is new: tell its workers here who takes part, and go on preparing."""
        for worker, record in list(self.workers.records.items()):
            if record.ended or parse_worker(WorkerId(worker))[0] != job.job:
                continue
            if self._membership.get(worker, 0) < job.membership:
                self._membership[worker] = job.membership
                self._tell_members(worker, job)
        self.obey_again()

    def _tell_members(self, worker: str, job: JobValue) -> None:
        if self._files is not None:
            membership.write_membership(self._files(worker).membership, membership_of(job))
        if job.spec.membership_signal:
            self.workers.signal(worker, signal_number(job.spec.membership_signal))
        hook = self._hook(HookKind.MEMBERSHIP)
        if hook is not None:
            self._run_aside(HookKind.MEMBERSHIP, hook, WorkerId(worker))

    def _epilog(self, worker: WorkerId) -> None:
        hook = self._hook(HookKind.EPILOG)
        if hook is not None:
            self._run_aside(HookKind.EPILOG, hook, worker)

    def _run_aside(self, kind: HookKind, hook: Path, worker: WorkerId) -> None:
        async def run() -> None:
            result = await run_hook(kind, hook, self._call(worker))
            if not result.passed:
                text = f"{kind} {result.outcome} {result.code}: {result.output}"
                self._tell(other_fault(self.who, SignalKind.HOOK_FAILED, time.time(), text))

        key = WorkerId(f"{worker}#{kind}")
        task = asyncio.get_running_loop().create_task(run())
        self._starting[key] = task
        task.add_done_callback(lambda _: self._starting.pop(key, None))

    def _hook(self, kind: HookKind) -> Path | None:
        path = self._hooks / kind.value if self._hooks is not None else None
        return path if path is not None and path.exists() else None

    def _call(self, worker: WorkerId) -> HookCall:
        job, rank, incarnation = parse_worker(worker)
        value = self._job_of(job)
        nodes = tuple(slice_of(value, rank).nodes) if value is not None else ()
        return HookCall(job=job, rack=self.who.rack, nodes=nodes, incarnation=incarnation)

    def _load_seen(self) -> obey.Seen:
        if self._root is None or not (self._root / "obeyed").exists():
            return obey.Seen()
        raw = json.loads((self._root / "obeyed").read_text(encoding="utf-8"))
        return obey.Seen(ledger=LedgerId(raw["ledger"]), seq=raw["seq"])

    def _store_seen(self) -> None:
        if self._root is not None:
            text = json.dumps({"ledger": self._seen.ledger, "seq": self._seen.seq})
            replace_file(self._root / "obeyed", text)


def _worker_of(order: obey.Order) -> WorkerId:
    match order:
        case obey.Prepare(line=line) | obey.Stop(line=line):
            return line.worker
        case _:
            return order.worker
