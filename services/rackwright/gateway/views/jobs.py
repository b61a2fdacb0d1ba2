"""Answers about jobs."""

from dataclasses import dataclass
from typing import Any

from rackwright.gateway.views.base import Answer, Line, View, Why
from rackwright.gateway.views.nodes import SparesView


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
    pinned_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsAnswer(Answer):
    """`total` match; `next` is what to pass as `after` for more, None at the end."""

    jobs: tuple[JobRow, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceView(View):
    """One slice and the rack it sits in. `gpus` are the GPUs of the one node, all if empty;
    `spares` those of its rack, of a slice beside which some are kept."""

    index: int
    group: str
    replica: int
    rack: str
    first_rank: int
    size: int
    gpus: tuple[int, ...] = ()
    lent: bool = False
    spares: SparesView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView(View):
    """One rank: where it is, which process of it, and what its node said of it last.

    `state` None: its node has not spoken of this worker. `waits_for`: workers that must end first;
    the first of them is on node `waits_on`, and was given a notice of `waits_notice_s`. A worker
    that runs and has no `pid` is pretended: it holds its node, executes nothing and prints nothing.
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
    waits_on: str = ""
    waits_notice_s: float = 0.0

    @property
    def pretended(self) -> bool:
        """Does it run without a process?"""
        return self.state == "running" and self.pid is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WoundView(View):
    """A rank without a good place. `waits`: why nothing is done for it yet, if that is known."""

    rank: int
    kind: str
    code: str
    at: float
    waits: Why | None = None


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
    kept_nodes: tuple[str, ...] = ()
    kept_until: float | None = None
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
