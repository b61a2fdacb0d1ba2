"""What a service counts and measures, in a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from rackwright.bus.ports import Link
from rackwright.core.fleet import Fleet
from rackwright.host.standing import Standing
from rackwright.wire.catalog import SAYS

DECISION_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
)  # fmt: skip
SET_ASIDE_OF = ("wish", "signal", "status")
APPEND_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0)


class Metrics:
    """All metrics of one process. Names begin with `rackwright_`, times are in seconds."""

    def __init__(self, service: str = "", copy: int = 0, cell: str = "") -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"rackwright_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"rackwright_{name}", text, labels, registry=registry)

        this = gauge("service", "Which service this is", "service", "copy", "cell")
        this.labels(service, str(copy), cell).set(1)
        self.ready = gauge("ready", "1 when it may decide")
        self.stopped_at = gauge("stopped_at", "Sequence at which the fold stopped; 0: it has not")
        self.revision = gauge("revision", "Ledger sequence that is folded")
        self.fold_lag = gauge("fold_lag_seconds", "Age of the newest folded commit when folded")
        self.fold_waiting = gauge("fold_waiting", "Commits heard and not folded yet")
        self.snapshot_age = gauge("snapshot_age_commits", "Commits since the newest verified one")
        self.folded = counter("folded", "Commits folded")
        self.voids = counter("voids", "Commits that had no effect", "service")
        self.restarts = counter("fold_restarts", "Times the fold was thrown away")
        self.heard = counter("heard", "Messages handled", "source")
        self.queued = gauge("queued", "Messages heard and not handled yet", "source")
        self.dead_letters = counter("dead_letters", "Messages set aside", "stream")
        self.dead_letters_lost = counter("dead_letters_lost", "Not even set aside", "stream")
        self.slow_consumer = counter("slow_consumer", "Messages dropped unread", "source")
        self.turns = counter("turns", "Times it was this machine's turn")
        self.decisions = counter("decisions", "Entries decided", "type")
        self.offers = counter("offers", "Commits sent")
        self.refusals = counter("refusals", "Offers that somebody else's commit came before")
        self.illegal = counter("offers_illegal", "Offers the fold would not take")
        self.unsettled = counter("appends_unsettled", "Appends without an answer")
        self.projected = counter("projected", "Values written", "bucket")
        self.signals = counter("signals", "Reports of faults by what they were taken for", "kind")
        self.unanswered = gauge("unanswered_failures", "Failed nodes that still belong to a job")
        self.ledger_used = gauge("ledger_used", "How full the ledger's stream is, 0 to 1")
        self.copies = gauge("copies", "Copies of this service that are present")
        self.connected = gauge("bus_connected", "1 while the bus is there")
        self.reconnects = gauge("bus_reconnects", "Reconnects to the bus")
        self.denied = gauge("bus_denied", "Publishes and subscriptions the server refused")
        self.decision_seconds = Histogram(
            "rackwright_decision_seconds",
            "One turn of the machine",
            buckets=DECISION_BUCKETS,
            registry=registry,
        )
        self.append_seconds = Histogram(
            "rackwright_append_seconds",
            "From sending a commit to its being folded here",
            buckets=APPEND_BUCKETS,
            registry=registry,
        )

        # A counter that appears with its first event is none to Prometheus' `increase`, so the
        # alerts would miss that one.
        for party in SAYS:
            self.voids.labels(party.value)
        for stream in SET_ASIDE_OF:
            self.dead_letters.labels(stream)

    def watch(self, standing: Standing, link: Link | None = None) -> None:
        """Take what is known elsewhere from there, whenever somebody asks."""
        self.ready.set_function(lambda: float(standing.ready))
        self.stopped_at.set_function(lambda: float(standing.stopped_at or 0))
        self.revision.set_function(lambda: float(standing.revision))
        self.unanswered.set_function(lambda: float(len(standing.fleet.fresh_faults)))
        self.snapshot_age.set_function(lambda: float(_since_snapshot(standing.fleet)))
        self.copies.set_function(lambda: float(standing.copies[0] if standing.copies else 0))
        if link is not None:
            self.connected.set_function(lambda: float(link.connected))
            self.reconnects.set_function(lambda: float(link.reconnects))
            self.denied.set_function(lambda: float(link.denied))

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


def _since_snapshot(fleet: Fleet) -> int:
    return fleet.seq - max((seq for seq, _ in fleet.verified), default=0)
