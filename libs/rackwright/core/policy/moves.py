"""Another rack for one slice: a free one in placement's order, or one that is worth clearing."""

from dataclasses import dataclass, replace
from functools import partial

from rackwright.core.index import bits
from rackwright.core.policy.ask import spare_racks
from rackwright.core.policy.draft import Draft, Seat
from rackwright.core.policy.guarantees import left_whole
from rackwright.core.policy.prices import stall
from rackwright.core.policy.replacements import Case
from rackwright.core.policy.small import place_small
from rackwright.core.policy.victims import (
    Victims,
    cheapest,
    may_evict,
    may_take_back,
    removable,
)
from rackwright.core.racks import Tenancy

LOOKED_AT = 32  # racks whose tenants are priced, those with most free nodes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A rack for the slice once these victims have left it."""

    seat: Seat
    victims: Victims


def free_seat(case: Case) -> Seat | None:
    """A seat elsewhere for the whole slice, taken from nobody."""
    draft = _draft(case)
    part = case.part
    if len(case.job.slices) == 1 and part.size == 1:
        draft.same = None
        return place_small(draft, part.gpus.bit_count())
    offers = draft.offers(part.size, draft.ask.racks)
    if not offers:
        return None
    best = min(offers)
    return draft.seat(_nearest(case, offers[best]), part.size)


def _draft(case: Case) -> Draft:
    """What other racks offer: not those that hold as many slices of the job as they may."""
    job, part = case.job, case.part
    alone = len(job.slices) == 1
    racks = case.ask.racks
    if not alone or part.size > 1:
        racks &= ~(1 << part.rack)
    most = job.spec.max_per_rack
    if most is not None:
        counts: dict[int, int] = {}
        for one in job.slices:
            counts[one.rack] = counts.get(one.rack, 0) + 1
        for number, count in counts.items():
            racks &= ~(1 << number) if count >= most else -1
    ask = replace(case.ask, racks=racks)
    return Draft(fleet=case.fleet, ask=ask, same=None if alone else case.same)


def _nearest(case: Case, racks: int) -> int:
    """Of equally good racks the one nearest to the job's other slices, then the first."""
    topology = case.fleet.topology
    others = {one.rack for one in case.job.slices if one.index != case.part.index}
    paths = {topology.paths[number] for number in others}
    for depth in range(topology.depth, 0, -1):
        near = 0
        for path in {path[:depth] for path in paths}:
            near |= topology.domains[path] & racks
        if near:
            racks = near
            break
    return (racks & -racks).bit_length() - 1


def cleared_seat(case: Case) -> Cleared | None:
    """The rack that costs its tenants least to give up for this slice, if one can be cleared.

    Only racks that could be freed by their counters are looked at, at most `LOOKED_AT` of them.
    """
    draft = _draft(case)
    best: Cleared | None = None
    for number in _promising(case, draft):
        found = _clear(case, draft, number)
        if found is not None and (best is None or found.victims.loss < best.victims.loss):
            best = found
    return best


def lent_rack(case: Case) -> Cleared | None:
    """The spare rack of the cell that costs those it is lent to least to give back; they have no
    notice, as on any spare, and it need not pay."""
    draft = _draft(case)
    best: Cleared | None = None
    if case.small or not case.fleet.policy.spare_racks:
        return None
    for number in bits(spare_racks(case.fleet) & draft.ask.racks):
        found = _clear(case, draft, number, lent_only=True)
        if found is not None and (best is None or found.victims.loss < best.victims.loss):
            best = found
    return best


def _promising(case: Case, draft: Draft) -> list[int]:
    shapes = sorted(
        (-shape.usable, racks & draft.ask.racks)
        for shape, racks in case.fleet.index.by_shape.items()
        if shape.open and shape.size - shape.pinned >= case.part.size
    )
    found: list[int] = []
    for _, racks in shapes:
        for number in bits(racks):
            if len(found) == LOOKED_AT:
                return found
            found.append(number)
    return found


def _clear(case: Case, draft: Draft, number: int, *, lent_only: bool = False) -> Cleared | None:
    fleet, size = case.fleet, case.part.size
    rack = fleet.racks[number]
    fit = rack.takes_full if draft.ask.across else rack.takes
    fit &= ~draft.ask.barred.get(number, 0)
    notice = 0.0 if lent_only else fleet.policy.recovery_notice_s

    def may(tenancy: Tenancy) -> bool:
        victim = fleet.jobs[tenancy.job]
        if victim.id == case.job.id:
            return False
        if tenancy.lent:
            return not case.small and may_take_back(fleet, victim)
        return not lent_only and may_evict(fleet, victim, case.job, case.now, equals=True)

    together = partial(left_whole, fleet, case.job.spec.queue)
    best: Cleared | None = None
    for alike in draft.alike(rack, fit):
        free = alike & rack.free
        pieces = removable(fleet, rack, alike & ~rack.free, case.now, notice, may)
        most = fleet.policy.defrag_max_victims
        victims = cheapest(pieces, max(0, size - free.bit_count()), most, together)
        if victims is None or (best is not None and victims.loss >= best.victims.loss):
            continue
        nodes = draft.pick(rack, free | sum(1 << place for place in victims.places), size)
        best = Cleared(seat=Seat(number, nodes), victims=victims)
    return best


def pays(case: Case, victims: Victims) -> bool:
    """Is clearing a rack worth its cost? The stalled job counts as having waited W0, the least
    that a plan is credited with (policy page, section 3).
    """
    policy = case.fleet.policy
    gain = stall(case.fleet, case.job, policy.defrag_wait0_s)
    return victims.loss * policy.defrag_kappa <= gain
