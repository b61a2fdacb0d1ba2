"""Why something was decided or refused: a code for the machine, numbers for the sentence."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge

from rackwright.wire.message import Part
from rackwright.wire.quick import quick


class Cause(StrEnum):
    """The seven causes of waiting, in the order in which they are tested."""

    NEVER = "never"
    QUOTA = "quota"
    HEALTH = "health"
    CAPACITY = "capacity"
    HELD = "held"
    TOPOLOGY_PINNED = "topology.pinned"
    TOPOLOGY_MOVABLE = "topology.movable"


class Rung(StrEnum):
    """The rungs of the recovery ladder, cheapest first."""

    RESTART = "restart"
    SPARE = "spare"
    LENT_SPARE = "lent-spare"
    TENANT = "tenant"
    FREE_RACK = "free-rack"
    EVICT = "evict"
    SHRINK = "shrink"
    WAIT = "wait"
    REQUEUE = "requeue"


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Part):
    """A code, the numbers behind it, and the rung of the ladder where it belongs to one."""

    code: str
    numbers: dict[str, int | float | str] = field(default_factory=dict)
    rung: Rung | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RungTaken(Part):
    """One rung judged: taken or skipped, what it would cost in GPU-hours, and why."""

    rung: Rung
    taken: bool
    price_gpu_h: Annotated[float, Ge(0)] | None = None
    reason: Reason
