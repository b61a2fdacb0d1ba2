"""The fleet: everything the ledger says, folded. Read it; only the fold makes a new one."""

from dataclasses import dataclass, field

from immutables import Map

from rackwright.core.index import RackIndex
from rackwright.core.jobs import Job, Slice, Tombstone
from rackwright.core.racks import History, Node, Rack
from rackwright.core.shares import Account, Counts, Usage
from rackwright.core.topology import Topology
from rackwright.wire.entries.slice import VictimMove
from rackwright.wire.ids import JobId, LedgerId, MessageId, NodeId, Owner, PlanId, RackId, WorkerId
from rackwright.wire.policy import Automation, Policy
from rackwright.wire.quick import quick
from rackwright.wire.versions import FOLD_VERSION


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node is: its rack's number and its place in the rack's list."""

    rack: int
    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVictim:
    """A victim of a plan in flight: where it was, and the membership the plan gave it."""

    job: JobId
    membership: int
    move: VictimMove
    before: tuple[Slice, ...]
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A defragmentation in flight. Times are ledger time; costs in GPU-hours."""

    id: PlanId
    seq: int
    at: float
    job: JobId
    membership: int
    victims: tuple[PlannedVictim, ...]
    notice_until: float
    expires_at: float
    cost_gpu_h: float
    benefit_gpu_h: float


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Which wishes one service has answered: all up to `floor`, and those `above` it."""

    floor: int = 0
    above: frozenset[int] = frozenset()

    def __contains__(self, seq: int) -> bool:
        return seq <= self.floor or seq in self.above


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A planned absence; `seq` names it. Times are ledger time.

    `told`: jobs that have been told of it, and how long before it (seconds) at most.
    """

    seq: int
    racks: tuple[RackId, ...]
    nodes: tuple[NodeId, ...]
    begin: float
    end: float
    notice_s: float
    by: str
    why: str
    told: tuple[tuple[JobId, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WishedSwap:
    """Somebody had the node of a rank replaced: when (ledger time), of which job, and who."""

    at: float
    job: JobId
    by: Owner


@dataclass(slots=True, kw_only=True)
class Fleet:
    """The state of a cell at ledger sequence `seq`.

    `time` is ledger time in seconds, never going back; `stored_at` the server's when it stored the
    last commit, 0 in a cell of fold version 1. `wounded` holds jobs with a wound and the
    ledger time of the first, `fresh_faults` the ones of them whose node failed and has not been
    answered; `leaving` every worker that is to end and whose end no entry has recorded. `jobs` are
    those that live; ended ones leave a tombstone for a week, in the order of `ends`. `leaving_of`
    is `leaving` by job; `usage` what owners have used, `counts` the GPUs that
    limits look at. `wished_swaps` are those of 24 hours. `histories` is what hardware that had
    faults did, by serial. `closed_by` closed the breaker by hand last, at `closed_at`.
    `touched_racks` and `touched_jobs` are what the last commit changed.
    """

    ledger: LedgerId = LedgerId("")
    seq: int = 0
    last_id: MessageId | None = None
    time: float = 0.0
    stored_at: float = 0.0
    fold_version: int = FOLD_VERSION
    policy: Policy = Policy()
    topology: Topology = Topology()
    racks: Map[int, Rack] = Map()
    rack_numbers: Map[RackId, int] = Map()
    places: Map[NodeId, Place] = Map()
    jobs: Map[JobId, Job] = Map()
    queued: Map[JobId, int] = Map()
    starting: Map[JobId, int] = Map()
    wounded: Map[JobId, float] = Map()
    fresh_faults: Map[JobId, float] = Map()
    leaving: Map[WorkerId, Place] = Map()
    leaving_of: Map[JobId, tuple[WorkerId, ...]] = Map()
    plans: Map[PlanId, Plan] = Map()
    plan_times: tuple[float, ...] = ()
    index: RackIndex = RackIndex()
    timers: tuple[tuple[float, int], ...] = ()
    answers: Map[str, Answers] = Map()
    paused: Map[Automation, float] = Map()
    maintenance: tuple[Maintenance, ...] = ()
    kept: Map[JobId, tuple[int, ...]] = Map()
    tombstones: Map[JobId, Tombstone] = Map()
    ends: Map[int, JobId] = Map()
    ends_first: int = 0
    ends_next: int = 0
    culprits: tuple[float, ...] = ()
    histories: Map[str, History] = Map()
    closed_by: str = ""
    closed_at: float = 0.0
    wished_swaps: tuple[WishedSwap, ...] = ()
    usage: Map[Account, Usage] = Map()
    counts: Counts = Map()
    verified: tuple[tuple[int, str], ...] = ()
    touched_racks: set[int] = field(default_factory=set)
    touched_jobs: set[JobId] = field(default_factory=set)
    installed_gpus: int = 0
    installed_nodes: int = 0
    voids: int = 0

    @property
    def ahead(self) -> float:
        """Seconds by which ledger time is ahead of the server's clock, which was set back."""
        return max(0.0, self.time - self.stored_at) if self.stored_at else 0.0

    def rack(self, rack: RackId) -> Rack:
        """A rack by id. Raises KeyError."""
        return self.racks[self.rack_numbers[rack]]

    def node(self, node: NodeId) -> Node:
        """A node by id. Raises KeyError."""
        place = self.places[node]
        return self.racks[place.rack].nodes[place.node]

    def rack_name(self, number: int) -> RackId:
        """The id of the rack with this number. Raises KeyError."""
        return self.racks[number].spec.rack

    def node_at(self, rack: int, place: int) -> Node:
        """The node at a place of a rack. Raises KeyError, IndexError."""
        return self.racks[rack].nodes[place]

    def is_paused(self, automation: Automation, now: float) -> bool:
        """Has an operator stopped this automation, and is its end not yet reached?"""
        return self.paused_until(automation, now) is not None

    def paused_until(self, automation: Automation, now: float) -> float | None:
        """Ledger time at which a pause of this automation, or of all, ends; None: it acts."""
        ends = (self.paused.get(automation, 0.0), self.paused.get(Automation.ALL, 0.0))
        return max(ends) if max(ends) > now else None

    def answered(self, service: str, seq: int) -> bool:
        """Has `service` answered the wish at `seq` of the wish stream?"""
        answers = self.answers.get(service)
        return answers is not None and seq in answers
