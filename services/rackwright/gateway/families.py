"""The cell's metrics: gauges from the fleet, counters and histograms from the chronicle.

Names and meanings are those of docs/api.md; `/metrics` and `rackwright stats` have the same.
"""

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from rackwright.core.fleet import Fleet
from rackwright.core.histograms import Histogram
from rackwright.core.jobs import JobState
from rackwright.core.occupancy import gpu_states, occupancy, slurm_fragmentation, startable
from rackwright.core.policy.guarantees import borrowed, guaranteed, used
from rackwright.core.shares import Limited
from rackwright.gateway.context import Context
from rackwright.gateway.counts import Counts
from rackwright.gateway.measured import measured
from rackwright.gateway.tallies import node_states, queue, spares_view
from rackwright.wire.entries.job import JobRequeued
from rackwright.wire.entries.slice import (
    DefragFinished,
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceSwapped,
)
from rackwright.wire.ids import QueueName
from rackwright.wire.policy import Automation
from rackwright.wire.reasons import Cause


def families(context: Context) -> Iterator[Metric]:
    """All of them, computed now."""
    yield from _fleet(context.fleet, context.now)
    yield from _racks(context.fleet, context.now)
    yield from _services(context)
    yield from _counted(context)
    yield from measured(context)


def _services(context: Context) -> Iterator[Metric]:
    """Who answers, of every service."""
    ready = {one.service: float(sum(c.answer.ready for c in one.copies)) for one in context.present}
    yield _gauges("ready_copies", "Copies that answer and may decide", "service", ready)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"rackwright_{name}", text, value=value)


