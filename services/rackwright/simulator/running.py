"""Runs one policy on one workload and gathers its result, as plain values for JSON."""

import gc
import json
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.occupancy import GpuState
from rackwright.host.steps import Step
from rackwright.simulator.cell import SimCell
from rackwright.simulator.failures import FailureModel
from rackwright.simulator.metrics import Ended, Happening, Metrics, Sample
from rackwright.simulator.policies import Setup
from rackwright.simulator.stopping import Stop
from rackwright.simulator.timing import Timing
from rackwright.simulator.workload import DAY, HOUR, SimJob
from rackwright.wire.nodes import RackSpec

SLICE_S = HOUR  # of virtual time between two looks at the outside
RARELY = (100_000, 50, 100)  # a run makes many small values and hardly any cycle
SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run. `span_s`: for so long, None: until every job has ended. From `warm_s` on it is
    counted. `most_s` bounds a run that never ends by itself."""

    racks: tuple[RackSpec, ...]
    failures: FailureModel
    timing: Timing = Timing()
    seed: int = 1
    span_s: float | None = None
    warm_s: float = 0.0
    most_s: float = 3650 * DAY


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One policy's run: what came of it as plain values, the cell each hour, what happened when,
    and each job that ended. `partial`: it was stopped before its end."""

    setup: Setup
    result: dict[str, Any]
    samples: list[Sample]
    happenings: list[Happening]
    ended: list[Ended]
    partial: bool = False


Progress = Callable[[SimCell, float], None]
Watch = Callable[[Fleet, Step], None]


def run(
    setup: Setup,
    jobs: Iterable[SimJob],
    plan: Plan,
    *,
    told: Progress = lambda _cell, _at: None,
    watchers: Sequence[Watch] = (),
    recorders: Sequence[Watch] = (),
    stop: Stop | None = None,
) -> Outcome:
    """Run it. `stop` ends it early with what there is, marked as partial."""
    stop = stop or Stop()
    cell = SimCell(
        setup=setup,
        racks=plan.racks,
        failures=plan.failures,
        timing=plan.timing,
        seed=plan.seed,
        watchers=list(watchers),
        recorders=list(recorders),
    )
    began = time.process_time()
    cell.begin(jobs)
    stop.heard.append(cell.engine.halt)
    metrics = Metrics(start=cell.engine.now, warm_s=plan.warm_s, runs=cell.world.runs)
    cell.watchers.append(metrics.watch)
    cell.ended = lambda one, state: metrics.over(one, state, cell.engine.now)
    before = dict.fromkeys(GpuState, 0.0)
    installed = work = 0.0
    collected = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        while not stop.asked and not _over(cell, metrics, plan):
            at = cell.engine.now - metrics.start
            if at >= plan.warm_s and not installed and plan.warm_s:
                _settle(cell)
                before, installed = dict(cell.accounts.seconds), cell.accounts.installed_s
                work = cell.world.work_done()
            metrics.sample(cell.ledger.fleet, cell.engine.now)
            cell.run(cell.engine.now + SLICE_S)
            told(cell, cell.engine.now - metrics.start)
    finally:
        gc.set_threshold(*collected)
        stop.heard.remove(cell.engine.halt)
    partial = stop.asked and not _over(cell, metrics, plan)
    _settle(cell)
    seconds = {state: cell.accounts.seconds[state] - before[state] for state in GpuState}
    result = _result(cell, metrics, plan, seconds, cell.accounts.installed_s - installed)
    there = result["installed_gpu_s"] - seconds[GpuState.MAINTENANCE]
    result["work_goodput"] = (cell.world.work_done() - work) / there if there else 0.0
    result["partial"] = partial
    result["cpu_s"] = round(time.process_time() - began, 3)
    return Outcome(
        setup=setup,
        result=result,
        samples=metrics.samples,
        happenings=metrics.happenings,
        ended=metrics.ended,
        partial=partial,
    )


def _settle(cell: SimCell) -> None:
    cell.stage.tick()
    if cell.engine.now > cell.accounts.at:
        cell.accounts.run(cell.ledger.fleet, cell.engine.now)


def _over(cell: SimCell, metrics: Metrics, plan: Plan) -> bool:
    at = cell.engine.now - metrics.start
    if plan.span_s is not None:
        return at >= plan.span_s
    return (cell.exhausted and not cell.world.runs) or at >= plan.most_s


