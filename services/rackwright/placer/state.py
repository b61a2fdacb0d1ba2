"""What one copy of the placer knows besides the fleet: all of it may be lost.

The state belongs to the machine, which changes it in place: one submit among 10,000 must not cost a
copy of the queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.machine import Room, Wished
from rackwright.core.policy.fairness import Memory
from rackwright.core.policy.starvation import Kept
from rackwright.placer.jobqueue import JobQueue, Shape
from rackwright.placer.reports import Reports
from rackwright.wire.ids import JobId, MessageId, Owner, WorkerId
from rackwright.wire.message import MAX_ENTRIES
from rackwright.wire.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Why jobs of a shape wait, found at `mono`."""

    mono: float
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """A job was blamed for an exit at ledger time `at`, in this membership."""

    at: float
    membership: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Who is before whom between equals, found at ledger time `at`: what owners have used for what
    they deserve (None: nobody has asked), the starved job of each priority, racks that are kept
    for such, and jobs that wait for what their queue is promised.
    """

    at: float
    used: Mapping[Owner, float] | None
    starved: frozenset[JobId]
    kept: list[Kept]
    owed: tuple[JobId, ...]


@dataclass(slots=True, kw_only=True)
class State:
    """What waits for an answer, and what was seen.

    fleet: the fleet as it was handled last, None before the first.
    wishes, heard_to: unanswered wishes by sequence; the last one heard.
    queue, reports: queued jobs; what nodes say of workers.
    causes: the commit that put a job into the queue.
    ends, limits: placed jobs by the ledger time of their limit; that time by job.
    starts, startable: jobs whose ranks are looked at at that `mono` time; since when (`mono`) each
    could have started.
    hangs, watched: jobs that must make progress, by the `mono` time of the next look; their names.
    idles, looked: interactive jobs by the `mono` time of the next look at their GPUs; their names.
    again, due: jobs to be judged again at that `mono` time, the next of them by job.
    untold, telling: queued jobs whose block may have to be said, by `mono` time, and their names;
    judged: why, by shape.
    charged: the last exit that a job was blamed for.
    group: how many placements a commit holds at most: fewer while others keep coming first.
    standing: who is before whom; memory: what owners used on days that are over.
    turned_at: ledger time of the fleet at the last turn.
    room: how full the ledger is, and from where on submits are refused.
    trimmed, trim_at: wishes up to there were dropped; when (`mono`) to look again.
    """

    copy: int
    fleet: Fleet | None = None
    wishes: dict[int, Wished] = field(default_factory=dict)
    heard_to: int = 0
    queue: JobQueue = field(default_factory=JobQueue)
    reports: Reports = field(default_factory=Reports)
    causes: dict[JobId, MessageId | None] = field(default_factory=dict)
    ends: list[tuple[float, JobId]] = field(default_factory=list)
    limits: dict[JobId, float] = field(default_factory=dict)
    starts: list[tuple[float, JobId]] = field(default_factory=list)
    startable: dict[JobId, dict[WorkerId, float]] = field(default_factory=dict)
    hangs: list[tuple[float, JobId]] = field(default_factory=list)
    watched: set[JobId] = field(default_factory=set)
    idles: list[tuple[float, JobId]] = field(default_factory=list)
    looked: set[JobId] = field(default_factory=set)
    again: list[tuple[float, JobId]] = field(default_factory=list)
    due: dict[JobId, float] = field(default_factory=dict)
    untold: list[tuple[float, JobId]] = field(default_factory=list)
    telling: set[JobId] = field(default_factory=set)
    group: int = MAX_ENTRIES
    judged: dict[Shape, Judged] = field(default_factory=dict)
    charged: dict[JobId, Blame] = field(default_factory=dict)
    standing: Standing | None = None
    memory: Memory = field(default_factory=dict)
    turned_at: float = 0.0
    room: Room | None = None
    trimmed: int = 0
    trim_at: float = 0.0
