"""Safety properties of the world beside the ledger: which workers live, and where.

Whoever can see processes (the simulator, the crash tests, the demo) tells what begins and what
ends; the ledger's commits are compared with it. What is checked is in CHECKS.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import Folding
from rackwright.core.fold.seats import serving_on
from rackwright.wire.entries.job import JobFinished, JobStarted
from rackwright.wire.entries.node import NodeCleaning, NodeFailed, NodeJoined
from rackwright.wire.ids import JobId, NodeId, WorkerId, parse_worker
from rackwright.wire.message import Commit

CHECKS = (
    "no rank lives twice, but of a movable service that is moved new before old",
    "no GPU has two living workers",
    "no worker begins that has lived before",
    "no worker of a node lives when the node is declared fenced",
    "a worker that is recorded as ended does not live",
    "a job is started only when every rank of it has begun",
    "a job is finished only when every current rank of it has exited with 0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A worker that lives: the node and the GPUs it holds; `leaseless`: it outlives its lease."""

    worker: WorkerId
    node: NodeId
    gpus: tuple[int, ...]
    leaseless: bool = False


@dataclass(slots=True)
class Living:
    """Who lives. `begun` are all that ever did, `codes` the exit codes of those that exited,
    `staying` those that the ledger lets serve on until their successors do.

    `violations` are sentences; `starts` counts.
    """

    workers: dict[WorkerId, Life] = field(default_factory=dict)
    ranks: dict[tuple[JobId, int], WorkerId] = field(default_factory=dict)
    gpus: dict[tuple[NodeId, int], WorkerId] = field(default_factory=dict)
    by_node: dict[NodeId, set[WorkerId]] = field(default_factory=dict)
    begun: set[WorkerId] = field(default_factory=set)
    codes: dict[WorkerId, int] = field(default_factory=dict)
    staying: set[WorkerId] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    starts: int = 0

    def begin(self, life: Life) -> None:
        """It runs from now on."""
        self.starts += 1
        worker = life.worker
        job, rank, _ = parse_worker(worker)
        if worker in self.begun:
            self.violations.append(f"{worker} begins again, on {life.node}")
        other = self.ranks.get((job, rank))
        if other is not None and other not in self.staying:
            where = self.workers[other].node
            self.violations.append(f"{worker} begins on {life.node}, {other} lives on {where}")
        for gpu in life.gpus:
            tenant = self.gpus.get((life.node, gpu))
            if tenant is not None:
                self.violations.append(f"{worker} begins on GPU {gpu} of {tenant} on {life.node}")
            self.gpus[life.node, gpu] = worker
        self.begun.add(worker)
        self.ranks[job, rank] = worker
        self.workers[worker] = life
        self.by_node.setdefault(life.node, set()).add(worker)

    def end(self, worker: WorkerId, code: int | None = None) -> None:
        """It is gone; `code` if it exited by itself. Nothing happens if it does not live."""
        life = self.workers.pop(worker, None)
        if life is None:
            return
        if code is not None:
            self.codes[worker] = code
        job, rank, _ = parse_worker(worker)
        if self.ranks.get((job, rank)) == worker:
            del self.ranks[job, rank]
        for gpu in life.gpus:
            if self.gpus.get((life.node, gpu)) == worker:
                del self.gpus[life.node, gpu]
        self.by_node[life.node].discard(worker)

    def take(self, before: Fleet, commit: Commit[Any], folding: Folding) -> None:
        """A commit, with the fleet before it and what the fold made of it."""
        if folding.void:
            return
        for name in folding.fleet.touched_jobs:
            self.staying |= serving_on(folding.fleet, name)
        for entry in commit.entries:
            for what in self._entry(before, folding.fleet, entry):
                self.violations.append(f"at {folding.fleet.seq}: {what}")

    def _entry(self, before: Fleet, after: Fleet, entry: Any) -> Iterator[str]:
        match entry:
            case NodeFailed(fenced=True):
                for worker in sorted(self.by_node.get(entry.node, ())):
                    if not self.workers[worker].leaseless:
                        yield f"{entry.node} is declared fenced and {worker} lives on it"
            case NodeCleaning():
                for worker in entry.ended:
                    if worker in self.workers:
                        yield f"{worker} is recorded as ended and lives"
            case NodeJoined():
                yield from self._joined(before, entry)
            case JobStarted():
                yield from self._started(before, entry)
            case JobFinished():
                yield from self._finished(before, entry)
            case _:
                pass

    def _joined(self, before: Fleet, entry: NodeJoined) -> Iterator[str]:
        """Whom the node does not list as running does not live there."""
        if entry.session == before.node(entry.node).session:
            return
        for worker in sorted(self.by_node.get(entry.node, ())):
            if worker not in entry.running and worker in before.leaving:
                yield f"{entry.node} joins without {worker}, which lives on it"

    def _started(self, before: Fleet, entry: JobStarted) -> Iterator[str]:
        job = before.jobs.get(entry.job)
        if job is None:
            return  # queued and placed in the same commit cannot be started in it
        for rank in job.rank_numbers():
            if job.worker(rank) not in self.begun:
                yield f"{entry.job} is started and {job.worker(rank)} never began"

    def _finished(self, before: Fleet, entry: JobFinished) -> Iterator[str]:
        job = before.jobs.get(entry.job)
        if job is None:
            return
        for rank in job.rank_numbers():
            worker = job.worker(rank)
            if self.codes.get(worker) != 0:
                yield f"{entry.job} is finished and {worker} has not exited with 0"
