"""Rungs 1 to 3: another node of the same rack, free, lent, or from a tenant of lower priority."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rackwright.core.jobs import Wound
from rackwright.core.policy.guarantees import left_whole
from rackwright.core.policy.prices import stall
from rackwright.core.policy.replacements import Case
from rackwright.core.policy.rungs import Record
from rackwright.core.policy.triage import Triage
from rackwright.core.policy.victims import (
    Victims,
    cheapest,
    may_evict,
    may_take_back,
    removable,
)
from rackwright.core.racks import Tenancy
from rackwright.wire.reasons import Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """These wounds are healed by these places, one each as far as places go."""

    wounds: Sequence[Wound]
    places: Sequence[int]
    victims: Victims = Victims()


def swap_price(case: Case) -> float:
    """The stall of a swap."""
    return stall(case.fleet, case.job, case.fleet.policy.swap_cost_s)


def notice_price(case: Case, victims: Victims) -> float:
    """What the job stands still for while its victims save."""
    jobs = [case.fleet.jobs[name] for name in victims.jobs]
    saving = max((job.spec.checkpoint.on_notice_s or 0.0 for job in jobs), default=0.0)
    return stall(case.fleet, case.job, min(case.fleet.policy.recovery_notice_s, saving))


def in_rack(
    case: Case, triage: Triage, record: Record, otherwise: Callable[[], float]
) -> Swap | None:
    """The first of the three rungs that is possible. `otherwise`: the price without a tenant."""
    if case.part.gpus:
        record.skip(Rung.SPARE, "part-of-node")
        return None
    return (
        _free_spare(case, triage, record)
        or _lent_spare(case, triage, record)
        or _tenant(case, triage, record, otherwise)
    )


def _free_spare(case: Case, triage: Triage, record: Record) -> Swap | None:
    price = swap_price(case)
    numbers = {"free": len(case.spares), "needed": triage.needed}
    if len(case.spares) < triage.needed:
        code = "spares.short" if case.spares else "spares.none"
        record.skip(Rung.SPARE, code, price, **numbers)
        return None
    record.take(Rung.SPARE, "spare", price, **numbers)
    return Swap(wounds=triage.away, places=case.spares)


def _lent_spare(case: Case, triage: Triage, record: Record) -> Swap | None:
    short = triage.needed - len(case.spares)
    if case.small:
        record.skip(Rung.LENT_SPARE, "small")
        return None

    def may(tenancy: Tenancy) -> bool:
        return tenancy.lent and may_take_back(case.fleet, case.fleet.jobs[tenancy.job])

    victims = _victims(case, short, 0.0, may)
    if victims is None:
        record.skip(Rung.LENT_SPARE, "lent.none", None, needed=short)
        return None
    record.take(
        Rung.LENT_SPARE,
        "lent",
        swap_price(case) + victims.loss,
        needed=short,
        evicted=len(victims.jobs),
        loss_gpu_h=round(victims.loss, 3),
    )
    return _evicting(case, triage, victims)


def _tenant(
    case: Case, triage: Triage, record: Record, otherwise: Callable[[], float]
) -> Swap | None:
    if not triage.leave:
        record.skip(Rung.TENANT, "drain.waits")
        return None
    short = triage.needed - len(case.spares)

    def may(tenancy: Tenancy) -> bool:
        victim = case.fleet.jobs[tenancy.job]
        if tenancy.lent:
            return not case.small and may_take_back(case.fleet, victim)
        return may_evict(case.fleet, victim, case.job, case.now)

    victims = _victims(case, short, case.fleet.policy.recovery_notice_s, may)
    if victims is None:
        record.skip(Rung.TENANT, "tenants.none", None, needed=short)
        return None
    price = swap_price(case) + victims.loss + notice_price(case, victims)
    other = otherwise()
    numbers = {
        "needed": short,
        "evicted": len(victims.jobs),
        "loss_gpu_h": round(victims.loss, 3),
        "other_gpu_h": round(other, 3),
    }
    if price >= other:
        record.skip(Rung.TENANT, "tenants.dear", price, **numbers)
        return None
    record.take(Rung.TENANT, "tenant", price, **numbers)
    return _evicting(case, triage, victims)


def _victims(
    case: Case, needed: int, notice_s: float, may: Callable[[Tenancy], bool]
) -> Victims | None:
    """Nobody is evicted for work that itself sits on lent spares."""
    if case.part.lent:
        return None
    mine = case.job.id

    def others(tenancy: Tenancy) -> bool:
        return tenancy.job != mine and may(tenancy)

    fits = case.fits & ~case.rack.free
    pieces = removable(case.fleet, case.rack, fits, case.now, notice_s, others)
    most = case.fleet.policy.defrag_max_victims
    together = partial(left_whole, case.fleet, case.job.spec.queue)
    return cheapest(pieces, needed, most, together)


def _evicting(case: Case, triage: Triage, victims: Victims) -> Swap:
    places = (*case.spares, *sorted(victims.places))
    return Swap(wounds=triage.leave or triage.drained, places=places, victims=victims)
