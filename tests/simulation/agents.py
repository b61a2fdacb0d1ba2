"""Nodes of the simulated cell: the real agent and its rules, on virtual time and pretended work.

What lives in the world is noted in `Living`, where two workers of one rank would be seen. The
supervisor of a worker outlives its agent, as in life; a reboot ends both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from rackwright.agent.limits import XidLimit
from rackwright.agent.node import NodeAgent
from rackwright.agent.pretend import Checkpoints, Pretence, PretendedWorkers
from rackwright.agent.progress import Progress
from rackwright.agent.records import OnLostLease, WorkerRecord, WorkerSpec, WorkerState
from rackwright.agent.said import Who, xid_fault
from rackwright.core.living import Life, Living
from rackwright.sim.engine import Engine
from rackwright.sim.paths import Pipe, WindyPath
from rackwright.wire.ids import CellName, NodeId, RackId, WorkerId
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Echo, Fault, Heartbeat
from rackwright.wire.values import JobValue, RackAssignments
from tests.simulation.node_timing import NodeTiming

FIRST_HEARTBEAT_S = 0.5
TELL_S = 0.01
REANNOUNCE_S = 20.0


@dataclass(slots=True, kw_only=True)
class Habits:
    """How long workers of a node take to die, and with what code they exit. Times in seconds.

    `stuck_until`: until then (true time) what is killed does not die, as in a wedged driver.
    """

    random: Random
    kill_s: float
    exit_code: Callable[[str], int]
    stuck_until: float = 0.0


class SimWorkers(PretendedWorkers):
    """Pretended workers that take a while to die, as processes do."""

    def __init__(
        self,
        node: SimNode,
        habits: Habits,
        timing: NodeTiming,
        of: Callable[[str], Pretence],
        checkpoints: Checkpoints,
    ) -> None:
        super().__init__(node.on_record, of, checkpoints, node.on_progress, timing)
        self._node = node
        self._habits = habits
        self._specs: dict[str, WorkerSpec] = {}
        self._dying: set[str] = set()

    def prepare(self, spec: WorkerSpec) -> WorkerRecord:
        """See Backend."""
        self._specs[spec.worker_id] = spec
        return super().prepare(spec)

    def go(self, worker_id: str) -> None:
        """See Backend."""
        before = self._records.get(worker_id)
        super().go(worker_id)
        if before is not None and before.state is WorkerState.PREPARED:
            self._node.living.begin(
                Life(
                    worker=WorkerId(worker_id),
                    node=self._node.name,
                    gpus=before.gpus,
                    leaseless=self._specs[worker_id].on_lost_lease is OnLostLease.RUN,
                )
            )

    def stop(self, worker_id: str, grace_s: float) -> None:
        """See Backend: the process goes on through its grace and until it is reaped."""
        record = self._known(worker_id)
        if record.state is not WorkerState.RUNNING:
            super().stop(worker_id, grace_s)
        else:
            self._kill(worker_id, WorkerState.STOPPED, grace_s)

    def power_off(self) -> None:
        """Everything is gone at once, and nobody is told."""
        self.close()
        for worker_id, record in self._records.items():
            if record.state is WorkerState.RUNNING:
                self._node.living.end(WorkerId(worker_id))

    def _fenced(self) -> None:
        self._fence = None
        running = [worker for worker in self._running() if worker not in self._dying]
        if self._timing.now_ns() < self._lease_ns:
            if running:
                self._arm()
            return
        for worker_id in running:
            if self._specs[worker_id].on_lost_lease is OnLostLease.STOP:
                self._kill(worker_id, WorkerState.FENCED, self._habits.kill_s, bound=True)

    def _kill(
        self, worker_id: str, state: WorkerState, within_s: float, *, bound: bool = False
    ) -> None:
        """It dies within so many seconds; `bound`: SIGKILL, which a wedged driver does not delay
        as far as user mode is concerned."""
        if worker_id in self._dying:
            return
        self._dying.add(worker_id)
        delay = self._habits.random.random() * within_s * 0.9
        if not bound:
            now = self._node.engine.now
            delay = max(delay, self._habits.stuck_until - now)
        self._timing.later(delay, self._died, worker_id, state)

    def _died(self, worker_id: str, state: WorkerState) -> None:
        record = self._records.get(worker_id)
        if self._node.workers is self and record is not None and not record.ended:
            self._end(worker_id, state, None)

    def _finish(self, worker_id: str) -> None:
        if worker_id not in self._dying:
            self._end(worker_id, WorkerState.EXITED, self._habits.exit_code(worker_id))

    def _end(self, worker_id: str, state: WorkerState, code: int | None) -> None:
        record = self._records[worker_id]
        if record.state is WorkerState.RUNNING:
            self._node.living.end(WorkerId(worker_id), code)
        self._dying.discard(worker_id)
        super()._end(worker_id, state, code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a node finds around it. `put_status`, `put_signal` store bytes; `beat` sends one, `ask`
    a question with its nonce to a witness."""

    cell: CellName
    job_of: Callable[[str], JobValue | None]
    assigned: Callable[[RackId], RackAssignments | None]
    put_status: Callable[[SimNode], None]
    put_signal: Callable[[SimNode, Fault], None]
    beat: Callable[[SimNode, Heartbeat], None]
    ask: Callable[[SimNode, NodeId, str], None]
    told: Callable[[str], None]