def _gauges(name: str, text: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"rackwright_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"rackwright_{name}", text, value=value)


def _histogram(name: str, text: str, found: Histogram) -> Metric:
    family = HistogramMetricFamily(f"rackwright_{name}", text)
    family.add_metric([], buckets=found.cumulative(), sum_value=found.total)
    return family


def _fleet(fleet: Fleet, now: float) -> Iterator[Metric]:
    states = gpu_states(fleet, now)
    jobs = dict.fromkeys((state.value for state in JobState), 0.0)
    for job in fleet.jobs.values():
        jobs[job.state.value] += 1
    yield _gauge("installed_gpus", "GPUs of the cell", fleet.installed_gpus)
    yield _gauges("gpus", "GPUs by what they do", "state", {k.value: v for k, v in states.items()})
    nodes = {state: float(count) for state, count in node_states(fleet, now).items()}
    yield _gauges("nodes", "Nodes by state", "state", nodes)
    yield _gauge("occupancy", "Share of schedulable GPUs that have work", occupancy(states))
    living = {state: count for state, count in jobs.items() if count or state in _LIVING}
    yield _gauges("jobs", "Living jobs by state", "state", living)
    yield _gauge("queue_depth", "Jobs that wait", len(fleet.queued))
    yield _gauge("wounded_jobs", "Jobs with a rank that has no good place", len(fleet.wounded))
    found = queue(fleet)
    causes = [*Cause, "none"]
    waiting = {cause: found.get(cause) for cause in causes}
    yield _gauges(
        "blocked_jobs",
        "Queued jobs by cause",
        "cause",
        {cause: float(one.jobs if one else 0) for cause, one in waiting.items()},
    )
    yield _gauges(
        "blocked_gpus",
        "GPUs that queued jobs ask for, by cause",
        "cause",
        {cause: float(one.gpus if one else 0) for cause, one in waiting.items()},
    )
    yield _gauges(
        "paused_seconds",
        "How long an automation is paused still; all: the cell is read only",
        "automation",
        {one.value: max(0.0, fleet.paused.get(one, 0.0) - now) for one in Automation},
    )
    yield from _queues(fleet)
    yield from _room(fleet)


def _queues(fleet: Fleet) -> Iterator[Metric]:
    """Of queues that have GPUs or are promised some."""
    names = {QueueName(name) for what, name in fleet.counts if what is Limited.QUEUE}
    queues = sorted(names | set(fleet.policy.queue_guarantee))
    for name, text, of in (
        ("queue_gpus", "GPUs that a queue has, those on lent spares apart", used),
        ("queue_guaranteed_gpus", "GPUs that a queue is promised", guaranteed),
        ("queue_borrowed_gpus", "GPUs that a queue has beyond what it is promised", borrowed),
    ):
        yield _gauges(name, text, "queue", {one: float(of(fleet, one)) for one in queues})


_LIVING = frozenset({"queued", "placed", "running", "finishing", "suspended"})


def _room(fleet: Fleet) -> Iterator[Metric]:
    found = startable(fleet)
    slices = {str(size): float(count) for size, count in found.slices.items()}
    yield _gauges("startable_segments", "Slices that could start now, by nodes", "size", slices)
    yield _gauge("fragmentation", "1 - slice x startable / free above spares", found.fragmentation)
    text = "Slurm's metric of its block topology, of the racks as base blocks"
    yield _gauge("slurm_fragmentation", text, slurm_fragmentation(fleet))
    yield _gauge("whole_racks", "Racks able to take a full slice", found.whole)
    yield _gauge("broken_racks", "Racks not able to take a full slice now", found.broken)
    yield _gauge("pinned_racks", "Racks that pinned work keeps from a full slice", found.pinned)


def _racks(fleet: Fleet, now: float) -> Iterator[Metric]:
    """Spares by rack, of racks that want or lend some."""
    texts = {
        "spares_wanted": "Spares wanted beside protected slices, in nodes",
        "spares_free": "Of those, free to swap",
        "spares_lent": "Spares lent to small work",
        "spares_short": "Spares missing: neither free nor lent",
        "spares_probation": "Free nodes on probation, spares of last choice",
    }
    families = {
        name: GaugeMetricFamily(f"rackwright_{name}", text, labels=["rack"])
        for name, text in texts.items()
    }
    none = 0
    for number in sorted(fleet.racks):
        rack = fleet.racks[number]
        spares = spares_view(rack, now)
        none += bool(spares.wanted and not spares.free)
        if not spares.wanted and not spares.lent:
            continue
        counted = (spares.wanted, spares.free, spares.lent, spares.short, spares.probation)
        for family, count in zip(families.values(), counted, strict=True):
            family.add_metric([rack.spec.rack], count)
    yield from families.values()
    yield _gauge("racks_with_0_spares", "Racks with a protected slice and no free spare", none)


def _counted(context: Context) -> Iterator[Metric]:
    counts = context.past.counts
    complete = float(context.past.complete)
    yield _gauge("history_complete", "1 when the ledger has been read back", complete)
    rungs = CounterMetricFamily(
        "rackwright_rung",
        "Rungs of the recovery ladder taken, and why the one above was not",
        labels=["rung", "above_skipped"],
    )
    for (rung, above), count in sorted(counts.rungs.items()):
        rungs.add_metric([rung, above], count)
    yield rungs
    yield from _totals(counts)
    gap = GaugeMetricFamily(
        "rackwright_defrag_optimality_gap",
        "Share of the cost of plans beyond what none could have cost less than",
        labels=[],
    )
    if counts.optimality_gap is not None:
        gap.add_metric([], counts.optimality_gap)
    yield gap
    yield _histogram(
        "time_to_swap_seconds", "First wound -> the entry that answers it", counts.to_swap
    )
    yield _histogram(
        "time_to_rejoin_seconds", "First wound -> all ranks of the answer run", counts.to_rejoin
    )


def _totals(counts: Counts) -> Iterator[Metric]:
    for name, text, value in (
        ("swaps", "Slices swapped", counts.of(SliceSwapped)),
        ("swapped_nodes", "Nodes swapped", counts.swapped_nodes),
        ("moves", "Slices moved to another rack", counts.of(SliceMoved)),
        ("requeues", "Jobs put back into the queue", counts.of(JobRequeued)),
        ("defrag_plans", "Plans made", counts.of(DefragPlanned)),
        ("defrag_withdrawn", "Plans withdrawn", counts.of(DefragWithdrawn)),
        ("defrag_finished", "Plans carried out", counts.of(DefragFinished)),
        ("defrag_victims", "Jobs that made room by a plan", counts.victims),
        ("defrag_est_gpu_h", "Cost of plans as estimated, GPU-hours", counts.cost_gpu_h),
        ("defrag_benefit_gpu_h", "Benefit of plans as estimated", counts.benefit_gpu_h),
        ("defrag_bounded_est_gpu_h", "Cost of plans with a bound", counts.bounded_gpu_h),
        ("defrag_bound_gpu_h", "What no plan could have cost less than", counts.bound_gpu_h),
        ("defrag_over", "Plans of which the cost is known", counts.plans.plans),
        ("defrag_over_est_gpu_h", "What those were estimated at", counts.plans.estimated),
        ("defrag_actual_gpu_h", "What those have cost, GPU-hours", counts.plans.actual),
        ("interactive_touched", "Interactive jobs evicted or moved", counts.interactive_touched),
        ("interactive_lost", "Interactive jobs that hardware took down", counts.interactive_lost),
    ):
        yield _counter(name, text, value)
