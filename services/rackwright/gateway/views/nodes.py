"""Answers about racks and nodes."""

from dataclasses import dataclass, field

from rackwright.gateway.views.base import Answer, Line, View, Why


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
    """Spares of a rack in nodes: wanted beside protected slices; of those free to swap, which are
    its nodes in the state `spare`; lent; short: neither free nor lent; and free nodes on probation,
    which are taken last."""

    wanted: int
    free: int
    lent: int
    short: int
    probation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StayView(View):
    """A job that is to leave a rack and stays for now, and why."""

    job: str
    waits: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class RackView(View):
    """One rack. `stays`: the first of the jobs that are to leave it and wait for their turn."""

    rack: str
    path: tuple[str, ...]
    fitness: str
    isolated: bool
    held_by: str | None = None
    held_until: float | None = None
    spares: SparesView
    nodes: tuple[NodeCell, ...]
    stays: tuple[StayView, ...] = ()


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
    """A fault that took the node out; `serial` is the hardware that had it."""

    at: float
    code: str
    text: str
    serial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(Answer):
    """Everything about one node. `obeyed` is the ledger sequence its agent has obeyed; `stays` are
    the tenants that are to leave and wait for their turn."""

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
    cordoned_for: str = ""
    draining: bool = False
    kept_for: str | None = None
    kept_until: float | None = None
    suspected_at: float | None = None
    failed: bool = False
    probation_until: float | None = None
    repair: str | None = None
    repair_at: float | None = None
    repair_eta: float | None = None
    why: Why | None = None
    checks: bool = False
    check_asked: str = ""
    checked_at: float | None = None
    check_passed: bool | None = None
    faults: tuple[FaultView, ...] = ()
    faults_elsewhere: tuple[FaultView, ...] = ()
    boards_failed: int = 0
    tenants: tuple[TenantView, ...] = ()
    stays: tuple[StayView, ...] = ()
    status_at: float | None = None
    obeyed: int | None = None
    story: tuple[Line, ...] = ()
    left_out: int = 0
    complete: bool = True
