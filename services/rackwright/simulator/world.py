"""Jobs as they run: from the nodes that the ledger gives them to the end of their work.

Work is synchronous: it goes on while every rank has its process, at the speed of its placement, and
goes back to the last checkpoint when a rank loses its process (unless the survivors keep their
state, and then only as far as `Timing` says). Checkpoints are taken at each multiple of the job's
interval since it went on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rackwright.core.accounts import Accounts
from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, JobState, Slice
from rackwright.host.steps import Step
from rackwright.simulator.runs import Run, crossing, gated
from rackwright.simulator.speed import speed
from rackwright.simulator.stage import Stage
from rackwright.simulator.timing import Timing
from rackwright.simulator.workload import SimJob
from rackwright.wire.ids import JobId, NodeId, Owner, WorkerId
from rackwright.wire.jobs import TopologyNeed
from rackwright.wire.signals import WorkerState
from rackwright.wire.wishes import Submit

Ended = Callable[[Run, str], None]


@dataclass(slots=True, kw_only=True)
class World:
    """All jobs of a cell. `ended` hears of each that is over, with its last state."""

    stage: Stage
    timing: Timing
    accounts: Accounts
    ended: Ended
    goes_on: Callable[[Run], None] = lambda _: None
    topology: TopologyNeed = TopologyNeed.REQUIRED
    runs: dict[JobId, Run] = field(default_factory=dict)
    dead: set[NodeId] = field(default_factory=set)
    slow: dict[NodeId, float] = field(default_factory=dict)
    leaving: set[WorkerId] = field(default_factory=set)
    cross_rack: int = 0
    work_gpu_s: float = 0.0

    def submit(self, job: SimJob) -> None:
        """Its owner wishes for it."""
        spec = replace(job.spec(self.stage.gpus_per_node), topology=self.topology)
        if job.id not in self.runs:
            self.runs[job.id] = Run(job=job, submitted=self.stage.engine.now)
        self.stage.wish(Owner(job.owner), Submit(job=job.id, spec=spec))

    # The ledger

    def folded(self, before: Fleet, step: Step) -> None:
        """A commit: what it touched is looked at when all that happens at this moment has."""
        after = step.folding.fleet
        for name in sorted(after.touched_jobs):
            self._look(before, after, name)

    def _look(self, before: Fleet, after: Fleet, name: JobId) -> None:
        run = self.runs.get(name)
        if run is None:
            return
        self.send_off(after, name)
        job = after.jobs.get(name)
        if job is None:
            stone = after.tombstones.get(name)
            self._over(run, before, "" if stone is None else stone.state.value)
            return
        if job.state is JobState.PLACED and run.first_placed is None:
            run.first_placed = after.time
        off = not job.slices and bool(run.speed or run.up or run.starts)
        if job.membership != run.seen or off:
            run.seen = job.membership
            self._changed(after, run, job, before.jobs.get(name))

    def _over(self, run: Run, before: Fleet, state: str) -> None:
        self._stop(run, keep=True)
        old = before.jobs.get(run.job.id)
        if old is not None:
            fleet = self.stage.fleet
            self.stage.forget(
                (fleet.node_at(part.rack, place).name, part.worker(old.id, part.first_rank + at))
                for part in old.slices
                for at, place in enumerate(part.nodes)
                if part.worker(old.id, part.first_rank + at) not in fleet.leaving
            )
        del self.runs[run.job.id]
        self.ended(run, state)

    def _changed(self, fleet: Fleet, run: Run, job: Job, old: Job | None) -> None:
        """It has other nodes, or processes, than before."""
        if not job.slices:
            self._stop(run, keep=self._told(job, old))
            run.up.clear()
            return
        kept = self._kept(job, run)
        if len(kept) == job.ranks:  # a plan that was called off: everything runs as before
            run.up = kept
            if run.starts is not None:
                run.starts.cancel()
            return
        if job.plan is not None and old is not None and old.slices and not old.wounds:
            notice = self._notice(fleet, job)
            run.told = dict(run.up)
            self.stage.engine.later(notice, self._leave, run, job.membership)
        else:
            self._stop(run, keep=False)
        if not kept:
            run.up.clear()
        else:
            run.up = kept
        self._start_later(fleet, run, job, old, kept)

    def _told(self, job: Job, old: Job | None) -> bool:
        """Has it been asked to go, and does it save when asked?"""
        asked = old is not None and len(job.preempted) > len(old.preempted)
        return asked and job.spec.checkpoint.on_notice_s is not None

    def _notice(self, fleet: Fleet, job: Job) -> float:
        workers = fleet.leaving_of.get(job.id, ())
        racks = {fleet.leaving[worker].rack for worker in workers}
        told = [
            one.notice_s
            for number in racks
            for one in fleet.racks[number].leaving
            if one.worker in workers
        ]
        return max(told, default=0.0)

    def _leave(self, run: Run, membership: int) -> None:
        """The notice is over."""
        if run.seen == membership:
            run.told.clear()
            self._stop(run, keep=run.job.saves_on_notice, starts=False)

    @staticmethod
    def _kept(job: Job, run: Run) -> dict[int, WorkerId]:
        return {
            rank: worker
            for rank, worker in {**run.told, **run.up}.items()
            if job.has_rank(rank) and job.worker(rank) == worker
        }

    def adopt(self, fleet: Fleet, run: Run, job: Job, *, at_work: bool) -> None:
        """A job that had its nodes before this world began: it works, or its ranks are to start."""
        names = self.names(job)
        self.stage.run_workers(
            ((names[rank], worker) for rank, worker in run.up.items()), ready=True
        )
        if at_work:
            self._go_on(fleet, run, job)
        elif len(run.up) < job.ranks and not job.hurt:
            self._start_later(fleet, run, job, None, run.up)

    # Starts

    def _start_later(
        self, fleet: Fleet, run: Run, job: Job, old: Job | None, kept: dict[int, WorkerId]
    ) -> None:
        if run.starts is not None:
            run.starts.cancel()
        delay = self._delay(run, job, old, kept)
        engine, process_s = self.stage.engine, self.timing.process_s
        if delay > self.timing.first_start_s:
            run.starts = engine.later(process_s, self._prepare, run, job.membership, delay)
        else:
            run.starts = engine.later(delay, self._start, run, job.membership)

    def _prepare(self, run: Run, membership: int, delay: float) -> None:
        """Its new processes are there and read what they need."""
        new = self._startable(run, membership)
        if new is None:
            return
        left = max(0.0, delay - self.timing.process_s)
        if not new:
            run.starts = self.stage.engine.later(1.0, self._prepare, run, membership, delay)
            return
        self.stage.run_workers(((name, worker) for name, _, worker in new), ready=False)
        run.starts = self.stage.engine.later(left, self._start, run, membership)

    def _startable(self, run: Run, membership: int) -> list[tuple[NodeId, int, WorkerId]] | None:
        """Ranks to start; none while their gates are shut, None if they never will."""
        run.starts = None
        fleet = self.stage.fleet
        job = fleet.jobs.get(run.job.id)
        if job is None or job.membership != membership or not job.slices:
            return None
        new = self._new(fleet, run, job)
        if any(name in self.dead for name, _, _ in new):
            return None  # its fault is about to be told
        shut = {worker for _, rank, worker in new if gated(fleet, job, rank)}
        if shut:  # the others begin and wait for them, as live ones do
            self.stage.begin((name, one) for name, _, one in new if one not in shut)
        return [] if shut else new

    def _delay(self, run: Run, job: Job, old: Job | None, kept: dict[int, WorkerId]) -> float:
        timing = self.timing
        if not kept:
            return timing.first_start_s if run.first_up is None else run.job.restart_s
        reload = 0.0 if timing.keep else timing.reload_s
        moved = old is not None and job.move_count > old.move_count
        swapped = old is not None and job.swap_count > old.swap_count
        stall = timing.move_s if moved else timing.swap_s if swapped else timing.again_s
        return stall + reload

    def _start(self, run: Run, membership: int) -> None:
        """Its new ranks come up, as soon as what must end before has ended."""
        new = self._startable(run, membership)
        if new is None:
            return
        if not new:
            run.starts = self.stage.engine.later(1.0, self._start, run, membership)
            return
        for _, rank, worker in new:
            run.up[rank] = worker
        self.stage.run_workers(((name, worker) for name, _, worker in new), ready=True)
        fleet = self.stage.fleet
        job = fleet.jobs[run.job.id]
        if not job.hurt:
            self._go_on(fleet, run, job)

    def _new(self, fleet: Fleet, run: Run, job: Job) -> list[tuple[NodeId, int, WorkerId]]:
        found = []
        for part in job.slices:
            nodes = fleet.racks[part.rack].nodes
            for at, place in enumerate(part.nodes):
                rank = part.first_rank + at
                worker = part.worker(job.id, rank)
                if run.up.get(rank) != worker:
                    found.append((nodes[place].name, rank, worker))
        return found

    def _go_on(self, fleet: Fleet, run: Run, job: Job) -> None:
        now = self.stage.engine.now
        run.first_up = run.first_up if run.first_up is not None else now
        run.started = job.membership
        racks = [part.rack for part in job.slices for _ in part.nodes]
        run.racks = len(set(racks))
        run.slow = min((self.slow.get(name, 1.0) for name in self.names(job)), default=1.0)
        run.pace = speed(racks, run.job.communication)
        self.cross_rack += crossing(racks) if run.job.communication else 0
        self._run_at(run, run.pace * run.slow)
        self.goes_on(run)

    def _run_at(self, run: Run, pace: float) -> None:
        run.speed = pace
        run.since = self.stage.engine.now
        left = max(0.0, run.job.work_s - run.done_s)
        run.ends = self.stage.engine.later(left / run.speed, self._finish, run)

    def slow_down(self, name: NodeId, factor: float) -> None:
        """From now on this node is slower, and with it whatever runs on it."""
        self.slow[name] = factor
        for run in self.on(name):
            if run.speed:
                did = run.progress(self.stage.engine.now)
                self._worked(run, did)
                run.done_s += did
                if run.ends is not None:
                    run.ends.cancel()
                run.slow = min(run.slow, factor)
                self._run_at(run, run.pace * run.slow)

    def names(self, job: Job) -> list[NodeId]:
        """The nodes of a job, by rank."""
        fleet = self.stage.fleet
        return [fleet.node_at(part.rack, place).name for part in job.slices for place in part.nodes]

    def _finish(self, run: Run) -> None:
        run.ends = None
        self._worked(run, run.job.work_s - run.done_s)
        run.done_s = run.job.work_s
        run.speed = 0.0
        if run.told:
            return  # it is about to go, and has nothing left to do where it goes
        job = self.stage.fleet.jobs[run.job.id]
        self.stage.end_workers(
            zip(self.names(job), (job.worker(rank) for rank in job.rank_numbers()), strict=True),
            WorkerState.EXITED,
            0,
        )

    # Interruptions

    def _stop(self, run: Run, *, keep: bool, starts: bool = True) -> None:
        """It does not go on; unless it keeps what it did, it goes back to its last checkpoint.

        `starts`: what was about to start does not either.
        """
        now = self.stage.engine.now
        if run.ends is not None:
            run.ends.cancel()
        if starts and run.starts is not None:
            run.starts.cancel()
            run.starts = None
        run.ends = None
        if not run.speed:
            return
        did, before = run.progress(now), run.done_s
        if keep or self.timing.keep:
            run.done_s += did
        else:
            saved, at = run.saved(now)
            run.lost_s += (run.done_s + did) - saved
            run.done_s = saved
            if run.job.checkpoint_s is not None:
                self.accounts.saved(run.job.id, at)
        self._worked(run, run.done_s - before)
        run.interruptions += not keep
        run.speed = 0.0

    def _worked(self, run: Run, seconds: float) -> None:
        self.work_gpu_s += seconds * run.job.taken_gpus(self.stage.gpus_per_node)

    def work_done(self) -> float:
        """GPU-seconds of work at full speed that are done and not lost, what is unsaved included:
        an hour of a job that is slowed down by its placement counts less than an hour."""
        now, gpus = self.stage.engine.now, self.stage.gpus_per_node
        running = sum(one.progress(now) * one.job.taken_gpus(gpus) for one in self.runs.values())
        return self.work_gpu_s + running

    def stall(self, run: Run) -> None:
        """A rank of it is gone or hangs: the others wait."""
        self._stop(run, keep=False)

    def exit(self, run: Run, code: int) -> None:
        """Its own software fails on rank 0."""
        job = self.stage.fleet.jobs.get(run.job.id)
        if job is None or not job.slices or 0 not in run.up:
            return
        self._stop(run, keep=False)
        worker = run.up.pop(0)
        name = self.names(job)[0]
        self.stage.end_workers([(name, worker)], WorkerState.EXITED, code)

    def node_gone(self, name: NodeId, *, silent: bool) -> None:
        """A node has failed: work on it stands still. Silent: its processes say nothing more."""
        if silent:
            self.dead.add(name)
        for run in self.on(name):
            self.stall(run)

    def on(self, name: NodeId) -> list[Run]:
        """What runs on a node."""
        fleet = self.stage.fleet
        place = fleet.places[name]
        found = fleet.racks[place.rack].tenants_at(place.node)
        return [self.runs[one.job] for one in found if one.job in self.runs]

    # Workers that leave

    def send_off(self, fleet: Fleet, name: JobId) -> None:
        """Workers of the job that are to end do so, after their notice."""
        due: dict[float, list[tuple[NodeId, WorkerId]]] = {}
        for worker in fleet.leaving_of.get(name, ()):
            if worker in self.leaving:
                continue
            place = fleet.leaving[worker]
            rack = fleet.racks[place.rack]
            node = rack.nodes[place.node].name
            one = next(one for one in rack.leaving if one.worker == worker)
            if one.after or node in self.dead:
                continue  # it serves on, or its end is told by the monitor, with its lease
            self.leaving.add(worker)
            due.setdefault(one.notice_s, []).append((node, worker))
        for notice, workers in due.items():
            self.stage.engine.later(notice + self.timing.stop_s, self._left, workers)

    def _left(self, workers: list[tuple[NodeId, WorkerId]]) -> None:
        fleet = self.stage.fleet
        gone = []
        for name, worker in workers:
            self.leaving.discard(worker)
            if worker in fleet.leaving and name not in self.dead:
                gone.append((name, worker))
        self.stage.end_workers(
            [one for one in gone if one[1] in self.stage.workers[one[0]]],
            WorkerState.STOPPED,
            None,
        )
        self.stage.cleaned(gone)

    # Checkpoints

    def tell_checkpoints(self) -> None:
        """Whoever asks for the age of checkpoints is told the last of each running job."""
        now = self.stage.engine.now
        fleet = self.stage.fleet
        for name, run in self.runs.items():
            if not run.speed or run.job.checkpoint_s is None or 0 not in run.up:
                continue
            job = fleet.jobs[name]
            first: Slice = job.slices[0]
            node = fleet.node_at(first.rack, first.nodes[0]).name
            self.stage.saved(node, run.up[0], run.saved(now)[1])
