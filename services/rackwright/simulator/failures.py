"""What breaks, how often and for how long: knobs, drawn from a seed that is none of the workload's.

Rates that are not told are none. Defaults of what is not published are assumptions and said so in
the report.
"""

import math
import random
from dataclasses import dataclass, fields

from rackwright.simulator.workload import DAY, HOUR


class BadModel(ValueError):
    """A knob of the failure model with a value that cannot be."""

    def __init__(self, knob: str, value: object, rule: str) -> None:
        super().__init__(f"failures: {knob}: {value} is not possible: {rule}")
        self.knob = knob


SHARES = frozenset(
    {"silent", "offenders", "hangs", "unavailable_at_start", "slow_speed", "reboots"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureModel:
    """Rates and times. A None time between faults: never.

    Nodes: `silent` of the faults are seen by silence only, `reboots` are healed by a reboot in
    `reboot_s`, the others take a repair of `repair_h` hours, exponential. `offenders` of the nodes
    fail `offender_factor` times as often as the others; the mean is what was asked for. Racks:
    faults of all their nodes at once. Jobs: a software fault each `job_gpu_days` GPU-days of work,
    `hangs` of which stand still for `hang_s` before anybody sees. Slow: a node runs at
    `slow_speed` until an operator drains it after `slow_found_h`. Noise: a node is silent for a
    moment and heard again.
    """

    seed: int = 1
    node_mtbi_days: float | None = None
    repair_h: float = 24.0
    reboots: float = 0.0
    reboot_s: float = 900.0
    silent: float = 0.2
    offenders: float = 0.05
    offender_factor: float = 5.0
    rack_mtbi_days: float | None = None
    rack_repair_h: float = 4.0
    job_gpu_days: float | None = None
    hangs: float = 0.2
    hang_s: float = 1800.0
    slow_mtbi_days: float | None = None
    slow_speed: float = 0.8
    slow_found_h: float = 6.0
    noise_mtbi_days: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "seed" or value is None:
                continue
            if not math.isfinite(value):
                raise BadModel(one.name, value, "must be a finite number")
            if one.name in SHARES and not 0 <= value <= 1:
                raise BadModel(one.name, value, "a share, 0 to 1")
            if one.name.endswith("_days") and value <= 0:
                raise BadModel(one.name, value, "must be above 0")
            if value < 0:
                raise BadModel(one.name, value, "must not be negative")
        if self.slow_speed == 0:
            raise BadModel("slow_speed", 0, "must be above 0")

    @classmethod
    def of(cls, *, unavailable: float, repair_h: float, **more: float) -> "FailureModel":
        """That many nodes down on average, each for so many hours. Raises BadModel."""
        if not 0 <= unavailable < 1:
            raise BadModel("unavailable", unavailable, "a share, 0 to below 1")
        if not repair_h > 0:
            raise BadModel("repair_h", repair_h, "must be above 0")
        if unavailable == 0:
            return cls(repair_h=repair_h, **more)  # type: ignore[arg-type]
        days = repair_h / 24 * (1 - unavailable) / unavailable
        return cls(node_mtbi_days=days, repair_h=repair_h, **more)  # type: ignore[arg-type]

    @property
    def unavailable(self) -> float:
        """Share of time that a node is down by itself."""
        if self.node_mtbi_days is None:
            return 0.0
        hours = (1 - self.reboots) * self.repair_h + self.reboots * self.reboot_s / HOUR
        return hours / (self.node_mtbi_days * 24 + hours)

    def node_rate(self, node: str) -> float:
        """Faults a second of this node."""
        if self.node_mtbi_days is None:
            return 0.0
        rng = random.Random(f"{self.seed}/offender/{node}")
        factor = self.offender_factor if rng.random() < self.offenders else 1.0
        mean = 1 + self.offenders * (self.offender_factor - 1)
        return factor / mean / (self.node_mtbi_days * DAY)

    def repair_s(self, rng: random.Random) -> float:
        """How long one node is away."""
        if rng.random() < self.reboots:
            return self.reboot_s
        return rng.expovariate(1 / (self.repair_h * HOUR))