class SimNode:
    """One host with its agent, or without one while that is down."""

    def __init__(
        self,
        engine: Engine,
        rack: RackId,
        hardware: Hardware,
        *,
        name: NodeId,
        path: WindyPath,
        habits: Habits,
        outside: Outside,
        living: Living,
        checkpoints: Checkpoints,
        rate: float = 1.0,
    ) -> None:
        self.engine = engine
        self.rack = rack
        self.name = name
        self.path = path
        self.habits = habits
        self.living = living
        self.agent: NodeAgent | None = None
        self.up = True
        self.paused = False
        self._hardware = hardware
        self._outside = outside
        self._checkpoints = checkpoints
        self._timing = NodeTiming(engine, name, rate)
        self._boots = 1
        self._limit = XidLimit()
        self._heartbeat_s = FIRST_HEARTBEAT_S
        self._dirty = False
        self._said = 0
        self._waiting: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self.heard_by: str | None = None  # the only monitor that its heartbeats reach
        self.island = ""  # neighbours reach each other within one only
        self.lan = WindyPath(engine, path.weather, outside.told)
        self._asked = 0
        self.deaf = False  # what it says arrives, echoes to it do not
        self.watch: Pipe = path.pipe()
        self.workers = self._new_workers()
        self.start_agent()
        self._beat()
        self._remind()

    def _new_workers(self) -> SimWorkers:
        return SimWorkers(self, self.habits, self._timing, self._pretence, self._checkpoints)

    def _pretence(self, worker: str) -> Pretence:
        return Pretence.of(self._outside.job_of(worker.partition("/")[0]))

    # The agent

    def start_agent(self) -> None:
        """A new agent: a new session, the workers that it finds alive, the value of its rack."""
        who = Who(
            node=self.name,
            rack=self.rack,
            session=self._timing.session(),
            boot=f"boot-{self.name}-{self._boots}",
        )
        self.paused = False
        self.agent = NodeAgent(
            cell=self._outside.cell,
            who=who,
            hardware=self._hardware,
            job_of=self._outside.job_of,
            say=self.say,
            tell=lambda fault: self._outside.put_signal(self, fault),
            timing=self._timing,
        )
        self.agent.attach(self.workers, None, self.workers.save)
        self.look()

    def kill_agent(self) -> None:
        """Its workers go on as long as their lease does."""
        self.agent = None
        self._waiting.clear()

    def pause_agent(self) -> None:
        """SIGSTOP: what comes for it waits."""
        self.paused = True

    def resume_agent(self) -> None:
        """It goes on."""
        self.paused = False
        waiting, self._waiting = self._waiting, []
        for call, args in waiting:
            call(*args)

    def power_off(self) -> None:
        """The host is dead."""
        self.up = False
        self.agent = None
        self._waiting.clear()
        self.workers.power_off()

    def boot(self) -> None:
        """The host comes up: nothing of before lives, what was spent is still known on its disk."""
        if self.agent is not None:
            self.power_off()
        spent = self.workers._spent | set(self.workers.records)
        self._boots += 1
        self._timing.reboot()
        self.habits.stuck_until = 0.0
        self.workers = self._new_workers()
        self.workers._spent |= spent
        self._limit = XidLimit()
        self.up = True
        self.start_agent()

    # What it hears

    def _agent(self, call: Callable[..., None], *args: object) -> NodeAgent | None:
        """The agent, if it can handle something now; what comes for a paused one waits."""
        if self.paused and self.agent is not None:
            self._waiting.append((call, args))
            return None
        return self.agent

    def on_record(self, record: WorkerRecord) -> None:
        """A worker has changed."""
        agent = self._agent(self.on_record, record)
        if agent is not None:
            agent.on_record(record)

    def on_progress(self, worker: str, progress: Progress) -> None:
        """A worker has told how far it is."""
        agent = self._agent(self.on_progress, worker, progress)
        if agent is not None:
            agent.on_progress(worker, progress)

    def assigned(self, value: RackAssignments) -> None:
        """The value of the rack has changed."""
        agent = self._agent(self.assigned, value)
        if agent is not None:
            agent.assigned(value)

    def job_changed(self, value: JobValue) -> None:
        """The value of a job has changed."""
        agent = self._agent(self.job_changed, value)
        if agent is not None and any(self.name in part.nodes for part in value.slices):
            agent.job_changed(value)

    def echoed(self, echo: Echo) -> None:
        """An echo to the rack."""
        agent = self._agent(self.echoed, echo)
        if agent is None:
            return
        if echo.heartbeat_s > 0:
            self._heartbeat_s = echo.heartbeat_s
        for line in echo.lines:
            if line.node == self.name:
                agent.echoed(line.session, line.n, echo.lease_s, echo.head)

    def look(self) -> None:
        """Read the rack's value, as at a start and after a reconnect."""
        value = self._outside.assigned(self.rack)
        if value is not None:
            self.assigned(value)

    def kernel_says(self, line: bytes, source: str) -> None:
        """A line in its kernel log: within its limits it is told."""
        if self.agent is None or self.paused:
            return
        signal = self._limit.offer(line, source, self.engine.now)
        if signal is not None:
            fault = xid_fault(self.agent.who, signal, {}, self.engine.now)
            self._outside.put_signal(self, fault)

    # What it says

    def say(self) -> None:
        """Its status has changed: it is put a moment later, with all that changed meanwhile."""
        if not self._dirty:
            self._dirty = True
            self.engine.later(TELL_S, self._put_status)

    def _put_status(self) -> None:
        self._dirty = False
        if self.agent is not None and not self.paused:
            self._outside.put_status(self)
        elif self.paused:
            self._waiting.append((self.say, ()))

    def _beat(self) -> None:
        self.engine.later(self._heartbeat_s, self._beat)
        if self.agent is None or self.paused:
            return
        if self.agent.renew_if_lapsed():
            self._outside.told("session renewed")
        self.agent.remind()
        now = self._timing.now_ns()
        if self.agent.asks(now):
            for one in self.agent.neighbours:
                self._asked += 1
                nonce = f"{self._asked:032x}"
                self.agent.alone.ask(nonce, one.node, now)
                self._outside.ask(self, one.node, nonce)
        self._outside.beat(self, self.agent.beat(now))

    def asked(self, by: SimNode, nonce: str) -> None:
        """A neighbour asks whether the bus is away."""
        agent = self._agent(self.asked, by, nonce)
        if agent is not None and self.island == by.island:
            away = agent.hold.away(self._timing.now_ns())
            self.lan.toss(by.answered, self, nonce, away)

    def answered(self, witness: SimNode, nonce: str, away: bool) -> None:
        """A witness answers."""
        agent = self._agent(self.answered, witness, nonce, away)
        if agent is not None and self.island == witness.island:
            before = agent.hold.until_ns
            agent.answered(nonce, witness.name, away=away)
            if agent.hold.until_ns > before:
                self._outside.told("lease carried on")

    def _remind(self) -> None:
        """Now and then it looks again and says again what it said: a watch may have gone deaf."""
        self.engine.later(REANNOUNCE_S, self._remind)
        if self.agent is not None and not self.paused:
            self.say()
            self.look()
