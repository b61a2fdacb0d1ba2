"""A host as a small value, stepped by the real agent, its lease and a supervisor's fence rule.

A step opens the real objects in the state that the value says, lets one thing happen and reads
the state back. Each step is made once and remembered: a host is a finite automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

from rackwright.agent import lease, obey
from rackwright.agent.hold import Hold
from rackwright.agent.node import NodeAgent
from rackwright.agent.pretend import NS, Checkpoints, Pretence, PretendedWorkers
from rackwright.agent.records import WorkerRecord, WorkerSpec, WorkerState
from rackwright.agent.refusals import NoLease
from rackwright.agent.said import Who
from rackwright.agent.supervisor import Supervisor
from rackwright.wire.ids import CellName, LedgerId, NodeId, RackId, SessionId, WorkerId
from rackwright.wire.signals import ENDED, NodeStatus
from rackwright.wire.values import JobValue, RackAssignments, StopLine
from tests.simulation.fencing.sizes import Size
from tests.support.fleets import LEDGER, hardware

NOW = 1000  # ticks of the host's clock at every step: the value holds what is left of its times
LIVES, TOLD = -2, -1  # of a running worker; from 0 on: ticks since its supervisor has killed it
RACK = RackId("r0")


class Host(NamedTuple):
    """`lease`: ticks left by the file on disk; `granted`: an echo has come in this session.

    `seen`, `value`: what was obeyed. `told`, `said`: what this agent told to end and what it says
    never to have had; `spent`: ids used up on disk. `workers`: id, state, and how it is dying.
    """

    name: NodeId
    agent: bool
    session: str
    sessions: int
    boot: int
    lease: int
    granted: bool
    seen: int
    value: int
    told: frozenset[WorkerId]
    said: frozenset[WorkerId]
    spent: frozenset[str]
    workers: tuple[tuple[str, WorkerState, int], ...]

    @property
    def living(self) -> tuple[str, ...]:
        """Workers whose processes live."""
        return tuple(w for w, state, _ in self.workers if state is WorkerState.RUNNING)


class NoAlarm:
    """Nothing comes by itself: what time brings is a step of its own."""

    def cancel(self) -> None:
        """See agent.timing."""


class StillTime:
    """A clock that stands during a step."""

    def __init__(self, session: str) -> None:
        self.next_session = session

    def now_ns(self) -> int:
        """See agent.timing."""
        return NOW * NS

    def wall(self) -> float:
        """See agent.timing."""
        return float(NOW)

    def later(self, delay_s: float, call: Callable[..., object], *args: object) -> NoAlarm:
        """See agent.timing."""
        return NoAlarm()

    def session(self) -> SessionId:
        """See agent.timing."""
        return SessionId(self.next_session)


@contextmanager
def lease_in_memory() -> Iterator[None]:
    """Supervisors read their clock here, and the name of a lease file is the lease itself."""
    with patch.object(lease, "read", int), patch.object(lease, "now_ns", lambda: NOW * NS):
        yield


class Fence(Supervisor):
    """The rules of the real supervisor, without the process; the lease on disk is a number."""

    def __init__(self, lease_ns: int, *, leader: int, on_lost_lease: str) -> None:
        self.spec = {"lease": str(lease_ns), "on_lost_lease": on_lost_lease}
        self.leader = leader
        self.group = 0
        self.lease_ns = self.kill_at = self.killed_at = 0
        self.finished = False
        self.ended_as = ""

    def end(self, state: str, cause: str, grace_ns: int) -> None:
        """What it would do."""
        self.ended_as = state

    def lock_gpus(self) -> bool:
        """As far as this a start has come; it goes no further here."""
        return False


class Workers(PretendedWorkers):
    """Workers whose end takes as long as the search wants."""

    def __init__(self, host: Host, rig: Rig, *, leaseless: bool) -> None:
        forever = Pretence(run_s=1e9, interval_s=None)
        super().__init__(
            rig.on_record, lambda _: forever, Checkpoints(), lambda *_: None, rig.timing
        )
        self._lost = "run" if leaseless else "stop"
        self._lease_ns = (NOW + host.lease) * NS
        self._spent = set(host.spent)
        self.dying = {worker: how for worker, _, how in host.workers}
        self._records = {
            worker: WorkerRecord(worker_id=worker, state=state, reaped=True)
            for worker, state, _ in host.workers
        }

    def prepare(self, spec: WorkerSpec) -> WorkerRecord:
        """See Backend."""
        self.dying.setdefault(spec.worker_id, LIVES)
        return super().prepare(spec)

    def go(self, worker_id: str) -> None:
        """See Backend; its supervisor looks at the lease too."""
        if self._known(worker_id).state is WorkerState.PREPARED:
            fence = Fence(self._lease_ns, leader=0, on_lost_lease=self._lost)
            fence.start()
            if fence.ended_as == "fenced":
                raise NoLease(self._lease_ns, self._timing.now_ns())
        super().go(worker_id)

    def stop(self, worker_id: str, grace_s: float) -> None:
        """See Backend: it dies some time later."""
        if self._known(worker_id).state is not WorkerState.RUNNING:
            super().stop(worker_id, grace_s)
        elif self.dying[worker_id] == LIVES:
            self.dying[worker_id] = TOLD

    def fence(self) -> None:
        """Every supervisor looks at its timer, the agent alive or not."""
        for worker in self._running():
            fence = Fence(self._lease_ns, leader=1, on_lost_lease=self._lost)
            fence.on_time(self._timing.now_ns())
            if fence.ended_as and self.dying[worker] < 0:
                self.dying[worker] = 0

    def die(self, worker: str) -> None:
        """It is gone."""
        told = self.dying[worker] == TOLD
        self._end(worker, WorkerState.STOPPED if told else WorkerState.FENCED, None)

    def leave(self, worker: str) -> None:
        """It exits by itself."""
        self._end(worker, WorkerState.EXITED, 1)


class Rig:
    """The real objects of one host, for one step."""

    def __init__(self, host: Host, size: Size, values: Values) -> None:
        self.host = host
        self.values = values
        self.timing = StillTime(f"{host.name}-{host.sessions + 1}")
        self.agent: NodeAgent | None = None
        self.workers = Workers(host, self, leaseless=size.leaseless)
        self.job: JobValue | None = None
        if host.agent:
            self._open(SessionId(host.session))

    def on_record(self, record: WorkerRecord) -> None:
        """A worker has changed."""
        if self.agent is not None:
            self.agent.on_record(record)

    def start_agent(self) -> None:
        """A new agent: a new session; what was on disk is there."""
        self.host = self.host._replace(
            sessions=self.host.sessions + 1,
            session=self.timing.session(),
            granted=False,
            value=-1,
            told=frozenset(),
            said=frozenset(),
        )
        self._open(self.timing.session())

    def _open(self, session: SessionId) -> None:
        host = self.host
        who = Who(node=host.name, rack=RACK, session=session, boot=f"boot-{host.boot}")
        self.agent = agent = NodeAgent(
            cell=CellName("cell"),
            who=who,
            hardware=hardware(host.name),
            job_of=lambda _: self.job,
            say=lambda: None,
            tell=lambda _: None,
            timing=self.timing,
        )
        agent.attach(self.workers, None)
        until = (NOW + host.lease) * NS if host.granted else 0
        agent.hold = Hold(session=session, until_ns=until)
        agent._seen = obey.Seen(ledger=LedgerId(LEDGER), seq=host.seen)
        agent._spent = {w: WorkerRecord(worker_id=w, state=WorkerState.STOPPED) for w in host.said}
        agent.stops._told = {
            worker: StopLine(worker=worker, notice_s=0.0, grace_s=0.0) for worker in host.told
        }
        if host.value >= 0:
            agent._value, self.job = self.values.all[host.value]

    def read(self) -> Host:
        """The host as a value again."""
        agent, host, workers = self.agent, self.host, self.workers
        left = (workers.lease_ns // NS) - NOW
        kept = host._replace(
            agent=agent is not None,
            lease=left,
            spent=frozenset(workers._spent),
            workers=tuple(
                (worker, record.state, workers.dying[worker] if not record.ended else LIVES)
                for worker, record in sorted(workers.records.items())
            ),
        )
        if agent is None:
            return kept._replace(granted=False, value=-1, told=frozenset(), said=frozenset())
        renewed = agent.who.session != host.session
        return kept._replace(
            session=agent.who.session,
            sessions=host.sessions + renewed,
            granted=agent.hold.until_ns > 0,
            seen=agent._seen.seq,
            value=-1 if agent._value is None else self.values.number(agent._value),
            told=agent.stops.told,
            said=frozenset(agent._spent),
        )


class Values:
    """Each value of the rack that was ever made, with the job's value that goes with it."""

    def __init__(self) -> None:
        self.all: list[tuple[RackAssignments, JobValue | None]] = []
        self._numbers: dict[int, int] = {}

    def add(self, value: RackAssignments, job: JobValue | None) -> int:
        """Number it."""
        self._numbers[id(value)] = len(self.all)
        self.all.append((value, job))
        return len(self.all) - 1

    def number(self, value: RackAssignments) -> int:
        """The number it has."""
        return self._numbers[id(value)]


