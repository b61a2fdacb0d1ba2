"""Slices whose rack has run out of spares: where each moves, and whether it is worth it.

A slice without a spare is not wounded. It moves just after a checkpoint, and only if no spare of
its rack is due back in time, it has long to go, and another rack would have a spare beside it.
"""

from collections.abc import Iterator

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.index import bits
from rackwright.core.jobs import Job, JobState, Slice, is_movable, protected
from rackwright.core.legality.beside import not_free
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.moves import free_seat
from rackwright.core.policy.pinning import Checkpoints, never_moves
from rackwright.core.policy.prices import stall
from rackwright.core.policy.replacements import case_of
from rackwright.core.policy.rungs import Number
from rackwright.core.racks import Node, Rack
from rackwright.wire.entries.slice import SliceMoved
from rackwright.wire.reasons import Reason, Rung, RungTaken

FRESH_S = 10.0  # a checkpoint is just over for so long,
FRESH_SHARE = 0.1  # or for this part of the declared interval


def in_want(fleet: Fleet, now: float) -> Iterator[tuple[Rack, float]]:
    """Racks without spares that will stay so, and when the first is due back."""
    for rack in without_spares(fleet):
        due = spare_due(fleet, rack)
        if due is not None and due > now + fleet.policy.zero_spare_move_s:
            yield rack, due


def without_spares(fleet: Fleet) -> Iterator[Rack]:
    """Racks with protected slices and no spare, free or lent."""
    found = 0
    for shape, racks in fleet.index.by_shape.items():
        if shape.target and not shape.usable and shape.open:
            found |= racks
    for number in bits(found):
        if not fleet.racks[number].lent:
            yield fleet.racks[number]


def spare_due(fleet: Fleet, rack: Rack) -> float | None:
    """Ledger time at which the first of its nodes that are out is due back; None: none is out.

    One without a date is due when its repair would be overdue, and then no more.
    """
    times = [
        at
        for place, node in enumerate(rack.nodes)
        if not rack.takes >> place & 1 and (at := _due(fleet, rack, node)) is not None
    ]
    return min(times, default=None)


def _due(fleet: Fleet, rack: Rack, node: Node) -> float | None:
    now, wait = fleet.time, fleet.policy.repair_overdue_s
    away = [one.end for one in fleet.maintenance if _is_in(one, rack, node) and one.end > now]
    if node.cordoned_for and away:
        return max(away)
    if node.kept_for is not None:
        return node.kept_until
    if node.check and node.check_holds:
        return now + 2 * fleet.policy.check_limit_s  # by then it has answered, or is out for good
    if node.repair_eta is not None and node.repair_eta > now:
        return node.repair_eta
    if node.probation_until > now:
        return node.probation_until
    since = node.repair_at if node.repair is not None else _out_since(node)
    due = since + wait
    return due if due > now else float("inf")


def _is_in(window: Maintenance, rack: Rack, node: Node) -> bool:
    return rack.spec.rack in window.racks or node.name in window.nodes


def _out_since(node: Node) -> float:
    return max(node.suspected_at, node.faults[-1].at if node.faults else 0.0)


def planned_move(fleet: Fleet, checkpoints: Checkpoints, now: float) -> SliceMoved | None:
    """The first slice that leaves its rack now because no spare is left beside it."""
    for rack, due in in_want(fleet, now):
        for tenancy in sorted(rack.tenancies, key=lambda one: (one.job, one.slice)):
            job = fleet.jobs[tenancy.job]
            part = job.part(tenancy.slice)
            if tenancy.protected and moves_for_spares(fleet, job, checkpoints, now):
                entry = _move(fleet, job, part, due, now)
                if entry is not None:
                    return entry
    return None


def moves_for_spares(fleet: Fleet, job: Job, checkpoints: Checkpoints, now: float) -> bool:
    """Is it well, may it be moved, has it long to go, and has it saved just now?"""
    settled = job.state is JobState.RUNNING and not job.wounds and job.plan is None
    if not settled or job.started != job.membership:
        return False
    if never_moves(fleet.policy, job) is not None:
        return False
    end = ends_at(fleet.policy, job)
    if end is not None and end - now < fleet.policy.zero_spare_move_s:
        return False
    if job.spec.checkpoint.on_notice_s is not None:
        return True  # it saves when it is told, so any moment is as good
    saved, interval = checkpoints.get(job.id), job.spec.checkpoint.interval_s or 0.0
    return saved is not None and now - saved <= max(FRESH_S, interval * FRESH_SHARE)


def _move(fleet: Fleet, job: Job, part: Slice, due: float, now: float) -> SliceMoved | None:
    """To a rack that has a spare left beside the slice."""
    if not protected(job.spec, part.size):
        return None
    seat = free_seat(case_of(fleet, job, part, (), now))
    if seat is None or seat.lent:  # others' spares are none of its own
        return None
    rack = fleet.racks[seat.rack]
    left = (rack.usable & ~seat.nodes).bit_count()
    if not left or seat.rack == part.rack:
        return None
    if is_movable(job.spec) and not_free(rack, seat.nodes, seat.gpus) is not None:
        return None  # the new one is to run before the old one goes
    numbers: dict[str, Number] = {"rack": rack.spec.rack, "spares": left}
    if due != float("inf"):
        numbers["due_h"] = round((due - now) / 3600.0, 1)
    price = round(stall(fleet, job, fleet.policy.move_cost_s), 3)
    why = Reason(code="zero-spares", numbers=numbers)
    return SliceMoved(
        job=job.id,
        membership=job.membership + 1,
        index=part.index,
        rack=rack.spec.rack,
        nodes=seat.nodes,
        lent=seat.lent,
        planned=True,
        overlaps=is_movable(job.spec),
        rungs=(RungTaken(rung=Rung.FREE_RACK, taken=True, price_gpu_h=price, reason=why),),
    )