def _result(
    cell: SimCell, metrics: Metrics, plan: Plan, seconds: dict[GpuState, float], installed: float
) -> dict[str, Any]:
    useful = seconds[GpuState.USEFUL] + seconds[GpuState.LENT_USEFUL]
    lost, maintenance = seconds[GpuState.LOST], seconds[GpuState.MAINTENANCE]
    there = installed - maintenance
    had = useful + lost + seconds[GpuState.RESTARTING] + seconds[GpuState.STALLED]
    waiting = [one for one in cell.world.runs.values() if one.first_placed is None]
    late = [cell.engine.now - one.submitted for one in waiting]
    installed_gpus = cell.ledger.fleet.installed_gpus
    return {
        "policy": cell.setup.name,
        "about": cell.setup.text,
        "seed": plan.seed,
        "seconds": cell.engine.now - metrics.start,
        "warm_s": plan.warm_s,
        "installed_gpu_s": installed,
        "gpu_s": {state.value: value for state, value in seconds.items()},
        "goodput": useful / there if there else 0.0,
        "training_goodput": useful / had if had else 1.0,
        "utilisation": had / there if there else 0.0,
        "jobs": _jobs(metrics.ended, cell, len(waiting), late),
        "wait_s": _by(metrics.ended, lambda one: one.wait_s),
        "completion_s": _by(metrics.ended, lambda one: one.completion_s),
        "bounded_slowdown": _by(metrics.ended, lambda one: one.slowdown),
        "recovery": {
            "swaps": metrics.counts["slice.swapped"],
            "moves": metrics.counts["slice.moved"],
            "restarts_in_place": metrics.counts["slice.restarted"],
            "requeues": metrics.counts["job.requeued"],
            "suspended": metrics.counts["job.suspended"],
        },
        "defragmentation": {
            "plans": metrics.counts["defrag.planned"],
            "withdrawn": metrics.counts["defrag.withdrawn"],
            "preempted": metrics.preempted,
            "estimated_gpu_h": metrics.cost_gpu_h,
            "victims_lost_gpu_h": metrics.victims_lost_gpu_h,
        },
        "interactive_touched": metrics.touched,
        "cross_rack_slices": cell.world.cross_rack,
        "blocked": dict(sorted(metrics.causes.items())),
        "time_to_rack_s": {
            how: {"count": len(found), **quantiles(found)}
            for how, found in sorted(metrics.to_rack.items())
        },
        "still_blocked": len(metrics.blocked),
        "fragmentation_mean": _mean([one.fragmentation for one in _counted(metrics, plan)]),
        "block_fragmentation_mean": _mean(
            [float(one.block_fragmentation) for one in _counted(metrics, plan)]
        ),
        "idle_while_waiting": _idle_while_waiting(_counted(metrics, plan), installed_gpus),
        "queued_gpus_mean": _mean([float(one.queued_gpus) for one in _counted(metrics, plan)]),
        "faults": asdict(cell.faults.counts),
        "engine": {
            "events": cell.engine.handled,
            "commits": cell.ledger.fleet.seq,
            "voids": metrics.voids,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
    }


def _counted(metrics: Metrics, plan: Plan) -> list[Sample]:
    return [one for one in metrics.samples if one.at >= plan.warm_s]


def _idle_while_waiting(samples: Sequence[Sample], installed: int) -> float:
    """Share of all GPUs that were well and idle in hours in which a job waited, over all hours."""
    idle = [one.idle_gpus * (one.queued > 0) / installed for one in samples]
    return _mean(idle)


def _jobs(
    ended: Sequence[Ended], cell: SimCell, waiting: int, late: Sequence[float]
) -> dict[str, Any]:
    states: dict[str, int] = {}
    for one in ended:
        states[one.state] = states.get(one.state, 0) + 1
    return {
        "submitted": cell.submitted,
        **dict(sorted(states.items())),
        "alive": len(cell.world.runs),
        "never_placed": waiting,
        "longest_unplaced_s": max(late, default=0.0),
    }


def _by(ended: Sequence[Ended], figure: Callable[[Ended], float]) -> dict[str, Any]:
    """Quantiles by size and by class, of jobs that finished."""
    groups: dict[str, list[float]] = {}
    for one in ended:
        if one.state != "finished":
            continue
        size = ("over 64 GPUs",) if one.gpus > 64 else ()
        for name in ("all", *size, f"{one.band} GPUs", one.job_class):
            groups.setdefault(name, []).append(figure(one))
    return {
        name: {"jobs": len(found), **quantiles(found)} for name, found in sorted(groups.items())
    }


def quantiles(found: Sequence[float]) -> dict[str, float]:
    """p50, p90 and p99: the least value not exceeded by that share; none of nothing."""
    if not found:
        return {}
    ordered = sorted(found)
    last = len(ordered) - 1
    return {f"p{round(100 * q)}": ordered[min(last, int(q * len(ordered)))] for q in SHARES}


def _mean(found: Sequence[float]) -> float:
    return sum(found) / len(found) if found else 0.0


def as_json(result: dict[str, Any]) -> str:
    """The result as stable JSON."""
    return json.dumps(result, indent=1, sort_keys=True)