class Hosts:
    """Every host there was, by number, and every step."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.values = Values()
        self.all: list[Host] = []
        self._numbers: dict[Host, int] = {}
        self._steps: dict[tuple[int, str, object], int] = {}
        self.statuses: list[NodeStatus] = []
        self._status_numbers: dict[object, int] = {}
        self._status: dict[int, int | None] = {}
        self._ended: dict[int, frozenset[WorkerId]] = {}
        self._moments: dict[str, Callable[[Rig, object], None]] = {
            "tick": self._tick,
            "echo": self._echo,
            "late echo": self._late_echo,
            "value": self._value,
            "dies": lambda rig, worker: rig.workers.die(str(worker)),
            "exits": lambda rig, worker: rig.workers.leave(str(worker)),
            "renews": self._renew,
            "agent starts": lambda rig, _: rig.start_agent(),
            "agent crashes": self._crash,
            "reboots": self._reboot,
        }

    def number(self, host: Host) -> int:
        """The number it has from now on."""
        found = self._numbers.get(host)
        if found is None:
            self._numbers[host] = found = len(self.all)
            self.all.append(host)
        return found

    def step(self, number: int, moment: str, what: object = None) -> int:
        """One moment in the life of a host."""
        key = (number, moment, what)
        found = self._steps.get(key)
        if found is None:
            rig = Rig(self.all[number], self.size, self.values)
            self._moments[moment](rig, what)
            self._steps[key] = found = self.number(rig.read())
        return found

    def status(self, number: int) -> int | None:
        """What its agent says of it now, by its number in `statuses`."""
        if number not in self._status:
            agent = Rig(self.all[number], self.size, self.values).agent
            self._status[number] = None if agent is None else self._intern(agent.status())
        return self._status[number]

    def _intern(self, status: NodeStatus) -> int:
        key = (status.node, status.session, status.boot, status.workers)
        if key not in self._status_numbers:
            self._status_numbers[key] = len(self.statuses)
            self.statuses.append(status)
        return self._status_numbers[key]

    def ended(self, number: int) -> frozenset[WorkerId]:
        """Which workers its agent says have ended."""
        if number not in self._ended:
            said = self.status(number)
            workers = self.statuses[said].workers if said is not None else ()
            ended = frozenset(one.worker for one in workers if one.state in ENDED)
            self._ended[number] = ended
        return self._ended[number]

    def may_tick(self, number: int) -> bool:
        """No process outlives SIGKILL by more than K."""
        late = self.size.kill - 1
        return not any(how >= late for _, _, how in self.all[number].workers)

    def _tick(self, rig: Rig, _: object) -> None:
        """A second passes: less is left of the lease, and supervisors look at it."""
        workers = rig.workers
        workers.dying = {one: how + (how >= 0) for one, how in workers.dying.items()}
        floor = -6 if self.size.leaseless else 0
        left = max(rig.host.lease - 1, floor)
        workers._lease_ns = (NOW + left) * NS
        if rig.agent is not None and rig.agent.hold.until_ns:
            rig.agent.hold.until_ns = workers._lease_ns
        workers.fence()

    def _echo(self, rig: Rig, lease_s: object) -> None:
        """A heartbeat, and its echo at once."""
        self._late_echo(rig, (rig.host.session, 0, lease_s))

    def _late_echo(self, rig: Rig, echo: object) -> None:
        """The echo of a heartbeat that was sent `age` ticks ago."""
        assert isinstance(echo, tuple)
        session, age, lease_s = echo
        if rig.agent is not None:
            n = rig.agent.hold.sending((NOW - age) * NS)
            rig.agent.echoed(SessionId(session), n, lease_s, 0)

    def _value(self, rig: Rig, number: object) -> None:
        assert isinstance(number, int)
        if rig.agent is not None:
            value, rig.job = self.values.all[number]
            rig.agent.assigned(value)
            if rig.agent._value is None:
                rig.job = None

    def _renew(self, rig: Rig, _: object) -> None:
        if rig.agent is not None:
            rig.agent.renew_if_lapsed()

    def _crash(self, rig: Rig, _: object) -> None:
        """Its workers go on as long as their lease does."""
        rig.agent = None

    def _reboot(self, rig: Rig, _: object) -> None:
        """Nothing of before lives; what had a record on disk has ended by it."""
        rig.agent = None
        workers = rig.workers
        workers._lease_ns = NOW * NS
        workers._spent |= set(workers.records)
        workers._records = {}
        rig.host = rig.host._replace(boot=rig.host.boot + 1)
