"""The fleet as bytes and back: one spelling, so that equal fleets have equal bytes and hashes.

Only what entries said is written. What follows from it (masks, shapes, the index, tenancies) is
made anew on loading, so a snapshot cannot hold a counter that is wrong.
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from hashlib import sha256
from typing import Any, get_args, get_type_hints

from immutables import Map

from rackwright.core.fleet import Answers, Fleet, Maintenance, Place, Plan, WishedSwap
from rackwright.core.fold.seats import gpus_in_use
from rackwright.core.jobs import Job, Tombstone, protected
from rackwright.core.rackhealth import refresh_health
from rackwright.core.racks import History, Leaving, Node, Rack, Tenancy
from rackwright.core.shares import Account, Usage, counted
from rackwright.wire.codec import canonical, read_json
from rackwright.wire.ids import JobId, LedgerId, MessageId, WorkerId, parse_worker
from rackwright.wire.nodes import RackFitness, RackSpec
from rackwright.wire.policy import Automation, Policy

MAX_SNAPSHOT = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RackRecord:
    """What entries said of one rack."""

    spec: RackSpec
    nodes: tuple[Node, ...]
    fitness: RackFitness
    isolated: bool
    held_until: float
    held_by: str
    demerits: tuple[float, ...]
    tenants: tuple[tuple[JobId, int], ...]
    leaving: tuple[Leaving, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersRecord:
    """Answered wishes of one service."""

    floor: int
    above: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """All of a fleet, in the order in which it must be put together again."""

    ledger: LedgerId
    seq: int
    last_id: MessageId | None
    time: float
    fold_version: int
    policy: Policy
    racks: tuple[RackRecord, ...]
    jobs: tuple[Job, ...]
    tombstones: tuple[Tombstone, ...]
    queued: tuple[tuple[JobId, int], ...]
    starting: tuple[tuple[JobId, int], ...]
    wounded: tuple[tuple[JobId, float], ...]
    fresh_faults: tuple[tuple[JobId, float], ...]
    plans: tuple[Plan, ...]
    plan_times: tuple[float, ...]
    timers: tuple[tuple[float, int], ...]
    answers: tuple[tuple[str, AnswersRecord], ...]
    paused: tuple[tuple[Automation, float], ...]
    maintenance: tuple[Maintenance, ...]
    culprits: tuple[float, ...]
    verified: tuple[tuple[int, str], ...]
    voids: int
    usage: tuple[tuple[Account, Usage], ...] = ()
    closed_by: str = ""
    closed_at: float = 0.0
    histories: tuple[tuple[str, History], ...] = ()
    stored_at: float = 0.0
    wished_swaps: tuple[WishedSwap, ...] = ()


def record(fleet: Fleet) -> FleetRecord:
    """The fleet as one plain value."""
    return FleetRecord(
        ledger=fleet.ledger,
        seq=fleet.seq,
        last_id=fleet.last_id,
        time=fleet.time,
        fold_version=fleet.fold_version,
        policy=fleet.policy,
        racks=tuple(_rack_record(fleet.racks[number]) for number in range(len(fleet.racks))),
        jobs=tuple(fleet.jobs[name] for name in sorted(fleet.jobs)),
        tombstones=tuple(
            fleet.tombstones[fleet.ends[turn]] for turn in range(fleet.ends_first, fleet.ends_next)
        ),
        queued=tuple(sorted(fleet.queued.items())),
        starting=tuple(sorted(fleet.starting.items())),
        wounded=tuple(sorted(fleet.wounded.items())),
        fresh_faults=tuple(sorted(fleet.fresh_faults.items())),
        plans=tuple(fleet.plans[name] for name in sorted(fleet.plans)),
        plan_times=fleet.plan_times,
        timers=fleet.timers,
        answers=tuple(
            (service, AnswersRecord(floor=one.floor, above=tuple(sorted(one.above))))
            for service, one in sorted(fleet.answers.items())
        ),
        paused=tuple(sorted(fleet.paused.items())),
        maintenance=fleet.maintenance,
        culprits=fleet.culprits,
        verified=fleet.verified,
        voids=fleet.voids,
        usage=tuple(sorted(fleet.usage.items(), key=_account)),
        closed_by=fleet.closed_by,
        closed_at=fleet.closed_at,
        histories=tuple(sorted(fleet.histories.items(), key=_serial)),
        stored_at=fleet.stored_at,
        wished_swaps=fleet.wished_swaps,
    )


def _account(kept: tuple[Account, Usage]) -> Account:
    return kept[0]


def _serial(kept: tuple[str, History]) -> str:
    return kept[0]


def _rack_record(rack: Rack) -> RackRecord:
    return RackRecord(
        spec=rack.spec,
        nodes=rack.nodes,
        fitness=rack.fitness,
        isolated=rack.isolated,
        held_until=rack.held_until,
        held_by=rack.held_by,
        demerits=rack.demerits,
        tenants=tuple((tenancy.job, tenancy.slice) for tenancy in rack.tenancies),
        leaving=rack.leaving,
    )


@cache
def shape() -> str:
    """Names what this release writes down of a fleet, by the names of all fields in their order.

    Another release may keep more or less of the same ledger, and then has other bytes of it.
    """
    return sha256(_spelled(FleetRecord).encode()).hexdigest()[:16]


def _spelled(kind: Any) -> str:
    """A type with everything that is in it."""
    inner = "".join(_spelled(one) for one in get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        inner = "".join(f"{one.name}:{_spelled(hints[one.name])};" for one in fields(kind))
    return f"{getattr(kind, '__name__', kind)}[{inner}]" if inner else str(kind)


def dump(fleet: Fleet) -> bytes:
    """Canonical bytes of the fleet."""
    return canonical(record(fleet))


def load(data: bytes) -> Fleet:
    """The fleet of these bytes. Raises Unreadable when they are none."""
    made = read_json(FleetRecord, data, MAX_SNAPSHOT)
    fleet = Fleet(
        ledger=made.ledger,
        seq=made.seq,
        last_id=made.last_id,
        time=made.time,
        fold_version=made.fold_version,
        policy=made.policy,
        jobs=Map((job.id, job) for job in made.jobs),
        tombstones=Map((stone.id, stone) for stone in made.tombstones),
        ends=Map((turn, stone.id) for turn, stone in enumerate(made.tombstones)),
        ends_next=len(made.tombstones),
        queued=Map(made.queued),
        starting=Map(made.starting),
        wounded=Map(made.wounded),
        fresh_faults=Map(made.fresh_faults),
        plans=Map((plan.id, plan) for plan in made.plans),
        plan_times=made.plan_times,
        timers=made.timers,
        answers=Map(
            (service, Answers(floor=one.floor, above=frozenset(one.above)))
            for service, one in made.answers
        ),
        paused=Map(made.paused),
        maintenance=made.maintenance,
        culprits=made.culprits,
        verified=made.verified,
        voids=made.voids,
        usage=Map(made.usage),
        closed_by=made.closed_by,
        closed_at=made.closed_at,
        histories=Map(made.histories),
        stored_at=made.stored_at,
        wished_swaps=made.wished_swaps,
    )
    for number, rack in enumerate(made.racks):
        _add_rack(fleet, number, rack)
    for job in made.jobs:
        fleet.counts = counted(fleet.counts, job, *gpus_in_use(fleet, job.slices))
    return fleet


def _add_rack(fleet: Fleet, number: int, made: RackRecord) -> None:
    rack = Rack(
        spec=made.spec,
        number=number,
        nodes=made.nodes,
        fitness=made.fitness,
        isolated=made.isolated,
        held_until=made.held_until,
        held_by=made.held_by,
        demerits=made.demerits,
        tenancies=tuple(_tenancy(fleet.jobs[job], index) for job, index in made.tenants),
        leaving=made.leaving,
    )
    rack = refresh_health(rack, fleet.policy, fleet.time)
    fleet.racks = fleet.racks.set(number, rack)
    fleet.rack_numbers = fleet.rack_numbers.set(made.spec.rack, number)
    fleet.topology = fleet.topology.with_rack(number, made.spec)
    fleet.index = fleet.index.moved(None, rack)
    fleet.installed_nodes += len(made.nodes)
    fleet.installed_gpus += sum(node.gpus for node in made.nodes)
    for name in dict.fromkeys(node.kept_for for node in made.nodes):
        if name is not None:
            fleet.kept = fleet.kept.set(name, (*fleet.kept.get(name, ()), number))
    for place, node in enumerate(made.nodes):
        fleet.places = fleet.places.set(node.name, Place(rack=number, node=place))
        if node.hardware is not None:
            fleet.topology = fleet.topology.with_node(number, place, None, node.hardware)
    _add_leaving(fleet, number, made.leaving)


def _add_leaving(fleet: Fleet, number: int, leaving: tuple[Leaving, ...]) -> None:
    by_job: dict[JobId, tuple[WorkerId, ...]] = {}
    for one in leaving:
        fleet.leaving = fleet.leaving.set(one.worker, Place(rack=number, node=one.node))
        job = parse_worker(one.worker)[0]
        by_job[job] = (*by_job.get(job, fleet.leaving_of.get(job, ())), one.worker)
    fleet.leaving_of = fleet.leaving_of.update(by_job)


def _tenancy(job: Job, index: int) -> Tenancy:
    part = job.part(index)
    return Tenancy(
        job=job.id,
        slice=index,
        mask=part.mask,
        gpus=part.gpus,
        protected=protected(job.spec, part.size) and not part.lent,
        pinned=job.pinned,
        lent=part.lent,
    )
