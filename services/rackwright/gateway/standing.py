"""How the cell stands now: numbers that take a look at every node and job, for metrics and stats.

Names and meanings are those of docs/api.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.occupancy import startable
from rackwright.core.policy.capacity import (
    DAYS_PER_YEAR,
    HOURS_PER_DAY,
    reliability,
    unswappable_per_year,
)
from rackwright.core.policy.cut import Cut, cut, whole_slice
from rackwright.core.policy.pinning import OVERDUE_INTERVALS
from rackwright.core.policy.prices import gpus_of, recently_stopped
from rackwright.core.policy.probation import history, lemon
from rackwright.core.policy.starvation import starved
from rackwright.core.recent import Recent, Reliability
from rackwright.gateway.machine import State
from rackwright.wire.jobs import JobClass, TopologyNeed
from rackwright.wire.nodes import Fitness, RepairAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """available: share of installed GPUs that are fully fit and schedulable. idle: idle nodes in no
    startable segment, by its size. pin_amplification: GPUs of racks that pinned work keeps from a
    full slice, per pinned GPU. preempted_most, preempted_p99, at_limit: of the last 24 hours.
    lemon_share: of all nodes. cross_rack: slices that were to sit in one rack and do not.
    racks_ratio: racks in use by jobs of several slices, of the fewest that would do; blocks_ratio:
    likewise of the lowest domains above racks. idle_interactive: GPUs of interactive jobs that none
    of them uses, for `idle_gpus_s` and longer. expected: recoveries per 1,000 rack-days that find
    no spare, by the cell's own failures and repairs of 90 days; None while they are not known.
    checkpoint_age_s: by GPUs; overdue: jobs beyond two intervals.
    """

    available: float
    idle: dict[int, int]
    pin_amplification: float
    preempted_most: int
    preempted_p99: int
    lemon_share: float
    at_limit: int
    starved: int
    cross_rack: int
    racks_ratio: float
    blocks_ratio: float
    expected: float | None
    checkpoint_age_s: float
    checkpoint_overdue: int
    repair_overdue: dict[str, int]
    idle_interactive: int


def standing(fleet: Fleet, state: State, now: float, recent: Recent | None = None) -> Standing:
    """Look at every node and every job."""
    stops = [recently_stopped(job, now) for job in fleet.jobs.values()]
    most = fleet.policy.defrag_max_repeats
    cross, used, fewest = _racks(fleet)
    age, overdue = _checkpoints(fleet, state, now)
    return Standing(
        available=_available(fleet),
        idle=_idle(fleet),
        pin_amplification=_amplification(fleet),
        preempted_most=max(stops, default=0),
        preempted_p99=sorted(stops)[-(-99 * len(stops) // 100) - 1] if stops else 0,
        lemon_share=_lemons(fleet, now),
        at_limit=sum(1 for count in stops if count >= most),
        starved=len(starved(fleet, now)),
        cross_rack=cross,
        racks_ratio=used / fewest if fewest else 1.0,
        blocks_ratio=_blocks(fleet),
        expected=None if recent is None else _expected(fleet, recent.reliability(90, now)),
        checkpoint_age_s=age,
        checkpoint_overdue=overdue,
        repair_overdue=_repairs(fleet, now),
        idle_interactive=_idle_interactive(fleet, state, now),
    )


def _available(fleet: Fleet) -> float:
    there = sum(
        node.gpus
        for rack in fleet.racks.values()
        for node in rack.nodes
        if node.schedulable and node.fitness is Fitness.FULL and not rack.isolated
    )
    return there / fleet.installed_gpus if fleet.installed_gpus else 0.0


def _lemons(fleet: Fleet, now: float) -> float:
    """Share of the nodes that only a person lets in again."""
    found = sum(
        1
        for rack in fleet.racks.values()
        for node in rack.nodes
        if (node.faults or fleet.histories) and lemon(node, fleet.policy, now, history(fleet, node))
    )
    return found / fleet.installed_nodes if fleet.installed_nodes else 0.0


def _idle(fleet: Fleet) -> dict[int, int]:
    sizes = startable(fleet).slices
    return {
        size: sum(
            racks.bit_count() * (shape.usable % size)
            for shape, racks in fleet.index.by_shape.items()
        )
        for size in sizes
    }


def _amplification(fleet: Fleet) -> float:
    size = whole_slice(fleet.policy, fleet.topology)
    pinned = kept = 0
    for rack in fleet.racks.values():
        pinned += sum(
            tenancy.gpus.bit_count() or tenancy.mask.bit_count() * rack.spec.gpus_per_node
            for tenancy in rack.tenancies
            if tenancy.pinned
        )
        if rack.pinned and len(rack.nodes) - rack.pinned.bit_count() < size:
            kept += len(rack.nodes) * rack.spec.gpus_per_node
    return kept / pinned if pinned else 0.0


def _racks(fleet: Fleet) -> tuple[int, int, int]:
    """Slices cut where they must not be; racks in use by jobs of several slices; fewest needed."""
    cross = used = fewest = 0
    for job in fleet.jobs.values():
        made = cut(job.spec, fleet.policy, fleet.topology) if len(job.slices) > 1 else None
        if not isinstance(made, Cut):
            continue
        used += len({part.rack for part in job.slices})
        nodes = sum(part.size for part in job.slices)
        fewest += -(-nodes // max(1, fleet.topology.largest_rack))
        if all(need is TopologyNeed.REQUIRED for need in made.needs):
            cross += max(0, len(job.slices) - len(made.pieces))
    return cross, used, fewest


def _blocks(fleet: Fleet) -> float:
    """Domains in use by jobs of several slices, of the fewest that have as many nodes."""
    topology, used, fewest = fleet.topology, 0, 0
    racks = max((one.racks.bit_count() for one in topology.level(topology.depth)), default=0)
    largest = max(1, racks * topology.largest_rack)
    for job in fleet.jobs.values():
        if len(job.slices) > 1:
            used += len({topology.paths[part.rack] for part in job.slices})
            fewest += -(-job.ranks // largest)
    return used / fewest if fewest else 1.0


def _expected(fleet: Fleet, found: Reliability) -> float | None:
    """The planner's arithmetic (`rackwright plan`) for the protected slices there are now."""
    mtbf, away = found.node_mtbf_days.value, found.node_mttr_hours.value
    if not mtbf or away is None or not fleet.racks:
        return None
    unavailable = reliability(mtbf_days=mtbf, repair_days=away / HOURS_PER_DAY).unavailable
    shapes = Counter(
        (rack.protected.bit_count(), rack.shape.target) for rack in fleet.racks.values()
    )
    a_year = sum(
        unswappable_per_year(
            racks=racks, slice_nodes=nodes, spares=spares, mtbf_days=mtbf, unavailable=unavailable
        )
        for (nodes, spares), racks in shapes.items()
        if nodes
    )
    return a_year / DAYS_PER_YEAR / len(fleet.racks) * 1000.0


