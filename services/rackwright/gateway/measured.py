"""Metrics from the accounts and measures of the ledger, and from how the cell stands now.

Names and meanings are those of docs/api.md.
"""

from collections.abc import Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from rackwright.core.accounts import Accounts, BandTime, band
from rackwright.core.fleet import Fleet
from rackwright.core.histograms import DAY, HOUR
from rackwright.core.measures import Family, Labels, Measures
from rackwright.core.policy.breaker import breaker
from rackwright.core.policy.estimates import Estimate
from rackwright.core.policy.fairness import decayed, deserved
from rackwright.core.recent import WINDOWS, Recent
from rackwright.gateway.context import Context
from rackwright.gateway.firsts import Firsts
from rackwright.gateway.standing import standing


def measured(context: Context) -> Iterator[Metric]:
    """All of them."""
    counts = context.past.counts
    yield from _accounts(counts.accounts)
    yield from _measures(counts.measures, counts.accounts)
    yield from _reliability(counts.recent, context.now)
    yield from _standing(context)
    yield from _firsts(context.state.firsts)
    yield from _shares(context.fleet, context.now)


def _gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(f"rackwright_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(f"rackwright_{name}", text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histograms(name: str, text: str, labels: Labels, found: Family) -> Metric:
    family = HistogramMetricFamily(f"rackwright_{name}", text, labels=labels)
    for key, one in found.by.items():
        family.add_metric(key, buckets=one.cumulative(), sum_value=one.total)
    return family


def _ones(values: Mapping[str, float]) -> dict[Labels, float]:
    return {(key,): float(value) for key, value in values.items()}


def ettr(accounts: Accounts) -> dict[str, float]:
    """Effective training time ratio of all jobs so far, by band."""
    bands: dict[str, BandTime] = {}
    for size, total in accounts.bands.items():
        bands.setdefault(size, BandTime()).join(total)
    for known in accounts.jobs.values():
        part = BandTime(useful_s=known.useful_s, lost_s=known.lost_s, wall_s=known.wall_s)
        bands.setdefault(band(known.gpus), BandTime()).join(part)
    return {size: total.ettr for size, total in sorted(bands.items()) if total.wall_s}


def _accounts(accounts: Accounts) -> Iterator[Metric]:
    hours = {state.value: seconds / HOUR for state, seconds in accounts.seconds.items()}
    yield _gauge("gpu_hours", "GPU-hours by what GPUs did", ("state",), _ones(hours))
    yield _gauge("goodput", "Useful of all GPU-hours", (), {(): accounts.goodput()})
    text = "Useful of the GPU-hours that jobs had"
    yield _gauge("training_goodput", text, (), {(): accounts.training_goodput()})
    yield _gauge("ettr", "Useful of jobs' time since start", ("band",), _ones(ettr(accounts)))


def _measures(found: Measures, accounts: Accounts) -> Iterator[Metric]:
    queue = ("band", "class", "queue")
    for name, text, labels, family in (
        ("queue_wait_seconds", "Submit to first start", queue, found.queue_wait),
        ("bounded_slowdown", "(wait + run) / run", ("band",), found.slowdown),
        ("time_to_detect_seconds", "Fault to its entry", ("signal",), found.to_detect),
        ("time_to_recover_seconds", "Wound to all ranks up", ("rung",), found.to_recover),
        ("time_to_rack_seconds", "First block to placement", ("how",), found.to_rack),
        ("time_to_repair_seconds", "Out to in service", (), found.to_repair),
    ):
        yield _histograms(name, text, labels, family)
    cause = ("cause", "band")
    yield _counter("blocked_seconds", "Job-seconds blocked", cause, found.blocked_s)
    yield _counter("blocked_gpu_seconds", "GPU-seconds blocked", cause, found.blocked_gpu_s)
    text = "GPU-hours of wounded jobs that stood still"
    yield _counter("stalled_gpu_hours", text, ("rung",), found.stalled_gpu_h)
    yield _counter("culprits", "Nodes out, by signal", ("signal",), _ones(found.faults))
    text = "Placements that broke a whole rack"
    yield _counter("broken_whole_racks", text, ("class",), _ones(found.broke_whole))
    yield _counter("swap_failures", "Ranks not up in time", (), {(): float(found.dead_spares)})
    exhausted = float(found.exhausted)
    yield _counter("spare_exhaustions", "No spare, free or lent", (), {(): exhausted})
    days = accounts.racks_s / DAY
    rate = exhausted / days * 1000.0 if days else 0.0
    yield _gauge("spare_exhaustions_per_1000_rack_days", "The same as a rate", (), {(): rate})


def _firsts(found: Firsts) -> Iterator[Metric]:
    text = "Wound to a new worker running, heard by this process"
    yield _histograms("time_to_start_seconds", text, ("rung",), found.to_start)
    text = "Wound to progress of its job, heard by this process"
    yield _histograms("time_to_progress_seconds", text, ("rung",), found.to_progress)


def _reliability(recent: Recent, now: float) -> Iterator[Metric]:
    """Of 30 and 90 days; bounds that are not known are left out."""
    found = {f"{days}d": recent.reliability(days, now) for days in WINDOWS}
    for name, text, estimates in (
        (
            "mtbf_node_days",
            "Between failures of a node",
            {window: one.node_mtbf_days for window, one in found.items()},
        ),
        (
            "mttr_node_hours",
            "A node is away",
            {window: one.node_mttr_hours for window, one in found.items()},
        ),
        (
            "mtbf_rack_days",
            "Between failures of a rack",
            {window: one.rack_mtbf_days for window, one in found.items()},
        ),
    ):
        yield _gauge(name, text, ("window", "bound"), _bounds(estimates))
    faults = {window: float(one.rack_faults) for window, one in found.items()}
    yield _gauge("rack_faults", "Failures of whole racks", ("window",), _ones(faults))


def _bounds(estimates: Mapping[str, Estimate]) -> dict[Labels, float]:
    return {
        (window, bound): value
        for window, one in estimates.items()
        for bound, value in (("value", one.value), ("low", one.low), ("high", one.high))
        if value is not None
    }


def _standing(context: Context) -> Iterator[Metric]:
    fleet, now = context.fleet, context.now
    found = standing(fleet, context.state, now, context.past.counts.recent)
    for name, text, value in (
        ("availability", "Share of GPUs fully fit and schedulable", found.available),
        ("pin_amplification", "GPUs that pinned work keeps, each", found.pin_amplification),
        ("preemptions_24h_max", "Most a job was stopped", found.preempted_most),
        ("preemptions_24h_p99", "99 of 100 jobs were stopped no more", found.preempted_p99),
        ("lemon_share", "Nodes that only a person lets in again", found.lemon_share),
        ("jobs_at_preemption_limit", "Jobs stopped often enough", found.at_limit),
        ("starved_jobs", "Priorities with a starved job", found.starved),
        ("cross_rack_slices", "Slices not in one rack", found.cross_rack),
        ("racks_used_ratio", "Racks used / fewest possible", found.racks_ratio),
        ("blocks_used_ratio", "Blocks used / fewest possible", found.blocks_ratio),
        ("checkpoint_age_seconds", "Mean by GPUs", found.checkpoint_age_s),
        ("idle_interactive_gpus", "Of jobs that use none of theirs", found.idle_interactive),
        ("checkpoint_overdue_jobs", "Beyond two intervals", found.checkpoint_overdue),
    ):
        yield _gauge(name, text, (), {(): float(value)})
    expected: dict[Labels, float] = {}
    if found.expected is not None:
        expected[()] = found.expected
    name, text = "spare_exhaustions_expected_per_1000_rack_days", "The planner's expectation"
    yield _gauge(name, text, (), expected)
    idle = {str(size): float(nodes) for size, nodes in found.idle.items()}
    yield _gauge("idle_by_segment", "Idle nodes in no segment", ("size",), _ones(idle))
    late = _ones({action: float(count) for action, count in found.repair_overdue.items()})
    yield _gauge("repair_overdue", "Repairs unanswered for too long", ("action",), late)
    state = breaker(fleet, now)
    yield _gauge("breaker_open", "Inferred failures are not acted on", (), {(): float(state.open)})
    yield _gauge("breaker_culprits", "Culprits in its window", (), {(): float(state.culprits)})


def _shares(fleet: Fleet, now: float) -> Iterator[Metric]:
    used: dict[Labels, float] = {}
    weights: dict[Labels, float] = {}
    for account, usage in sorted(fleet.usage.items(), key=lambda one: one[0]):
        used[account] = decayed(usage, fleet.policy, now)
        weights[account] = deserved(fleet.policy, account)
    labels = ("queue", "owner")
    yield _gauge("share_gpu_hours", "Decayed GPU-hours", labels, used)
    yield _gauge("share_weight", "What is deserved", labels, weights)
