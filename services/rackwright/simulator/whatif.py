"""What if: the decisions of a recorded ledger made again from one sequence on, by another policy.

Jobs, wishes and what happened to nodes and racks come at the times at which they were recorded.
Both sides are simulated, the recorded settings too, so that what a simulation simplifies is the
same on both; what the record itself says is told beside them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.policy.cut import Cut, cut
from rackwright.core.policy.quota import gpus_of
from rackwright.host.steps import Step
from rackwright.simulator.cell import SimCell
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.policies import Setup
from rackwright.simulator.recorded import Recorded, Work, preempted, works
from rackwright.simulator.runs import Run
from rackwright.simulator.workload import SimJob
from rackwright.wire.entries.cell import PolicySet
from rackwright.wire.entries.job import JobCancelled, JobQueued
from rackwright.wire.entries.node import (
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeUnfit,
    Observation,
)
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import JobSpec
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import Cancel, Submit

OPERATOR = Owner("operator")
KEPT = ("slice.swapped", "slice.moved", "job.requeued", "defrag.planned", "preempted")
"""What is counted; `preempted` are jobs put off their nodes for others."""


@dataclass(slots=True, kw_only=True)
class Course:
    """What came of one side: how often what happened; of each job that waited at the beginning or
    came later its wait in seconds, at least (`open` ones wait still); jobs that have finished;
    `passed_over`: recorded entries that this course had no use for."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    waits: dict[JobId, float] = field(default_factory=dict)
    open: set[JobId] = field(default_factory=set)
    finished: int = 0
    work_gpu_h: float = 0.0
    passed_over: int = 0


def as_recorded(record: Recorded) -> Course:
    """What the ledger itself says."""
    made = Course(name="recorded", counts=Counter({name: record.counts[name] for name in KEPT}))
    came = {e.job: e.submitted_at for _, e in record.events if isinstance(e, JobQueued)}
    came |= {name: record.fleet.jobs[name].submitted_at for name in record.fleet.queued}
    for name, at in came.items():
        made.waits[name] = max(0.0, record.placed.get(name, record.end) - at)
        if name not in record.placed:
            made.open.add(name)
    made.finished = record.counts["job.finished"]
    return made


def again(record: Recorded, setup: Setup, policy: Policy, name: str) -> Course:
    """Decide anew from the recorded fleet on, to the time at which the record ends."""
    return _Again(record=record, setup=setup, course=Course(name=name)).run(policy)


