"""A simulated cell: the machines of a live one on one ledger in virtual time, and its world.

Placer, healer and defragmenter are the live machines, stepped by `minds` on the kernel's ledger;
what monitor and agents would say is written by `stage`. One clock, no chance but that of the seeds.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from rackwright.core.accounts import Accounts
from rackwright.core.fleet import Fleet
from rackwright.core.policy.zero_spares import in_want
from rackwright.defragmenter.config import HEARS as DEFRAGMENTER_HEARS
from rackwright.defragmenter.machine import Defragmenter
from rackwright.host.hearing import Hears
from rackwright.host.steps import Step
from rackwright.placer.config import HEARS as PLACER_HEARS
from rackwright.placer.machine import Placer
from rackwright.sim.engine import Engine
from rackwright.sim.ledger import SimLedger
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.faults import Faults
from rackwright.simulator.minds import Member, Minds
from rackwright.simulator.policies import Setup
from rackwright.simulator.runs import Run
from rackwright.simulator.stage import Stage
from rackwright.simulator.timing import Timing
from rackwright.simulator.workload import SimJob
from rackwright.simulator.world import World
from rackwright.wire.entries.cell import LedgerTicked
from rackwright.wire.entries.job import JobPlaced, JobRejected
from rackwright.wire.entries.slice import DefragPlanned
from rackwright.wire.ids import CellName, JobId, NodeId, RackId
from rackwright.wire.nodes import RackSpec

NAME = CellName("simulated")
TICK_EVERY_S = 50.0
MOVABLE = frozenset({"topology.movable", "topology.pinned"})  # pinned: until it is told
AWAKE_S = 1.0  # the defragmenter looks at every job that is due within this time

Watcher = Callable[[Fleet, Step], None]


@dataclass(slots=True, kw_only=True)
class SimCell:
    """One run. Watchers see each commit, with the fleet before it; recorders from the first on.

    The defragmenter sleeps for `think_s` between its looks at what is blocked, instead of the five
    seconds that it would in a living cell, unless a plan of its own is in flight: its looks would
    be most of the work of a long run.
    """

    setup: Setup
    racks: tuple[RackSpec, ...]
    failures: FailureModel
    timing: Timing = Timing()
    seed: int = 1
    think_s: float = 300.0
    ended: Callable[[Run, str], None] = lambda _run, _state: None
    watchers: list[Watcher] = field(default_factory=list)
    recorders: list[Watcher] = field(default_factory=list)
    engine: Engine = field(init=False)
    ledger: SimLedger = field(init=False)
    stage: Stage = field(init=False)
    world: World = field(init=False)
    faults: Faults = field(init=False)
    accounts: Accounts = field(default_factory=Accounts)
    minds: Minds = field(init=False)
    submitted: int = 0
    done: int = 0
    exhausted: bool = False
    rejected: list[JobId] = field(default_factory=list)
    _jobs: Iterator[SimJob] = field(init=False)
    _front: deque[SimJob] = field(default_factory=deque)
    _ahead: JobId | None = None
    _thinker: Member | None = None

    def begin(self, jobs: Iterable[SimJob]) -> None:
        """Define the cell, start its machines, and let jobs come at their times."""
        self._make(Engine(self.seed), Fleet())
        self.ledger.create(self.setup.policy(max(len(rack.nodes) for rack in self.racks)))
        self.stage.define(self.racks)
        self._enter()
        self.engine.run(self.engine.now)
        self.faults.begin()
        self._jobs = iter(jobs)
        self._next_job(self.engine.now)
        self._tick_on()

    def take_over(self, fleet: Fleet) -> None:
        """Start the machines on a fleet that is there already; whoever asks brings its jobs to life
        before time runs on."""
        self._make(Engine(self.seed, start=fleet.time), fleet)
        self._enter()
        self._jobs = iter(())
        self._tick_on()

    def _make(self, engine: Engine, fleet: Fleet) -> None:
        gpus = max(rack.gpus_per_node for rack in self.racks)
        self.engine = engine
        self.ledger = SimLedger(engine=engine, cell=NAME, fleet=fleet)
        self.stage = Stage(engine=engine, ledger=self.ledger, gpus_per_node=gpus)
        self.ledger.observers += self.recorders

    def _enter(self) -> None:
        self.accounts.begin(self.ledger.fleet)
        self.world = World(
            stage=self.stage,
            timing=self.timing,
            accounts=self.accounts,
            ended=self._ended,
            topology=self.setup.topology,
        )
        self.faults = Faults(stage=self.stage, world=self.world, model=self.failures)
        self.world.goes_on = self.faults.job_goes_on
        self.ledger.observers.append(self._folded)
        self.minds = self.stage.minds = Minds(engine=self.engine, ledger=self.ledger)
        self.minds.join(Placer(), PLACER_HEARS, "p")
        self.minds.join(self.setup.healer(), Hears(), "s")
        if self.setup.defrag:
            self._thinker = self.minds.join(Defragmenter(), DEFRAGMENTER_HEARS, "d")

    def _tick_on(self) -> None:
        self.engine.later(TICK_EVERY_S, self._tick)
        if self._thinker is not None:
            self.engine.later(AWAKE_S, self._rest, self._thinker)

    def _folded(self, before: Fleet, step: Step) -> None:
        after = step.folding.fleet
        if step.commit.type == LedgerTicked.TYPE and not after.touched_racks:
            return  # time alone: counted with the next thing that happens
        self.accounts.take(before, after)
        self.world.folded(before, step)
        for watch in self.watchers:
            watch(before, step)
        if self._ahead is not None or self._front:
            self._let_in(step)
        if step.commit.type == JobRejected.TYPE:
            self._rejected(step)

    # Arrivals

    def _next_job(self, start: float) -> None:
        job = next(self._jobs, None)
        if job is None:
            self.exhausted = True
            return
        self.engine.at(start + job.submit_s, self._arrive, job, start)

    def _arrive(self, job: SimJob, start: float) -> None:
        self.submitted += 1
        if self.setup.in_order:
            self.world.runs[job.id] = Run(job=job, submitted=self.engine.now)
            self._front.append(job)
            self._open()
        else:
            self.world.submit(job)
        self._next_job(start)

    def _open(self) -> None:
        """Show the cell the next job, if the one before has its nodes."""
        if self._ahead is None and self._front:
            job = self._front.popleft()
            self._ahead = job.id
            self.world.submit(replace(job, priority=50))

    def _let_in(self, step: Step) -> None:
        if self._ahead is None:
            return
        for entry in step.commit.entries:
            match entry:
                case JobPlaced(job=name) | DefragPlanned(job=name) | JobRejected(job=name):
                    self._ahead = None if name == self._ahead else self._ahead
                case _:
                    pass
        if self._ahead is None:
            self.engine.later(0.0, self._open)

    def _rejected(self, step: Step) -> None:
        for entry in step.commit.entries:
            if isinstance(entry, JobRejected):
                self.rejected.append(entry.job)
                run = self.world.runs.pop(entry.job, None)
                if run is not None:
                    self._ended(run, "rejected")

    def _ended(self, run: Run, state: str) -> None:
        self.done += 1
        self.ended(run, state)

    # Time

    def _tick(self) -> None:
        self.stage.tick()
        self.engine.later(TICK_EVERY_S, self._tick)

    def _think(self, thinker: Member) -> None:
        """Let the defragmenter look at what is blocked, if anything is."""
        fleet = self.ledger.fleet
        blocked = (fleet.jobs[name].blocked for name in fleet.queued)
        blocks = any(one is not None and one.code in MOVABLE for one in blocked)
        if fleet.plans or blocks or any(in_want(fleet, self.engine.now)):
            self.world.tell_checkpoints()
            self.minds.resume(thinker)
            self.engine.later(AWAKE_S, self._rest, thinker)
        else:
            self.engine.later(self.think_s, self._think, thinker)

    def _rest(self, thinker: Member) -> None:
        if self.ledger.fleet.plans:
            self.engine.later(AWAKE_S, self._rest, thinker)
            return
        self.minds.pause(thinker)
        self.engine.later(self.think_s, self._think, thinker)

    def run(self, until: float) -> None:
        """Let time run to that moment of the run (seconds from its beginning)."""
        self.engine.run(until)


def plain_racks(racks: int, nodes: int, gpus: int) -> tuple[RackSpec, ...]:
    """Racks that are all alike, eight to a block."""
    return tuple(
        RackSpec(
            rack=RackId(f"r{number:04d}"),
            path=(f"b{number // 8:03d}",),
            nodes=tuple(NodeId(f"r{number:04d}-n{place:02d}") for place in range(nodes)),
            gpus_per_node=gpus,
        )
        for number in range(racks)
    )
