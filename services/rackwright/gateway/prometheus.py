"""The cell's metrics for Prometheus. Nothing is exposed while the ledger is being read."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from rackwright.gateway.asked import BadQuestion
from rackwright.gateway.desk import Desk
from rackwright.gateway.families import families


class CellMetrics(Collector):
    """Computes everything when somebody asks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def describe(self) -> Iterable[Metric]:
        """Names are known only when there is something to tell."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics of the cell."""
        try:
            context = self._desk.context()
        except BadQuestion:
            return
        yield from families(context)


def expose(registry: CollectorRegistry, desk: Desk) -> None:
    """Serve the metrics of the cell with those of the process."""
    registry.register(CellMetrics(desk))
