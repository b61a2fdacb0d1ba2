"""The cell in numbers, and its settings."""

from collections import Counter
from dataclasses import MISSING, Field, fields

from rackwright.core.fleet import Fleet
from rackwright.core.histograms import DAY, HOUR, Histogram
from rackwright.core.jobs import JobState
from rackwright.core.measures import Family
from rackwright.core.occupancy import (
    gpu_states,
    occupancy,
    slurm_fragmentation,
    startable,
)
from rackwright.core.policy.breaker import breaker
from rackwright.core.policy.estimates import Estimate
from rackwright.core.recent import WINDOWS, Recent
from rackwright.gateway import asked, views
from rackwright.gateway.context import Context
from rackwright.gateway.counts import Counts
from rackwright.gateway.firsts import Firsts
from rackwright.gateway.measured import ettr
from rackwright.gateway.metrics import metrics
from rackwright.gateway.standing import Standing, standing
from rackwright.gateway.tallies import node_states, queue, spares_view
from rackwright.wire.entries.job import JobRequeued, JobSuspended
from rackwright.wire.entries.slice import (
    DefragFinished,
    DefragPlanned,
    DefragWithdrawn,
    SliceMoved,
    SliceRestarted,
    SliceSwapped,
)
from rackwright.wire.policy import Policy

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def stats(context: Context, question: asked.Stats) -> views.StatsAnswer:
    """The cell in numbers."""
    fleet, counts, past = context.fleet, context.past.counts, context.past
    states = gpu_states(fleet, context.now)
    found = standing(fleet, context.state, context.now, counts.recent)
    jobs: Counter[str] = Counter({state.value: 0 for state in JobState})
    jobs.update(job.state.value for job in fleet.jobs.values())
    jobs.update(stone.state.value for stone in fleet.tombstones.values())
    stopped_at, stopped_why = context.stopped or (None, "")
    return views.StatsAnswer(
        **context.made(),
        racks=len(fleet.racks),
        installed_nodes=fleet.installed_nodes,
        installed_gpus=fleet.installed_gpus,
        jobs=dict(jobs),
        nodes=node_states(fleet, context.now),
        gpus={state.value: count for state, count in sorted(states.items()) if count},
        occupancy=round(occupancy(states), 4),
        queue=queue(fleet),
        spares=spare_totals(fleet, context.now),
        fragmentation=fragmentation(fleet),
        recoveries=recoveries(counts, context.state.firsts),
        defrags=defrags(fleet, counts),
        work=work(context, found),
        breaker=breaker_view(fleet, context.now),
        reliability=tuple(reliability_view(counts.recent, days, context.now) for days in WINDOWS),
        lemon_share=round(found.lemon_share, 4),
        unanswered_failures=len(fleet.fresh_faults),
        interactive_touched=counts.interactive_touched,
        paused={
            automation.value: until
            for automation, until in sorted(fleet.paused.items())
            if until > context.now
        },
        voids=fleet.voids,
        stopped_at=stopped_at,
        stopped_why=stopped_why,
        complete=past.complete,
        since=past.since,
        metrics=metrics(context) if question.metrics else (),
    )


def breaker_view(fleet: Fleet, now: float) -> views.BreakerView:
    """The breaker now, and who closed it by hand last."""
    state = breaker(fleet, now)
    return views.BreakerView(
        open=state.open,
        culprits=state.culprits,
        limit=state.limit,
        closes_at=state.closes_at,
        closed_by=fleet.closed_by,
        closed_at=fleet.closed_at or None,
    )


def reliability_view(recent: Recent, days: int, now: float) -> views.ReliabilityView:
    """How often nodes and racks failed in the last so many days."""
    found = recent.reliability(days, now)
    return views.ReliabilityView(
        days=days,
        node_mtbf_days=_estimate(found.node_mtbf_days),
        node_mttr_hours=_estimate(found.node_mttr_hours),
        rack_mtbf_days=_estimate(found.rack_mtbf_days),
        rack_faults=found.rack_faults,
    )


def _estimate(found: Estimate) -> dict[str, float | None]:
    figures = {"value": found.value, "low": found.low, "high": found.high}
    return {name: None if one is None else round(one, 3) for name, one in figures.items()}


def spare_totals(fleet: Fleet, now: float) -> views.SpareTotals:
    """Spares of the whole cell."""
    found = [spares_view(rack, now) for rack in fleet.racks.values()]
    return views.SpareTotals(
        wanted=sum(one.wanted for one in found),
        free=sum(one.free for one in found),
        lent=sum(one.lent for one in found),
        short=sum(one.short for one in found),
        probation=sum(one.probation for one in found),
        racks_without=sum(bool(one.wanted and not one.free) for one in found),
    )