def _checkpoints(fleet: Fleet, state: State, now: float) -> tuple[float, int]:
    """Mean age of the last checkpoint, each job by its GPUs; jobs that are overdue with theirs."""
    total = gpus = 0.0
    overdue = 0
    for job in fleet.jobs.values():
        age = checkpoint_age(fleet, state, job, now)
        if age is None:
            continue
        size = gpus_of(fleet, job)
        total, gpus = total + age * size, gpus + size
        overdue += is_overdue(job, age)
    return (total / gpus if gpus else 0.0), overdue


def checkpoint_age(fleet: Fleet, state: State, job: Job, now: float) -> float | None:
    """How long ago all ranks that tell of checkpoints had saved; None of work that has not started
    or is not restarted anyway."""
    if not job.slices or not job.started or not job.spec.restartable:
        return None
    return max(0.0, now - _saved_at(fleet, state, job))


def is_overdue(job: Job, age: float | None) -> bool:
    """Is a checkpoint so old that nobody moves the job any more (policy page, 1.12)?"""
    interval = job.spec.checkpoint.interval_s
    return age is not None and interval is not None and age > OVERDUE_INTERVALS * interval


def _saved_at(fleet: Fleet, state: State, job: Job) -> float:
    """When all ranks that tell of checkpoints had saved; its placement if none does."""
    told = []
    for part in job.slices:
        for rank, place in enumerate(part.nodes, part.first_rank):
            seen = state.seen.get(fleet.node_at(part.rack, place).name)
            worker = seen.worker(part.worker(job.id, rank)) if seen is not None else None
            if worker is not None and worker.checkpoint_at is not None:
                told.append(worker.checkpoint_at)
    return max(min(told, default=0.0), job.placed_at or 0.0)


def _repairs(fleet: Fleet, now: float) -> dict[str, int]:
    """Repairs that nobody has answered for too long, by what was asked for."""
    late = {action.value: 0 for action in RepairAction if action is not RepairAction.NONE}
    for rack in fleet.racks.values():
        for node in rack.nodes:
            asked = None if node.repair is None else node.repair.value
            if asked in late and now - node.repair_at > fleet.policy.repair_overdue_s:
                late[asked] += 1
    return late


def _idle_interactive(fleet: Fleet, state: State, now: float) -> int:
    limit = now - fleet.policy.idle_gpus_s
    return sum(
        gpus_of(fleet, job)
        for job in fleet.jobs.values()
        if job.slices
        and job.spec.job_class is JobClass.INTERACTIVE
        and all(since is not None and since <= limit for since in _idle_since(fleet, state, job))
    )


def _idle_since(fleet: Fleet, state: State, job: Job) -> Iterator[float | None]:
    """Since when the GPUs of each rank are idle, by its node's word."""
    for part in job.slices:
        for rank, place in enumerate(part.nodes, part.first_rank):
            seen = state.seen.get(fleet.node_at(part.rack, place).name)
            worker = None if seen is None else seen.worker(part.worker(job.id, rank))
            yield None if worker is None else worker.idle_since
