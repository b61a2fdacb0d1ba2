"""The answers of the gateway as values; docs/api.md describes each field.

Readers ignore fields they do not know, so that an older command understands a newer gateway.
Times are ledger time in seconds since the epoch.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from rackwright.wire.message import LENIENT, Part
from rackwright.wire.policy import Policy

Numbers = dict[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Part):
    """A piece of an answer."""

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(View):
    """Base of all answers: what they were made from. `age_s`: how long ago that changed last."""

    cell: str
    ledger: str
    seq: int
    time: float
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(View):
    """A reason: a code, its numbers, and a sentence for people."""

    code: str
    text: str
    numbers: Numbers = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow(View):
    """One job in a list. `racks` are the first of those it is in, `slices` counts them all."""

    id: str
    name: str
    owner: str
    queue: str
    job_class: str
    priority: int
    state: str
    nodes: int
    gpus: int
    slices: int = 0
    racks: tuple[str, ...] = ()
    membership: int = 0
    submitted_at: float
    state_at: float
    blocked: str | None = None
    wounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsAnswer(Answer):
    """`total` match; `next` is what to pass as `after` for more, None at the end."""

    jobs: tuple[JobRow, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceView(View):
    """One slice and the rack it sits in. `gpus` are the GPUs of the one node, all if empty."""

    index: int
    group: str
    replica: int
    rack: str
    first_rank: int
    size: int
    gpus: tuple[int, ...] = ()
    lent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView(View):
    """One rank: where it is, which process of it, and what its node said of it last.

    `state` None: its node has not spoken of this worker. `waits_for`: workers that must end first.
    """

    rank: int
    slice: int
    node: str
    incarnation: int
    state: str | None = None
    ready: bool = False
    pid: int | None = None
    code: int | None = None
    checkpoint_at: float | None = None
    progress_at: float | None = None
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WoundView(View):
    """A rank without a good place."""

    rank: int
    kind: str
    code: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(View):
    """One entry of the ledger, as a line of a story. `at` is ledger time.

    `commit` is the id of its message and `cause` of the one that led to it. `void`: it had no
    effect, and `text` says why.
    """

    seq: int
    at: float
    type: str
    by: str
    text: str
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    commit: str = ""
    cause: str | None = None
    void: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer(Answer):
    """Everything about one job.

    `waits` says why it is not running, computed now. `story` are its entries, oldest first;
    `left_out` of its middle are not kept. `complete`: the ledger has been read back to `since`.
    """

    job: JobRow
    spec: dict[str, Any] | None = None
    waits: Why | None = None
    reason: Why | None = None
    warnings: tuple[Why, ...] = ()
    first_started_at: float | None = None
    started_at: float | None = None
    retries: int = 0
    requeues: int = 0
    swaps: int = 0
    moves: int = 0
    plan: str | None = None
    slices: tuple[SliceView, ...] = ()
    slices_total: int = 0
    ranks: tuple[RankView, ...] = ()
    ranks_total: int = 0
    wounds: tuple[WoundView, ...] = ()
    story: tuple[Line, ...] = ()
    left_out: int = 0
    complete: bool = True
    since: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCell(View):
    """One node in the picture of its rack. `state` is one of docs/api.md's node states."""

    node: str
    state: str
    jobs: tuple[str, ...] = ()
    gpus: int
    taken: int = 0
    fitness: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SparesView(View):
    """Spares of a rack in nodes: wanted beside protected slices, free to swap, lent, missing."""

    wanted: int
    free: int
    lent: int
    short: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RackView(View):
    """One rack."""

    rack: str
    path: tuple[str, ...]
    fitness: str
    isolated: bool
    held_by: str | None = None
    held_until: float | None = None
    spares: SparesView
    nodes: tuple[NodeCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RacksAnswer(Answer):
    """Racks in the order of their definition."""

    racks: tuple[RackView, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantView(View):
    """A worker that belongs on a node. `leaving`: it is to end there."""

    worker: str
    job: str
    rank: int
    gpus: tuple[int, ...] = ()
    lent: bool = False
    leaving: bool = False
    state: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultView(View):
    """A fault that took the node out."""

    at: float
    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(Answer):
    """Everything about one node. `obeyed` is the ledger sequence its agent has obeyed."""

    node: NodeCell
    rack: str
    place: int
    serial: str = ""
    slot: str = ""
    gpu_model: str = ""
    driver: str = ""
    address: str = ""
    cores: int = 0
    memory_gb: float = 0.0
    labels: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    boot: str = ""
    cordoned: bool = False
    draining: bool = False
    suspected_at: float | None = None
    failed: bool = False
    probation_until: float | None = None
    repair: str | None = None
    repair_at: float | None = None
    repair_eta: float | None = None
    why: Why | None = None
    faults: tuple[FaultView, ...] = ()
    tenants: tuple[TenantView, ...] = ()
    status_at: float | None = None
    obeyed: int | None = None
    story: tuple[Line, ...] = ()
    left_out: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsAnswer(Answer):
    """Entries in order. `oldest` is the first sequence that is kept here; `next` to pass as `since`
    for what comes after these."""

    events: tuple[Line, ...]
    oldest: int
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedBy(View):
    """Jobs that wait for one cause, and what they ask for."""

    jobs: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation(View):
    """What could start now. `startable`: slices by their size in nodes. `fragmentation`: 0 none.

    `whole_racks` can take a full slice, `broken_racks` cannot, `pinned_racks` of those never could
    without touching pinned work.
    """

    startable: dict[str, int]
    free_above_spares: int
    whole_racks: int
    broken_racks: int
    pinned_racks: int
    fragmentation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoveries(View):
    """Counted from the ledger since `since`. Times in seconds of ledger time."""

    rungs: dict[str, int]
    swaps: int
    swapped_nodes: int
    moves: int
    restarts: int
    requeues: int
    suspended: int
    swap_s: dict[str, float] = field(default_factory=dict)
    rejoin_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defrags(View):
    """Counted from the ledger since `since`. Costs in GPU-hours, as estimated by the plans."""

    planned: int
    withdrawn: int
    finished: int
    victims: int
    cost_gpu_h: float
    benefit_gpu_h: float
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareTotals(View):
    """Spares of the cell in nodes, and racks with a protected slice that have none free."""

    wanted: int
    free: int
    lent: int
    short: int
    racks_without: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsAnswer(Answer):
    """The cell in numbers. `gpus` add up to `installed_gpus`."""

    racks: int
    installed_nodes: int
    installed_gpus: int
    jobs: dict[str, int]
    nodes: dict[str, int]
    gpus: dict[str, int]
    occupancy: float
    queue: dict[str, QueuedBy]
    spares: SpareTotals
    fragmentation: Fragmentation
    recoveries: Recoveries
    defrags: Defrags
    unanswered_failures: int
    interactive_touched: int
    paused: dict[str, float]
    voids: int
    stopped_at: int | None = None
    stopped_why: str = ""
    complete: bool = True
    since: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob(View):
    """What a setting is for."""

    unit: str
    why: str
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAnswer(Answer):
    """The settings of the cell, as the ledger has them."""

    policy: Policy
    knobs: dict[str, Knob]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragAnswer(Answer):
    """What defragmentation would do for a job now, without doing it: `outcome` and its reasons."""

    job: str
    outcome: str
    text: str
    explanation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(View):
    """The body of an HTTP answer that is an error."""

    status: int
    error: str
