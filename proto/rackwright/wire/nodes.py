"""What is known of a node: its hardware, its fitness, its slot in the rack."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le, Len

from rackwright.wire.ids import NodeRef, RackRef
from rackwright.wire.message import LENIENT, Natural, Part
from rackwright.wire.versions import since

MAX_RACK_NODES = 62  # a node set is a bit mask in one signed 64-bit integer
MAX_GPUS = 16

NodeMask = Annotated[int, Ge(0), Le((1 << MAX_RACK_NODES) - 1)]
GpuMask = Annotated[int, Ge(0), Le((1 << MAX_GPUS) - 1)]


class Fitness(StrEnum):
    """What a node is good for, ordered none < solo < rack < full."""

    NONE = "none"
    SOLO = "solo"
    RACK = "rack"
    FULL = "full"


FITNESS_ORDER: dict[Fitness, int] = {f: i for i, f in enumerate(Fitness)}


class RackFitness(StrEnum):
    """good takes anything, degraded no new slice, evacuate loses what it has, down is out."""

    GOOD = "good"
    DEGRADED = "degraded"
    EVACUATE = "evacuate"
    DOWN = "down"


class RepairAction(StrEnum):
    """What somebody must do before the node is whole again."""

    NONE = "none"
    RESET = "reset"
    REBOOT = "reboot"
    REPLACE = "replace"
    INSPECT = "inspect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware(Part):
    """What the agent found: identity is `serial`; `memory_gb` is host memory in GB (1e9 bytes).

    `checks`: the site has given the node a check that it can be asked to make. `port`: where at
    `address` its neighbours ask by UDP whether it has the bus; 0: nowhere.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = LENIENT

    serial: str
    slot: str = ""
    gpus: Annotated[int, Ge(0), Le(MAX_GPUS)]
    gpu_model: str = ""
    driver: str = ""
    cores: Natural = 0
    memory_gb: Annotated[float, Ge(0)] = 0.0
    address: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    checks: bool = False
    port: Annotated[int, Ge(0), Le(65_535)] = since(2, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses(Part):
    """The nodes that one session of a node may ask whether the bus is away, and for what.

    Whenever more than half of `nodes` say so, its lease runs for `step_s` from the question, but
    never longer than `alone_s` from the newest heartbeat that was echoed.
    """

    nodes: Annotated[tuple[NodeRef, ...], Len(0, 15)] = since(2, ())
    step_s: Annotated[float, Ge(0)] = since(2, 0.0)
    alone_s: Annotated[float, Ge(0)] = since(2, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSpec(Part):
    """One NVLink domain: its place in the tree (`path`, outermost level first) and its slots.

    The bit mask of a node in an entry is its place in `nodes`, so the order never changes; a node
    that left stays in the list for ever and a new one is added at the end.
    """

    rack: RackRef
    path: tuple[str, ...] = ()
    nodes: Annotated[tuple[NodeRef, ...], Len(1, MAX_RACK_NODES)]
    gpus_per_node: Annotated[int, Ge(0), Le(MAX_GPUS)] = 4
