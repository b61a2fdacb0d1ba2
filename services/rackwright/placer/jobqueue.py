"""Queued jobs in order, grouped by shape: what holds for one job of a shape holds for all of them.

A shape that has been tried in vain is tried again only after something that could help it.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from rackwright.core.jobs import Job
from rackwright.wire.ids import JobId

Shape = Hashable
Order = tuple[int, int, float, JobId]
"""Higher priority, then work taken off its nodes, then the earlier submit, then the id."""


def order_of(job: Job) -> Order:
    """Where a job stands in the queue; a job sent back without blame is the head of its band."""
    head = 0 if job.requeues > job.retries else 1
    return (-job.spec.priority, head, job.submitted_at, job.id)


def shape_of(job: Job) -> Shape:
    """Everything that placement looks at."""
    spec = job.spec
    return (
        spec.nodes,
        spec.gpus,
        spec.groups,
        spec.priority,
        spec.queue,
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
    )


@dataclass(slots=True)
class JobQueue:
    """`untried` shapes may fit; `later` are jobs in back-off, by the ledger time of its end."""

    groups: dict[Shape, list[Order]] = field(default_factory=dict)
    where: dict[JobId, tuple[Shape, Order]] = field(default_factory=dict)
    untried: dict[Shape, None] = field(default_factory=dict)
    stuck: dict[Shape, None] = field(default_factory=dict)
    later: list[tuple[float, JobId]] = field(default_factory=list)

    def put(self, job: Job, now: float) -> None:
        """A job is queued, or what is known of it has changed."""
        self.drop(job.id)
        if job.not_before > now:
            heappush(self.later, (job.not_before, job.id))
            return
        shape, order = shape_of(job), order_of(job)
        insort(self.groups.setdefault(shape, []), order)
        self.where[job.id] = (shape, order)
        if shape not in self.stuck:
            self.untried.setdefault(shape)

    def drop(self, name: JobId) -> None:
        """A job is not queued any more."""
        found = self.where.pop(name, None)
        if found is None:
            return
        shape, order = found
        group = self.groups[shape]
        del group[bisect_left(group, order)]
        if not group:
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

    def in_vain(self, shape: Shape) -> None:
        """A job of this shape does not fit."""
        self.untried.pop(shape, None)
        self.stuck.setdefault(shape)

    def candidates(self) -> "Candidates":
        """Jobs of untried shapes, best first."""
        return Candidates(queue=self)


@dataclass(slots=True)
class Candidates:
    """Goes through the jobs of untried shapes in order; a shape found not to fit is left out."""

    queue: JobQueue
    heads: list[tuple[Order, int, Shape]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heads = [(self.queue.groups[shape][0], 0, shape) for shape in self.queue.untried]
        heapify(self.heads)

    def __bool__(self) -> bool:
        return bool(self.heads)

    def next(self) -> tuple[JobId, Shape]:
        """The best job that is left, and its shape. Its successor is a candidate from now on."""
        order, turn, shape = heappop(self.heads)
        group = self.queue.groups[shape]
        if turn + 1 < len(group):
            heappush(self.heads, (group[turn + 1], turn + 1, shape))
        return order[3], shape

    def leave_out(self, shape: Shape) -> None:
        """No job of this shape fits; it was the one given last."""
        self.queue.in_vain(shape)
        self.heads = [head for head in self.heads if head[2] is not shape]
        heapify(self.heads)