def fragmentation(fleet: Fleet) -> views.Fragmentation:
    """What could start now."""
    found = startable(fleet)
    return views.Fragmentation(
        startable={str(size): count for size, count in found.slices.items()},
        free_above_spares=found.room,
        whole_racks=found.whole,
        broken_racks=found.broken,
        pinned_racks=found.pinned,
        fragmentation=round(found.fragmentation, 4),
        slurm_fragmentation=slurm_fragmentation(fleet),
    )


def recoveries(counts: Counts, firsts: Firsts) -> views.Recoveries:
    """What recovery did."""
    rungs: Counter[str] = Counter()
    for (rung, _), count in counts.rungs.items():
        rungs[rung] += count
    return views.Recoveries(
        rungs=dict(sorted(rungs.items())),
        swaps=counts.of(SliceSwapped),
        swapped_nodes=counts.swapped_nodes,
        moves=counts.of(SliceMoved),
        restarts=counts.of(SliceRestarted),
        requeues=counts.of(JobRequeued),
        suspended=counts.of(JobSuspended),
        swap_s=_shares(counts.to_swap),
        rejoin_s=_shares(counts.to_rejoin),
        start_s=_shares(_together(firsts.to_start)),
        progress_s=_shares(_together(firsts.to_progress)),
        stalled_gpu_hours={
            rung: round(hours, 3)
            for (rung,), hours in sorted(counts.measures.stalled_gpu_h.items())
        },
    )


def _shares(histogram: Histogram) -> dict[str, float]:
    """Upper bounds of the usual shares; those beyond the last bound are left out."""
    found = {name: histogram.quantile(share) for name, share in SHARES.items()}
    return {name: value for name, value in found.items() if value is not None}


def defrags(fleet: Fleet, counts: Counts) -> views.Defrags:
    """What defragmentation did."""
    return views.Defrags(
        planned=counts.of(DefragPlanned),
        withdrawn=counts.of(DefragWithdrawn),
        finished=counts.of(DefragFinished),
        victims=counts.victims,
        cost_gpu_h=round(counts.cost_gpu_h, 3),
        benefit_gpu_h=round(counts.benefit_gpu_h, 3),
        optimality_gap=counts.optimality_gap,
        over=counts.plans.plans,
        over_gpu_h=round(counts.plans.estimated, 3),
        actual_gpu_h=round(counts.plans.actual, 3),
        in_flight=tuple(sorted(fleet.plans)),
    )


def work(context: Context, found: Standing) -> views.Work:
    """What became of the cell's time."""
    counts = context.past.counts
    accounts, measures = counts.accounts, counts.measures
    days = accounts.racks_s / DAY
    blocked: Counter[str] = Counter()
    for (cause, _), seconds in measures.blocked_gpu_s.items():
        blocked[cause] += round(seconds / 36.0)
    return views.Work(
        installed_gpu_hours=round(accounts.installed_s / HOUR, 2),
        gpu_hours={
            state.value: round(seconds / HOUR, 2)
            for state, seconds in accounts.seconds.items()
            if round(seconds / HOUR, 2)
        },
        goodput=round(accounts.goodput(), 4),
        training_goodput=round(accounts.training_goodput(), 4),
        availability=round(found.available, 4),
        ettr={size: round(ratio, 4) for size, ratio in ettr(accounts).items()},
        wait_s=_shares(_together(measures.queue_wait)),
        recover_s=_shares(_together(measures.to_recover)),
        blocked_gpu_hours={cause: hundredths / 100 for cause, hundredths in blocked.items()},
        spare_exhaustions=measures.exhausted,
        exhaustions_per_1000_rack_days=round(1000 * measures.exhausted / days, 3) if days else 0.0,
        exhaustions_expected=None if found.expected is None else round(found.expected, 3),
        rack_s={how: _shares(one) for (how,), one in sorted(measures.to_rack.by.items())},
        checkpoint_overdue=found.checkpoint_overdue,
        repair_overdue=sum(found.repair_overdue.values()),
        starved=found.starved,
    )


def _together(family: Family) -> Histogram:
    joined = Histogram(family.bounds)
    for one in family.by.values():
        joined.join(one)
    return joined


def policy(context: Context, question: asked.PolicyAsked) -> views.PolicyAnswer:
    """The settings, and what each is for."""
    return views.PolicyAnswer(
        **context.made(),
        policy=context.fleet.policy,
        knobs={field.name: _knob(field) for field in fields(Policy)},
    )


def _knob(field: "Field[object]") -> views.Knob:
    default = field.default
    if default is MISSING:
        default = None if field.default_factory is MISSING else field.default_factory()
    if isinstance(default, tuple):
        default = list(default)  # as JSON has it
    return views.Knob(unit=field.metadata["unit"], why=field.metadata["why"], default=default)
