"""Replicas of a service leave drained nodes in turn: enough of them serve on meanwhile."""

from collections.abc import Iterator

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import Job, Slice, WoundKind
from rackwright.core.legality.sizes import gang_of
from rackwright.core.policy.beside import moves_beside
from rackwright.core.policy.elastic import replica_of
from rackwright.core.policy.refusing import Numbers
from rackwright.wire.jobs import JobClass
from rackwright.wire.reasons import Reason


def least_serving(job: Job, group: int) -> int:
    """Replicas of a group that serve on while others are moved: `min_replicas`, or all but one
    where it wants all of them.
    """
    of = job.spec.groups[group]
    least = of.replicas if of.min_replicas is None else of.min_replicas
    return min(least, of.replicas - 1)


def its_turn(fleet: Fleet, job: Job, part: Slice, now: float) -> Reason | None:
    """What a slice on drained nodes waits for before it leaves them; None: for nobody.

    A replica that does not serve may leave at once, and so may everything when the maintenance has
    begun. Of those that are there one may always go: with fewer than `min_replicas` they would wait
    for ever, since nothing is added to a job that is to leave.
    """
    if job.spec.job_class is not JobClass.SERVICE or not job.spec.groups or moves_beside(job):
        return None
    there, serve = _replicas(job, part.group)
    least = min(least_serving(job, part.group), len(there) - 1)
    if part.replica not in serve or len(serve) > least:
        return None
    if any(window.begin <= now for window in windows_over(fleet, job, part, now)):
        return None
    drained = [one.at for one in job.wounds if job.slice_of(one.rank) is part]
    numbers: Numbers = {
        "group": job.spec.groups[part.group].name,
        "replica": part.replica,
        "serve": len(serve),
        "replicas": len(there),
        "least": least,
        "drained_s": round(now - min(drained, default=now), 1),
    }
    first = min(there - serve, default=None)
    if first is not None:
        numbers |= {"for_replica": first, "for_s": round(now - job.state_at, 1)}
    return Reason(code="drain.turn", numbers=numbers)


def gives_up(fleet: Fleet, job: Job, part: Slice, now: float) -> Maintenance | None:
    """The maintenance for which a replica that has found no better place goes into the queue
    alone; None: it does not, or not yet.

    That is `maintenance_force_s` before it, as long as enough others serve; when it begins, all.
    """
    if not replica_of(job, part):
        return None
    serve = _replicas(job, part.group)[1]
    spared = part.replica not in serve or len(serve) > least_serving(job, part.group)
    ahead = fleet.policy.maintenance_force_s if spared else 0.0
    due = (one for one in windows_over(fleet, job, part, now) if one.begin - ahead <= now)
    return min(due, key=lambda one: one.begin, default=None)


def stays_until(fleet: Fleet, job: Job, part: Slice, window: Maintenance) -> float:
    """Ledger time at which work that has found no better place is queued for this maintenance."""
    replicas = (
        job.spec.job_class is JobClass.SERVICE
        and bool(job.spec.groups)
        and job.spec.groups[part.group].replicas > 1
    )
    return window.begin - (0.0 if replicas else fleet.policy.maintenance_force_s)


def windows_over(fleet: Fleet, job: Job, part: Slice, now: float) -> Iterator[Maintenance]:
    """Maintenance, not over yet, of nodes that this slice is to leave."""
    if not fleet.maintenance:
        return
    rack = fleet.racks[part.rack]
    ranks = {wound.rank for wound in job.wounds if wound.kind is WoundKind.DRAIN}
    nodes = {
        rack.nodes[place].name
        for rank, place in enumerate(part.nodes, part.first_rank)
        if rank in ranks
    }
    for window in fleet.maintenance:
        there = rack.spec.rack in window.racks or not nodes.isdisjoint(window.nodes)
        if nodes and there and now < window.end:
            yield window


def _replicas(job: Job, group: int) -> tuple[frozenset[int], frozenset[int]]:
    """Replicas of this group that have nodes, and those of them of which every rank was up and has
    lost neither node nor process since.
    """
    hurt = {
        gang_of(job.slice_of(wound.rank))
        for wound in job.wounds
        if wound.kind is not WoundKind.DRAIN
    }
    parts = [part for part in job.slices if part.group == group]
    down = {part.replica for part in parts if gang_of(part) in hurt or not job.has_been_up(part)}
    there = frozenset(part.replica for part in parts)
    return there, there - down
