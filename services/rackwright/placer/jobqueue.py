"""Queued jobs in order, grouped by shape: what holds for one job of a shape holds for all of them.

A shape that has been tried in vain is tried again only after something that could help it.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from types import MappingProxyType

from rackwright.core.jobs import Job
from rackwright.wire.ids import JobId, Owner, QueueName

Shape = tuple[QueueName, Hashable]
NOBODY: Mapping[Owner, float] = MappingProxyType({})
Order = tuple[int, int, float, JobId]
"""One owner's jobs: higher priority, then work taken off its nodes, then the earlier submit, then
the id. Between owners see `Candidates`."""


def order_of(job: Job) -> Order:
    """Where a job stands in the queue; a job sent back without blame is the head of its band."""
    head = 0 if job.requeues > job.retries else 1
    return (-job.spec.priority, head, job.submitted_at, job.id)


def shape_of(job: Job) -> Shape:
    """Everything that placement looks at; its queue first."""
    spec = job.spec
    return spec.queue, (
        spec.nodes,
        spec.gpus,
        spec.cpus,
        spec.memory_gb,
        spec.groups,
        spec.priority,
        spec.job_class,
        spec.slice_nodes,
        spec.slice_multiple,
        spec.uneven,
        spec.max_per_rack,
        spec.topology,
        tuple(sorted(spec.labels.items())),
        spec.same,
        spec.exclude_nodes,
        spec.parallel,
        spec.preemptible,
        spec.restartable,
        spec.movable,
        spec.checkpoint.where,
        spec.time_limit_s,
        job.pinned_by != "",
    )


def queue_of(shape: Shape) -> QueueName:
    """The queue of all jobs of this shape."""
    return shape[0]


@dataclass(slots=True)
class JobQueue:
    """`untried` shapes may fit; `later` are jobs in back-off, by the ledger time of its end.

    `groups` are the jobs by shape and owner: in each the order does not change while they wait,
    only between them it does, as owners use more or less of the cell.
    `short` are running jobs that lack slices and were not tried in vain since something could help;
    `short_in_vain` those that were.
    """

    groups: dict[Shape, dict[Owner, list[Order]]] = field(default_factory=dict)
    where: dict[JobId, tuple[Shape, Owner, Order]] = field(default_factory=dict)
    untried: dict[Shape, None] = field(default_factory=dict)
    stuck: dict[Shape, None] = field(default_factory=dict)
    later: list[tuple[float, JobId]] = field(default_factory=list)
    short: set[JobId] = field(default_factory=set)
    short_in_vain: set[JobId] = field(default_factory=set)

    def put(self, job: Job, now: float) -> None:
        """A job is queued, or what is known of it has changed."""
        self.drop(job.id)
        if job.not_before > now:
            heappush(self.later, (job.not_before, job.id))
            return
        shape, order = shape_of(job), order_of(job)
        insort(self.groups.setdefault(shape, {}).setdefault(job.owner, []), order)
        self.where[job.id] = (shape, job.owner, order)
        if shape not in self.stuck:
            self.untried.setdefault(shape)

    def drop(self, name: JobId) -> None:
        """A job is not queued any more."""
        found = self.where.pop(name, None)
        if found is None:
            return
        shape, owner, order = found
        owners = self.groups[shape]
        group = owners[owner]
        del group[bisect_left(group, order)]
        if not group:
            del owners[owner]
        if not owners:
            del self.groups[shape]
            self.untried.pop(shape, None)
            self.stuck.pop(shape, None)

    def due(self, now: float) -> Iterator[JobId]:
        """Jobs whose back-off has ended; each is given once."""
        while self.later and self.later[0][0] <= now:
            yield heappop(self.later)[1]

    def helped(self) -> None:
        """Something may fit now that did not before."""
        self.untried = dict.fromkeys(self.groups)
        self.stuck.clear()
        self.short |= self.short_in_vain
        self.short_in_vain.clear()

    def lacks(self, name: JobId, is_short: bool) -> None:
        """Does this running job lack slices? What is known of it has changed."""
        self.short_in_vain.discard(name)
        if is_short:
            self.short.add(name)
        else:
            self.short.discard(name)

    def in_vain(self, shape: Shape) -> None:
        """A job of this shape does not fit."""
        self.untried.pop(shape, None)
        self.stuck.setdefault(shape)

    def starved(self, before: float) -> dict[int, JobId]:
        """Of each priority the job that waits longest, if it was submitted before that time."""
        found: dict[int, tuple[float, JobId]] = {}
        for owners in self.groups.values():
            for group in owners.values():
                for place in {0, bisect_left(group, (group[0][0], 1, -inf, JobId("")))}:
                    for priority, _, at, name in group[place : place + 1]:
                        if at < before:
                            one = (at, name)
                            found[-priority] = min(one, found.get(-priority, one))
        return {priority: name for priority, (_, name) in found.items()}

    def rivals(self) -> bool:
        """Have several owners jobs of untried shapes?"""
        return len({owner for shape in self.untried for owner in self.groups[shape]}) > 1

    def candidates(
        self,
        standings: Mapping[Owner, float] = NOBODY,
        starved: Collection[JobId] = (),
        promised: Iterable[QueueName] = (),
    ) -> "Candidates":
        """Jobs of untried shapes, best first. `standings`: what owners have used lately for what
        they deserve; `starved` jobs are first of their priority, then those of queues that have
        less than they are `promised`.
        """
        return Candidates(queue=self, standings=standings, starved=starved, promised=set(promised))


Turn = tuple[int, int, int, int, float, float, JobId]
"""Whose turn it is: priority, work taken off its nodes, starved, of a queue that has less than it
is promised, owner's standing, submit, id."""


