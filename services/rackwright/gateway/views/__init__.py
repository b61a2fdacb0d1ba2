"""The answers of the gateway as values; docs/api.md describes each field.

Readers ignore fields they do not know, so that an older command understands a newer gateway.
Times are ledger time in seconds since the epoch.
"""

from rackwright.gateway.views.base import (
    Answer,
    Line,
    Problem,
    View,
    Why,
)
from rackwright.gateway.views.cell import (
    BreakerView,
    DefragAnswer,
    Defrags,
    EventsAnswer,
    Fragmentation,
    Knob,
    MetricValue,
    MetricView,
    PolicyAnswer,
    QueuedBy,
    Recoveries,
    ReliabilityView,
    SpareTotals,
    StatsAnswer,
    Work,
)
from rackwright.gateway.views.jobs import (
    JobAnswer,
    JobRow,
    JobsAnswer,
    RankView,
    SliceView,
    WoundView,
)
from rackwright.gateway.views.nodes import (
    FaultView,
    NodeAnswer,
    NodeCell,
    RacksAnswer,
    RackView,
    SparesView,
    StayView,
    TenantView,
)

__all__ = [
    "Answer",
    "BreakerView",
    "DefragAnswer",
    "Defrags",
    "EventsAnswer",
    "FaultView",
    "Fragmentation",
    "JobAnswer",
    "JobRow",
    "JobsAnswer",
    "Knob",
    "Line",
    "MetricValue",
    "MetricView",
    "NodeAnswer",
    "NodeCell",
    "PolicyAnswer",
    "Problem",
    "QueuedBy",
    "RackView",
    "RacksAnswer",
    "RankView",
    "Recoveries",
    "ReliabilityView",
    "SliceView",
    "SpareTotals",
    "SparesView",
    "StatsAnswer",
    "StayView",
    "TenantView",
    "View",
    "Why",
    "Work",
    "WoundView",
]
