"""Answers about the cell: events, numbers, settings, plans."""

from dataclasses import dataclass, field
from typing import Any

from rackwright.gateway.views.base import Answer, Line, View
from rackwright.wire.policy import Policy


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
    slurm_fragmentation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoveries(View):
    """Counted from the ledger since `since`. Times in seconds of ledger time; `start_s` (to a new
    worker) and `progress_s` (to the job's first progress) since this gateway started."""

    rungs: dict[str, int]
    swaps: int
    swapped_nodes: int
    moves: int
    restarts: int
    requeues: int
    suspended: int
    swap_s: dict[str, float] = field(default_factory=dict)
    rejoin_s: dict[str, float] = field(default_factory=dict)
    start_s: dict[str, float] = field(default_factory=dict)
    progress_s: dict[str, float] = field(default_factory=dict)
    stalled_gpu_hours: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defrags(View):
    """Counted from the ledger since `since`. Costs in GPU-hours, as plans estimated them; of those
    that are `over` what they cost in the end, `actual_gpu_h`, and their estimates, `over_gpu_h`.
    `optimality_gap`: the share of the estimates beyond what no plan could have cost less than.
    """

    planned: int
    withdrawn: int
    finished: int
    victims: int
    cost_gpu_h: float
    benefit_gpu_h: float
    optimality_gap: float | None = None
    over: int = 0
    over_gpu_h: float = 0.0
    actual_gpu_h: float = 0.0
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareTotals(View):
    """Spares of the cell in nodes, and racks with a protected slice that have none free."""

    wanted: int
    free: int
    lent: int
    short: int
    racks_without: int
    probation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(View):
    """What became of the cell's time since `since`. `gpu_hours` by state add up to
    `installed_gpu_hours`. `wait_s`: bounds of p50, p90 and p99 of the time from submit to first
    start; `recover_s` from the first wound until all ranks run.
    """

    installed_gpu_hours: float = 0.0
    gpu_hours: dict[str, float] = field(default_factory=dict)
    goodput: float = 0.0
    training_goodput: float = 1.0
    availability: float = 0.0
    ettr: dict[str, float] = field(default_factory=dict)
    wait_s: dict[str, float] = field(default_factory=dict)
    recover_s: dict[str, float] = field(default_factory=dict)
    blocked_gpu_hours: dict[str, float] = field(default_factory=dict)
    spare_exhaustions: int = 0
    exhaustions_per_1000_rack_days: float = 0.0
    exhaustions_expected: float | None = None
    rack_s: dict[str, dict[str, float]] = field(default_factory=dict)
    checkpoint_overdue: int = 0
    repair_overdue: int = 0
    starved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityView(View):
    """Of the last `days`, each figure with its 95 % interval (`value`, `low`, `high`; null: not
    known). A node or rack between failures in days, a node away in hours."""

    days: int
    node_mtbf_days: dict[str, float | None]
    node_mttr_hours: dict[str, float | None]
    rack_mtbf_days: dict[str, float | None]
    rack_faults: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerView(View):
    """`open`: failures that are only inferred are not acted on. Times are ledger time."""

    open: bool = False
    culprits: int = 0
    limit: int = 0
    closes_at: float | None = None
    closed_by: str = ""
    closed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue(View):
    """One value of a metric, by its labels. Of a histogram `value` is the mean, `count` how many,
    and p50, p90, p99 the bounds below which so many lie (null: none, or beyond the last bound)."""

    labels: dict[str, str] = field(default_factory=dict)
    value: float = 0.0
    count: int | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView(View):
    """A metric as /metrics has it, summed over racks. `more`: values left out, the smallest."""

    name: str
    group: str
    kind: str
    text: str
    values: tuple[MetricValue, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsAnswer(Answer):
    """The cell in numbers. `gpus` add up to `installed_gpus`. `metrics`: if they were asked for."""

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
    work: Work = field(default_factory=Work)
    breaker: BreakerView = field(default_factory=BreakerView)
    reliability: tuple[ReliabilityView, ...] = ()
    lemon_share: float = 0.0
    metrics: tuple[MetricView, ...] = ()


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
class CopyView(View):
    """One copy of a service, as it said in the last five seconds. `seq`: up to where it has folded;
    `stopped_at`: it could not pass this entry; `why`: what keeps it from deciding."""

    copy: int
    id: str
    version: str
    ready: bool
    seq: int
    stopped_at: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView(View):
    """A service and its copies. `silent_s`: for so long none that may decide has answered, and
    `missing` says what that means; None: one does."""

    service: str
    silent_s: float | None
    missing: str
    copies: tuple[CopyView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesAnswer(Answer):
    """All services of the cell."""

    services: tuple[ServiceView, ...]