@dataclass(slots=True, kw_only=True)
class _Again:
    record: Recorded
    setup: Setup
    course: Course
    cell: SimCell = field(init=False)
    _runs: dict[JobId, Run] = field(default_factory=dict)

    def run(self, policy: Policy) -> Course:
        fleet = self.record.fleet
        self.cell = cell = SimCell(
            setup=self.setup,
            racks=tuple(rack.spec for rack in fleet.racks.values()),
            failures=FailureModel(),
            watchers=[self._watch],
        )
        cell.ended = self._ended
        cell.take_over(fleet)
        floors = [one.floor for one in fleet.answers.values()]
        heard = [seq for one in fleet.answers.values() for seq in one.above]
        cell.stage.begin_wishes(count(max([0, *floors, *heard]) + 1))
        for rack in fleet.racks.values():
            for node in rack.nodes:
                cell.stage.workers[node.name] = {}
        if policy != fleet.policy:
            cell.stage.decide((PolicySet(policy=policy, by=OPERATOR),))
        for job in fleet.jobs.values():
            self._adopt(job)
        for name in fleet.leaving_of:
            cell.world.send_off(fleet, name)
        for at, entry in self.record.events:
            cell.engine.at(at, self._happens, entry)
        cell.run(self.record.end)
        return self._over()

    def _adopt(self, job: Job) -> None:
        """A job as it is: at work, about to start, or waiting."""
        cell, fleet = self.cell, self.record.fleet
        work = self.record.works.get(job.id, Work())
        run = self._run(job.id, job.spec, job.submitted_at, self.record.work_s(job))
        run.done_s = min(work.at(fleet.time), run.job.work_s)
        run.seen, run.first_up = job.membership, job.first_started_at
        if job.slices:
            run.first_placed = job.placed_at
            wounded = {wound.rank for wound in job.wounds}
            run.up = {
                rank: part.worker(job.id, rank)
                for part in job.slices
                for rank, made in enumerate(part.incarnations, part.first_rank)
                if made <= job.started and rank not in wounded
            }
            cell.world.adopt(fleet, run, job, at_work=works(job))

    def _run(self, name: JobId, spec: JobSpec, submitted: float, work_s: float) -> Run:
        fleet = self.record.fleet
        made = cut(spec, fleet.policy, fleet.topology)
        job = SimJob(
            id=name,
            submit_s=submitted,
            gpus=gpus_of(fleet, made) if isinstance(made, Cut) else 1,
            work_s=work_s,
            job_class=spec.job_class,
            checkpoint_s=spec.checkpoint.interval_s,
            saves_on_notice=spec.checkpoint.on_notice_s is not None,
            restart_s=spec.checkpoint.restart_s,
        )
        run = self.cell.world.runs[name] = Run(job=job, submitted=submitted)
        self._runs[name] = run
        return run

    def _happens(self, entry: Entry) -> None:
        """Something that was recorded comes again."""
        stage = self.cell.stage
        match entry:
            case JobQueued():
                self._run(entry.job, entry.spec, entry.submitted_at, self.record.work_s(entry))
                stage.wish(entry.owner, Submit(job=entry.job, spec=entry.spec))
            case JobCancelled():
                if entry.job in self.cell.ledger.fleet.jobs:
                    stage.wish(entry.by, Cancel(job=entry.job))
            case _:
                self._of_the_world(entry)

    def _of_the_world(self, entry: Entry) -> None:
        stage, world = self.cell.stage, self.cell.world
        before = stage.fleet.seq
        match entry:
            case NodeFailed(node=node):
                world.node_gone(node, silent=True)
            case NodeUnfit(node=node, fitness=Fitness.NONE):
                world.node_gone(node, silent=False)
            case NodeJoined(node=node):
                world.dead.discard(node)
                stage.workers[node] = {}
            case NodeRecovered(node=node):
                world.dead.discard(node)
            case _:
                pass
        if isinstance(entry, Observation):
            stage.observe([replace(entry, of=stage.fleet.node(entry.node).last)])
        else:
            stage.decide((entry,))
        self.course.passed_over += stage.fleet.seq == before

    def _watch(self, before: Fleet, step: Step) -> None:
        if not step.folding.void:
            for entry in step.commit.entries:
                self.course.counts[entry.TYPE] += 1
                self.course.counts["preempted"] += preempted(entry)

    def _ended(self, run: Run, state: str) -> None:
        self.course.finished += state == "finished"

    def _over(self) -> Course:
        course, fleet = self.course, self.record.fleet
        for name, run in self._runs.items():
            if name in fleet.jobs and name not in fleet.queued:
                continue
            placed = run.first_placed
            course.waits[name] = max(0.0, (placed or self.record.end) - run.submitted)
            if placed is None:
                course.open.add(name)
        course.work_gpu_h = self.cell.world.work_done() / 3600.0
        course.counts = Counter({name: course.counts[name] for name in KEPT})
        return course


def as_values(courses: Sequence[Course]) -> list[dict[str, Any]]:
    """The courses as plain values for JSON."""
    return [
        {
            "name": one.name,
            "counts": dict(one.counts),
            "finished": one.finished,
            "waits_s": dict(sorted(one.waits.items())),
            "waiting_still": sorted(one.open),
            "work_gpu_h": one.work_gpu_h,
            "passed_over": one.passed_over,
        }
        for one in courses
    ]
