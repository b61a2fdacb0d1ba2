"""The cell's metrics as an answer: by topic, with what histograms say in three figures.

The families are those that Prometheus reads, so whatever is counted is in both.
"""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from rackwright.gateway.context import Context
from rackwright.gateway.families import families
from rackwright.gateway.views import MetricValue, MetricView

MOST = 40  # values of one metric in an answer
PREFIX = "rackwright_"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "cell": (
        "installed_gpus", "gpus", "nodes", "jobs", "occupancy", "availability", "paused_seconds",
        "history_complete", "ready_copies",
    ),
    "time": (
        "gpu_hours", "goodput", "training_goodput", "ettr", "checkpoint_age_seconds",
        "checkpoint_overdue_jobs", "idle_interactive_gpus",
    ),
    "waiting": (
        "queue_depth", "blocked_jobs", "blocked_gpus", "blocked_seconds", "blocked_gpu_seconds",
        "queue_wait_seconds", "bounded_slowdown", "time_to_rack_seconds", "starved_jobs",
        "share_gpu_hours", "share_weight", "queue_gpus", "queue_guaranteed_gpus",
        "queue_borrowed_gpus",
    ),
    "room": (
        "startable_segments", "idle_by_segment", "fragmentation", "slurm_fragmentation",
        "whole_racks", "broken_racks", "pinned_racks", "pin_amplification", "broken_whole_racks",
        "cross_rack_slices", "racks_used_ratio", "blocks_used_ratio",
    ),
    "spares": (
        "spares_wanted", "spares_free", "spares_lent", "spares_short", "spares_probation",
        "racks_with_0_spares", "spare_exhaustions", "spare_exhaustions_per_1000_rack_days",
        "spare_exhaustions_expected_per_1000_rack_days", "swap_failures",
    ),
    "recovery": (
        "wounded_jobs", "time_to_detect_seconds", "time_to_swap_seconds", "time_to_start_seconds",
        "time_to_rejoin_seconds", "time_to_recover_seconds", "time_to_progress_seconds",
        "stalled_gpu_hours", "rung", "swaps", "swapped_nodes", "moves", "requeues",
    ),
    "defrag": (
        "defrag_plans", "defrag_withdrawn", "defrag_finished", "defrag_victims",
        "defrag_est_gpu_h", "defrag_benefit_gpu_h", "defrag_bounded_est_gpu_h",
        "defrag_bound_gpu_h", "defrag_optimality_gap", "defrag_over", "defrag_over_est_gpu_h",
        "defrag_actual_gpu_h", "preemptions_24h_max", "preemptions_24h_p99",
        "jobs_at_preemption_limit", "interactive_touched", "interactive_lost",
    ),
    "health": (
        "culprits", "mtbf_node_days", "mttr_node_hours", "mtbf_rack_days", "rack_faults",
        "lemon_share", "time_to_repair_seconds", "repair_overdue", "breaker_open",
        "breaker_culprits",
    ),
    "system": ("unanswered_failures", "snapshot_age_commits", "voids"),
}  # fmt: skip
"""Topics in the order in which they are shown, with the names of their metrics."""


def metrics(context: Context) -> tuple[MetricView, ...]:
    """All of them, in the order of `GROUPS`."""
    found = {
        family.name.removeprefix(PREFIX): family
        for family in (*families(context), *_system(context))
    }
    return tuple(_view(group, found[name]) for group, names in GROUPS.items() for name in names)


def _system(context: Context) -> Iterator[Metric]:
    """What every process has in its own metrics, of the fold that answers."""
    fleet = context.fleet
    verified = max((seq for seq, _ in fleet.verified), default=0)
    for name, text, value in (
        ("unanswered_failures", "Failed nodes that still belong to a job", len(fleet.fresh_faults)),
        ("snapshot_age_commits", "Commits since the newest verified one", fleet.seq - verified),
        ("voids", "Commits that had no effect", fleet.voids),
    ):
        yield GaugeMetricFamily(f"{PREFIX}{name}", text, value=float(value))


def _view(group: str, family: Metric) -> MetricView:
    kind = family.type
    values = _spreads(family.samples) if kind == "histogram" else _summed(family.samples)
    if len(values) > MOST:
        values = sorted(values, key=lambda one: (-one.value, sorted(one.labels.items())))
    return MetricView(
        name=family.name,
        group=group,
        kind=kind,
        text=family.documentation,
        values=tuple(values[:MOST]),
        more=max(0, len(values) - MOST),
    )


def _summed(samples: Iterable[Sample]) -> list[MetricValue]:
    """Values by labels; `rackwright racks` has those of single racks."""
    found: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        key = tuple((name, text) for name, text in sample.labels.items() if name != "rack")
        found[key] = found.get(key, 0.0) + sample.value
    return [MetricValue(labels=dict(key), value=round(value, 4)) for key, value in found.items()]


def _spreads(samples: Iterable[Sample]) -> list[MetricValue]:
    """Histograms by labels. A family's samples are buckets in rising order, and then their sum."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        key = tuple((name, text) for name, text in sample.labels.items() if name != "le")
        if sample.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[key] = sample.value
    return [_spread(dict(key), pairs, sums[key]) for key, pairs in buckets.items()]


def _spread(labels: dict[str, str], pairs: list[tuple[float, float]], total: float) -> MetricValue:
    count = int(pairs[-1][1])

    def bound(share: float) -> float | None:
        found = next((most for most, below in pairs if count and below >= share * count), None)
        return None if found == float("inf") else found

    return MetricValue(
        labels=labels,
        value=round(total / count, 4) if count else 0.0,
        count=count,
        p50=bound(0.5),
        p90=bound(0.9),
        p99=bound(0.99),
    )
