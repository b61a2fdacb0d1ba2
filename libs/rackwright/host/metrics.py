"""What a service counts and measures, in a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import generate_latest

DECISION_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
)  # fmt: skip
APPEND_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0)


class Metrics:
    """All metrics of one process. Names begin with `rackwright_`, times are in seconds."""

    def __init__(self, service: str = "", copy: int = 0, cell: str = "") -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"rackwright_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"rackwright_{name}", text, labels, registry=registry)

        self.process = Info("rackwright_service", "Which service this is", registry=registry)
        self.process.info({"service": service, "copy": str(copy), "cell": cell})
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
        self.unanswered = gauge("unanswered_failures", "Failed nodes that still belong to a job")
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

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)
