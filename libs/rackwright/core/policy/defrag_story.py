"""Why a plan is as it is, for people: a row per rack, the chosen set, the next best, the verdict.

`explain` looks without offering anything; `rackwright defrag --dry-run` shows what it returns.
"""

from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job
from rackwright.core.policy.defrag import (
    Outcome,
    Verdict,
    hindrance,
    judge,
    ripe_at,
)
from rackwright.core.policy.defrag_cost import Blocked, slice_gpus
from rackwright.core.policy.defrag_racks import Way, price_of_slice
from rackwright.core.policy.defrag_search import Chosen
from rackwright.core.policy.pinning import Checkpoints
from rackwright.core.racks import Rack
from rackwright.wire.entries.slice import CostTerms
from rackwright.wire.ids import JobId, RackId
from rackwright.wire.reasons import Reason

ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A slice in a rack: its size, and what moving its job costs or what forbids that."""

    job: JobId
    slice: int
    nodes: int
    gpus: int
    cost: CostTerms | None
    forbidden: str | None
    leaves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A rack: free usable nodes, tenants, and its cheapest way. Costs in GPU-hours.

    `cost` is None where nothing that may be moved makes room.
    """

    rack: RackId
    free: int
    tenants: tuple[Tenant, ...]
    hold: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a victim goes: slice, rack and nodes."""

    job: JobId
    slice: int
    rack: RackId
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All that led to a verdict. Costs in GPU-hours, `again` in ledger time.

    `evicted`: victims that would wait in the queue. `hindered`: why nothing would be offered now
    even so. `failed`: cheaper sets without a home for everybody, by racks and what had none.
    """

    job: JobId
    outcome: Outcome
    benefit: float
    cost: float | None
    hold: float | None
    racks: tuple[RackId, ...]
    homes: tuple[Home, ...]
    evicted: tuple[JobId, ...]
    next_best: float | None
    next_racks: tuple[RackId, ...]
    again: float | None
    hindered: Reason | None
    failed: tuple[tuple[tuple[RackId, ...], Reason], ...]
    rows: tuple[Row, ...]
    reason: Reason | None


def explain(fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float) -> Explanation:
    """Look for a plan and tell all; nothing is offered."""
    return told(fleet, judge(fleet, job, checkpoints, now), _hindered(fleet, job, now))


def _hindered(fleet: Fleet, job: Job, now: float) -> Reason | None:
    ripe = ripe_at(fleet, job)
    if ripe is None:
        cause = job.blocked.code if job.blocked is not None else "none"
        return Reason(code="defrag.not-blocked", numbers={"state": job.state, "cause": cause})
    if now < ripe:
        return Reason(code="defrag.too-soon", numbers={"again": ripe})
    return hindrance(fleet, now)


def told(fleet: Fleet, verdict: Verdict, hindered: Reason | None = None) -> Explanation:
    """A verdict with its table."""
    settled, after = verdict.settled, verdict.next_best
    homes = [
        Home(job=home.job, slice=part.index, rack=part.rack, nodes=part.nodes.bit_count())
        for home in (settled.homes if settled is not None else ())
        for part in home.homes
    ]
    return Explanation(
        job=verdict.job.id,
        outcome=verdict.outcome,
        benefit=verdict.benefit,
        cost=None if settled is None else settled.cost,
        hold=None if settled is None else settled.hold,
        racks=_racks(fleet, verdict.chosen),
        homes=tuple(homes),
        evicted=tuple(home.job for home in (settled.homes if settled else ()) if not home.homes),
        next_best=None if after is None else after.cost,
        next_racks=_racks(fleet, after),
        again=verdict.again,
        hindered=hindered,
        failed=tuple((_racks(fleet, chosen), why) for chosen, why in verdict.failed),
        rows=_rows(verdict.case, verdict) if verdict.case is not None else (),
        reason=verdict.reason,
    )


def _racks(fleet: Fleet, chosen: Chosen | None) -> tuple[RackId, ...]:
    return () if chosen is None else tuple(fleet.rack_name(number) for number in chosen.racks)


def _rows(case: Blocked, verdict: Verdict) -> tuple[Row, ...]:
    """The chosen racks first, then by cost, then those that cannot be cleared by what is free."""
    best: dict[int, Way] = {}
    for survey in verdict.found:
        for size, _ in survey.missing:
            for way in survey.ways[size]:
                known = best.get(way.rack)
                if known is None or way.cost < known.cost:
                    best[way.rack] = way
    taken = {way.rack: way for way in verdict.chosen.ways} if verdict.chosen is not None else {}
    best |= taken

    def order(number: int) -> tuple[bool, float, int, int]:
        way = best.get(number)
        cost = way.cost if way is not None else float("inf")
        return (number not in taken, cost, -case.fleet.racks[number].usable.bit_count(), number)

    occupied = (n for n in bits(case.ask.racks) if case.fleet.racks[n].tenancies)
    chosen = sorted(occupied, key=order)[:ROWS]
    return tuple(_row(case, case.fleet.racks[number], best.get(number)) for number in chosen)


def _row(case: Blocked, rack: Rack, way: Way | None) -> Row:
    leaves = set(way.leaves) if way is not None else set()
    tenants = []
    for tenancy in sorted(rack.tenancies, key=lambda one: (one.job, one.slice)):
        part = case.fleet.jobs[tenancy.job].part(tenancy.slice)
        price = price_of_slice(case, tenancy.job, tenancy.slice)
        tenants.append(
            Tenant(
                job=tenancy.job,
                slice=tenancy.slice,
                nodes=part.size,
                gpus=slice_gpus(case.fleet, part),
                cost=price if isinstance(price, CostTerms) else None,
                forbidden=price if isinstance(price, str) else None,
                leaves=(tenancy.job, tenancy.slice) in leaves,
            )
        )
    return Row(
        rack=rack.spec.rack,
        free=rack.usable.bit_count(),
        tenants=tuple(tenants),
        hold=None if way is None else way.hold,
        cost=None if way is None else way.cost,
    )
