"""The kernel of the simulator: machines on a shared fold, on virtual time."""

from typing import Any

from rackwright.core.jobs import JobState
from rackwright.health_monitor.config import HEARS as MONITOR_HEARS
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.placer.config import HEARS as PLACER_HEARS
from rackwright.placer.machine import Placer
from rackwright.sim import arrivals
from rackwright.sim.engine import Engine
from rackwright.sim.ledger import SimLedger
from rackwright.sim.process import Process
from rackwright.wire.ids import CellName, JobId, Owner, RackId, SessionId
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Body
from rackwright.wire.signals import NodeStatus, WorkerState, WorkerStatus
from rackwright.wire.wishes import Cancel, DefineRacks, Submit
from tests.support.fleets import hardware, rack_spec

RACK = rack_spec("r0", 2)


class Small:
    """Two nodes without agents, a placer and a health-monitor, nothing written down."""

    def __init__(self) -> None:
        self.engine = Engine(seed=1)
        self.ledger = SimLedger(engine=self.engine, cell=CellName("lab"))
        self.ledger.create()
        self.placer = Process(self.engine, self.ledger, Placer(), PLACER_HEARS, token="p")
        self.monitor = Process(
            self.engine, self.ledger, HealthMonitor(), MONITOR_HEARS, token="m", patience_s=0.0
        )
        self.processes: list[Process[Any]] = [self.placer, self.monitor]
        for process in self.processes:
            process.end_history()
        self.said = self.wished = 0

    def wish(self, wish: Body) -> None:
        self.wished += 1
        for process in self.processes:
            arrival = arrivals.wished(self.wished, Owner("ann"), self.engine.now, wish)
            process.hear(process.wishes, arrival)

    def say(self, place: int, *workers: WorkerStatus) -> None:
        self.said += 1
        name = RACK.nodes[place]
        status = NodeStatus(
            node=name,
            rack=RackId("r0"),
            session=SessionId(f"s{place}"),
            boot="b",
            n=self.said,
            hardware=hardware(name),
            workers=workers,
        )
        for process in self.processes:
            process.hear(process.status, arrivals.status(self.said, self.engine.now, status))

    def wait(self, seconds: float) -> None:
        self.engine.run(self.engine.now + seconds)


def test_a_job_is_queued_placed_started_and_finished_without_a_fold_of_its_own() -> None:
    cell = Small()
    types: list[str] = []
    cell.ledger.observers.append(lambda _before, step: types.append(step.commit.type))
    cell.wish(DefineRacks(racks=(RACK,)))
    cell.wait(1.0)
    for place in range(2):
        cell.say(place)
    cell.wait(1.0)
    cell.wish(Submit(job=JobId("a"), spec=JobSpec(name=JobId("a"), nodes=2)))
    cell.wait(1.0)
    job = cell.ledger.fleet.jobs[JobId("a")]
    assert job.state is JobState.PLACED
    for rank, state, code in ((0, WorkerState.RUNNING, None), (0, WorkerState.EXITED, 0)):
        for place in range(2):
            worker = job.worker(place)
            cell.say(place, WorkerStatus(worker=worker, state=state, ready=rank == 0, code=code))
        cell.wait(1.0)
    assert JobId("a") in cell.ledger.fleet.tombstones
    told = [kind for kind in types if kind not in {"ledger.ticked", "node.cleaning"}]
    assert told == [
        "rack.defined",
        "node.joined",
        "job.queued",
        "job.placed",
        "job.started",
        "job.finished",
    ]
    assert cell.placer.standing.fleet is cell.ledger.fleet, "one fold for everybody"
    assert cell.placer.count.refused == cell.placer.count.illegal == 0


def test_a_killed_process_says_nothing_and_a_paused_one_goes_on_later() -> None:
    cell = Small()
    cell.wait(1.0)
    cell.placer.pause()
    cell.wish(Cancel(job=JobId("b")))
    cell.wait(1.0)
    assert JobId("b") not in cell.ledger.fleet.tombstones
    cell.placer.resume()
    cell.wait(1.0)
    assert JobId("b") in cell.ledger.fleet.tombstones
    cell.placer.kill()
    cell.wish(Cancel(job=JobId("c")))
    cell.wait(1.0)
    assert JobId("c") not in cell.ledger.fleet.tombstones
