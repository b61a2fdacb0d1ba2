"""Faults that take a whole rack at once: a switch tray, the backplane, the power of the rack.

They are what the independence of nodes leaves out. Service times of an NVL72 as published by
SemiAnalysis (2025-08): switch tray 1-4 h with the rack drained, backplane 8-24 h; their rates are
not published, so none is assumed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from rackwright.core.policy.capacity import DAYS_PER_YEAR, HOURS_PER_DAY, Impossible

LEAST = 0.001  # days between faults, or hours of repair, that can be told
MOST = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFault:
    """One kind of fault of a whole rack: how often one rack has it, how long it is away."""

    name: str
    mtbi_days: float
    repair_hours: float

    @property
    def unavailable(self) -> float:
        """Share of time one rack is away because of it."""
        repair = self.repair_hours / HOURS_PER_DAY
        return repair / (self.mtbi_days + repair)


def rack_fault(text: str) -> RackFault:
    """`switch=730/4`: one every 730 days in a rack, repaired in 4 hours. Raises Impossible."""
    name, equals, figures = text.partition("=")
    days, slash, hours = figures.partition("/")
    try:
        fault = RackFault(name=name.strip(), mtbi_days=float(days), repair_hours=float(hours))
    except ValueError:
        fault = None
    if fault is None or not (equals and slash and fault.name):
        raise ValueError(f"{text!r} is no rack fault: NAME=DAYS/HOURS, such as switch=730/4")
    rule = f"must be from {LEAST:g} to {MOST:g}"
    if not LEAST <= fault.mtbi_days <= MOST:
        raise Impossible(f"days between {fault.name} faults", fault.mtbi_days, rule)
    if not LEAST <= fault.repair_hours <= MOST:
        raise Impossible(f"repair hours of {fault.name}", fault.repair_hours, rule)
    return fault


def rack_up(faults: Sequence[RackFault]) -> float:
    """Share of time in which a rack has none of these faults."""
    return prod((1 - fault.unavailable for fault in faults), start=1.0)


def rack_faults_per_year(faults: Sequence[RackFault], racks: int) -> float:
    """Faults of whole racks a year: one per rack in two years is 70 a year in 140 racks."""
    return racks * sum(DAYS_PER_YEAR / fault.mtbi_days for fault in faults)
