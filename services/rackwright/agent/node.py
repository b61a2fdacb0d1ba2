"""One node: its session, its lease, its workers; obeys its assignment and reports.

It decides nothing. What it must do comes from `obey.orders`; what it can see of its workers goes
into its status. Several nodes of one process share the bus and the watches, not their state.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from rackwright.agent import membership, obey
from rackwright.agent.alone import Alone
from rackwright.agent.backend import Backend
from rackwright.agent.checks import Checks
from rackwright.agent.dressing import membership_of, signal_number, worker_spec
from rackwright.agent.files import disk_refuses, try_to_replace
from rackwright.agent.hold import Hold
from rackwright.agent.idle import IdleGpus
from rackwright.agent.leftovers import GpuMemory
from rackwright.agent.nvml import NodeReading
from rackwright.agent.progress import Progress, ProgressReader
from rackwright.agent.records import WorkerFiles, WorkerRecord
from rackwright.agent.refusals import DiskRefuses, HasEnded, Refused
from rackwright.agent.said import Who, other_fault, worker_status
from rackwright.agent.site import Site
from rackwright.agent.stops import Stops
from rackwright.agent.timing import LIVE, Timing
from rackwright.wire.ids import CellName, LedgerId, NodeId, WorkerId, parse_worker
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Fault, Heartbeat, NodeStatus, SignalKind, WorkerStatus
from rackwright.wire.values import AssignmentLine, JobValue, Neighbour, RackAssignments

REMIND_BEATS = 4  # heartbeats without any echo
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
        timing: Timing = LIVE,
        memory: GpuMemory | None = None,
    ) -> None:
        self.who = who
        self.hold = Hold(session=who.session)
        self.alone = Alone()
        self.neighbours: tuple[Neighbour, ...] = ()
        self.silent = False
        self._cell = cell
        self._hardware = hardware
        self._job_of = job_of
        self._say = say
        self._root = root
        self._timing = timing
        self._tell = tell
        self._site = Site(hooks, lambda: self.who, job_of, tell, timing, memory)
        self._checks = Checks(hooks, lambda: self.who, say)
        self._backend: Backend | None = None
        self._files: Callable[[str], WorkerFiles] | None = None
        self._stops: Stops | None = None
        self._reader: ProgressReader | None = None
        self._progress: dict[str, Progress] = {}
        self._value: RackAssignments | None = None
        self._seen = self._load_seen()
        self._spent: dict[WorkerId, WorkerRecord] = {}
        self._membership: dict[str, int] = {}
        self._untold: dict[str, JobValue] = {}
        self._refused: dict[WorkerId, type[Refused]] = {}
        self._idle = IdleGpus()
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
        self._stops = Stops(backend, files, save, self._timing, self._not_clean)
        self._say()

    def _not_clean(self, worker: WorkerId) -> None:
        """Something is left of a worker that should have been gone for long."""
        said = f"something is left of {worker}"
        self._tell(other_fault(self.who, SignalKind.KILL_FAILED, self._timing.wall(), said))

    def on_gpus(self, reading: NodeReading) -> None:
        """The driver was asked: what is told of it with the workers is whose GPUs stand idle."""
        if self._idle.look(reading, self._timing.wall()):
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

    @property
    def stops(self) -> Stops:
        """What was told to end. Raises RuntimeError before `attach`."""
        if self._stops is None:
            raise RuntimeError(f"node {self.who.node} has no workers attached")
        return self._stops

    def status(self) -> NodeStatus:
        """What the node says of itself now."""
        self._n += 1
        told: list[WorkerStatus] = [
            worker_status(record, self._progress.get(worker), self._idle.since)
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
            check=self._checks.result,
        )

    def renew_if_lapsed(self) -> bool:
        """Take a new session when the lease of this one has run out; True when it did.

        The old session may have been fenced in the ledger, which is for good. Workers that stop
        with the lease are waited for, so that the join does not list what is being killed.
        """
        lapsed_ns = self._timing.now_ns() - self.hold.until_ns
        if self.hold.until_ns == 0 or lapsed_ns < 0 or self.silent:
            return False
        dying = any(not record.ended for record in self.workers.records.values())
        if dying and lapsed_ns < DYING_NS:
            return False
        session = self._timing.session()
        log.warning("session.renewed", node=self.who.node, old=self.who.session, new=session)
        self.who = replace(self.who, session=session)
        self.hold = Hold(session=session, steady_ns=self.hold.steady_ns)
        self.alone.agree(None)
        self.neighbours = ()
        self._value = None
        self._checks.forget()
        self._say()
        return True

    def remind(self) -> None:
        """Say again what was said, now and then, while this session has never had an echo: a
        monitor may have taken its first status for one of an earlier session."""
        if self.hold.until_ns == 0 and self.hold.n % REMIND_BEATS == REMIND_BEATS - 1:
            self._say()

    def echoed(self, session: Any, n: int, lease_s: float, head: int) -> None:
        """A monitor has heard us: the lease runs on, and what waited for it is tried again."""
        if not self.silent and self.hold.echoed(session, n, lease_s, head):
            self._feed()

    def beat(self, now_ns: int) -> Heartbeat:
        """The next heartbeat, which goes out now."""
        who, hold = self.who, self.hold
        return Heartbeat(
            node=who.node,
            rack=who.rack,
            session=who.session,
            n=hold.sending(now_ns),
            head=hold.head,
            steady_s=hold.steady_s(now_ns),
        )

    def asks(self, now_ns: int) -> bool:
        """Has it lost the bus, and neither its lease nor those whom it may ask?"""
        lives = now_ns < self.hold.until_ns and not self.silent
        return lives and self.alone.terms is not None and self.hold.away(now_ns)

    def answered(self, nonce: str, witness: NodeId, *, away: bool) -> None:
        """A witness has told whether it has lost the bus too; enough of them carry the lease on."""
        if self.alone.answered(nonce, witness, away=away):
            lives = self._timing.now_ns() < self.hold.until_ns
            if lives and self.hold.carried(self.alone.until(self.hold)):
                self._feed()

    def _feed(self) -> None:
        """The lease has become longer."""
        had = self.workers.lease_ns > self._timing.now_ns()
        self.workers.feed(self.hold.until_ns)
        if not had:
            self.obey_again()

    def on_record(self, record: WorkerRecord) -> None:
        """A worker has changed."""
        if record.ended:
            worker = WorkerId(record.worker_id)
            self.stops.ended(worker)
            if self._reader is not None:
                self._reader.release(record.worker_id)
            if record.reaped:
                self.stops.clean(worker)
                self._site.after(worker, record.gpus)
            else:
                self.stops.expect(worker)
        self._say()
        self.obey_again()

    def on_progress(self, worker: str, progress: Progress) -> None:
        """A worker has told how far it is."""
        self._progress[worker] = progress
        self.stops.saved(WorkerId(worker), progress.checkpoint_at)
        self._say()

    def assigned(self, value: RackAssignments) -> None:
        """A new value of our rack."""
        if obey.accept(self._seen, self.who.session, self.who.node, value) is None:
            return
        self._value = value
        self.alone.agree(value.nodes[self.who.node].witnesses)
        self.neighbours = value.nodes[self.who.node].neighbours
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
        untold, self._untold = self._untold, {}
        for worker, job in untold.items():  # the disk was full then
            if worker in self.workers.records and not self.workers.records[worker].ended:
                self._tell_members(worker, job)
        for order in obey.orders(mine, known, self.stops.heard(mine.stop)):
            self._do(order)
        idle = not mine.run and all(record.ended for record in self.workers.records.values())
        self._checks.look(mine.check, idle)

    def _do(self, order: obey.Order) -> None:
        try:
            match order:
                case obey.Prepare(line=line):
                    self._prepare(line)
                case obey.Go(worker=worker):
                    self._go(worker)
                case obey.Stop(line=line):
                    self.stops.stop(line, self._job_of(parse_worker(line.worker)[0]))
                case obey.GoOn(worker=worker):
                    self.stops.go_on(worker)
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
        try:
            self.workers.prepare(worker)
        except HasEnded:
            # Of a history that a restored ledger does not have: it is given another number.
            self._spent[line.worker] = self.workers.spend(line.worker)
            self._say()
            raise
        if files is not None and self._reader is not None:
            self._reader.follow(line.worker, files)
        self._introduce(line.worker, job)
        self._say()
        if line.open:
            self._start(line.worker)

    def _introduce(self, worker: WorkerId, job: JobValue) -> None:
        """Tell a worker for the first time who takes part. Raises DiskRefuses."""
        if self._files is not None:
            try:
                membership.write_membership(self._files(worker).membership, membership_of(job))
            except OSError as error:
                raise DiskRefuses(worker, error) from error
        self._membership[worker] = job.membership

    def _start(self, worker: WorkerId) -> None:
        """Run the prolog, if the site has one, then the command."""

        def go() -> None:
            try:
                self.workers.go(worker)
            except Refused as refusal:
                self._note_refusal(worker, refusal)

        self._site.before(worker, go)

    def _go(self, worker: WorkerId) -> None:
        """Start one that was prepared before; if the disk was full then, tell it who takes part."""
        job = self._job_of(parse_worker(worker)[0])
        if worker not in self._membership and job is not None:
            self._introduce(worker, job)
        self._start(worker)

    def job_changed(self, job: JobValue) -> None:
        """A job's value is new: tell its workers here who takes part, and go on preparing."""
        for worker, record in list(self.workers.records.items()):
            if record.ended or parse_worker(WorkerId(worker))[0] != job.job:
                continue
            if self._membership.get(worker, 0) < job.membership:
                self._tell_members(worker, job)
        self.obey_again()

    def _tell_members(self, worker: str, job: JobValue) -> None:
        if self._files is not None:
            path = self._files(worker).membership
            try:
                membership.write_membership(path, membership_of(job))
            except OSError as error:
                disk_refuses(path, error)
                self._untold[worker] = job
                return
        self._membership[worker] = job.membership
        if job.spec.membership_signal:
            self.workers.signal(worker, signal_number(job.spec.membership_signal))
        self._site.changed(WorkerId(worker))

    def _load_seen(self) -> obey.Seen:
        if self._root is None or not (self._root / "obeyed").exists():
            return obey.Seen()
        raw = json.loads((self._root / "obeyed").read_text(encoding="utf-8"))
        return obey.Seen(ledger=LedgerId(raw["ledger"]), seq=raw["seq"])

    def _store_seen(self) -> None:
        if self._root is not None:
            text = json.dumps({"ledger": self._seen.ledger, "seq": self._seen.seq})
            try_to_replace(self._root / "obeyed", text)


def _worker_of(order: obey.Order) -> WorkerId:
    match order:
        case obey.Prepare(line=line) | obey.Stop(line=line):
            return line.worker
        case _:
            return order.worker