@dataclass(slots=True)
class Candidates:
    """Goes through the jobs of untried shapes in order; a shape found not to fit is left out."""

    queue: JobQueue
    standings: Mapping[Owner, float]
    starved: Collection[JobId]
    promised: set[QueueName] = field(default_factory=set)
    heads: list[tuple[Turn, int, Shape, Owner]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heads = [
            (self._turn(shape, owner, group[0]), 0, shape, owner)
            for shape in self.queue.untried
            for owner, group in self.queue.groups[shape].items()
        ]
        heapify(self.heads)

    def has_its_share(self, queue: QueueName) -> None:
        """This queue has what it is promised: its jobs are as others from now on."""
        if queue not in self.promised:
            return
        self.promised.discard(queue)
        groups = self.queue.groups
        self.heads = [
            (self._turn(shape, owner, groups[shape][owner][place]), place, shape, owner)
            for _, place, shape, owner in self.heads
        ]
        heapify(self.heads)

    def __bool__(self) -> bool:
        return bool(self.heads)

    def priority(self) -> int:
        """That of the best job that is left; -1 when none is."""
        return -self.heads[0][0][0] if self.heads else -1

    def _turn(self, shape: Shape, owner: Owner, order: Order) -> Turn:
        priority, head, at, name = order
        promised = bool(self.promised) and queue_of(shape) in self.promised
        standing = self.standings.get(owner, 0.0)
        return (priority, head, name not in self.starved, not promised, standing, at, name)

    def next(self) -> tuple[JobId, Shape]:
        """The best job that is left, and its shape. Its successor is a candidate from now on."""
        turn, place, shape, owner = heappop(self.heads)
        group = self.queue.groups[shape][owner]
        if place + 1 < len(group):
            after = (self._turn(shape, owner, group[place + 1]), place + 1, shape, owner)
            heappush(self.heads, after)
        return turn[-1], shape

    def leave_out(self, shape: Shape) -> None:
        """No job of this shape fits; it was the one given last."""
        self.queue.in_vain(shape)
        self.heads = [head for head in self.heads if head[2] is not shape]
        heapify(self.heads)
