"""Whom recovery may evict from a rack, and which of them cost least for so many nodes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job
from rackwright.core.legality.seats import evictable
from rackwright.core.policy.limits import ends_at
from rackwright.core.policy.prices import recently_stopped, victim_loss
from rackwright.core.racks import Rack, Tenancy
from rackwright.wire.ids import JobId
from rackwright.wire.jobs import JobClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """Jobs to evict, the places they free in one rack, and their loss in GPU-hours."""

    jobs: tuple[JobId, ...] = ()
    places: tuple[int, ...] = ()
    loss: float = 0.0

    def with_(self, other: "Victims") -> "Victims":
        """Both together."""
        return Victims(
            jobs=self.jobs + other.jobs,
            places=self.places + other.places,
            loss=self.loss + other.loss,
        )


def may_evict(fleet: Fleet, victim: Job, job: Job, now: float, *, equals: bool = False) -> bool:
    """May `victim` make room for the wounded `job`?

    Never pinned work (interactive, not restartable, not preemptible, with local checkpoints), a
    service (it is only moved, and then serves on until its successor does), nor
    higher priority, nor equal priority unless `equals` and it has fewer slices: A evicts B evicts A
    cannot occur. Nor work that is wounded itself, part of a plan, young, just moved, about to end,
    or has been stopped often enough today. The rules are those of the policy page, section 3.
    """
    policy = fleet.policy
    if victim.pinned or victim.spec.job_class is JobClass.SERVICE:
        return False
    if evictable(fleet, victim.id) is not None:
        return False
    if victim.wounds or victim.plan is not None:
        return False
    rank = (victim.spec.priority, len(victim.slices) if equals else 0)
    if rank >= (job.spec.priority, len(job.slices) if equals else 0):
        return False
    if recently_stopped(victim, now) >= policy.defrag_max_repeats:
        return False
    placed = victim.placed_at if victim.placed_at is not None else now
    if now - placed < policy.defrag_min_runtime_s:
        return False
    if victim.moved_at is not None and now - victim.moved_at < policy.defrag_cooldown_s:
        return False
    end = ends_at(policy, victim)
    return end is None or end - now > policy.defrag_near_limit_s


def may_take_back(fleet: Fleet, victim: Job) -> bool:
    """May this job, which sits on lent spares, be told to leave them?"""
    return not victim.pinned and victim.plan is None and evictable(fleet, victim.id) is None


def removable(
    fleet: Fleet,
    rack: Rack,
    fits: int,
    now: float,
    notice_s: float,
    may: Callable[[Tenancy], bool],
) -> list[Victims]:
    """What can be freed in this rack, in pieces that do not touch: a job with all its whole nodes,
    or a shared node with all its tenants. Only places of `fits` count as freed.
    """
    whole: dict[JobId, list[int]] = {}
    shared: dict[int, list[JobId]] = {}
    barred_jobs: set[JobId] = set()
    barred_places: set[int] = set()
    for tenancy in rack.tenancies:
        allowed = may(tenancy)
        if tenancy.gpus:
            place = tenancy.mask.bit_length() - 1
            shared.setdefault(place, []).append(tenancy.job)
            if not allowed:
                barred_places.add(place)
        elif allowed:
            whole.setdefault(tenancy.job, []).extend(bits(tenancy.mask & fits))
        else:
            barred_jobs.add(tenancy.job)
    made: list[tuple[tuple[JobId, ...], tuple[int, ...]]] = [
        ((name,), tuple(places))
        for name, places in sorted(whole.items())
        if places and name not in barred_jobs
    ]
    made += [
        (tuple(names), (place,))
        for place, names in sorted(shared.items())
        if fits >> place & 1 and place not in barred_places
    ]
    return [
        Victims(jobs=jobs, places=places, loss=_loss(fleet, jobs, now, notice_s))
        for jobs, places in made
    ]


def _loss(fleet: Fleet, jobs: Iterable[JobId], now: float, notice_s: float) -> float:
    return sum(victim_loss(fleet, fleet.jobs[name], now, notice_s) for name in jobs)


def cheapest(
    pieces: list[Victims],
    needed: int,
    most: int,
    may: Callable[[tuple[JobId, ...]], bool] = lambda _: True,
) -> Victims | None:
    """The pieces that free at least `needed` places at least loss, with at most `most` jobs that
    may go together.

    A rack is small, so all sums are tried. Between equal losses fewer jobs, then names, decide.
    """
    best: dict[int, Victims] = {0: Victims()}
    for piece in pieces:
        for have, chosen in sorted(best.items(), reverse=True):
            if have >= needed:
                continue
            total = chosen.with_(piece)
            freed = min(needed, have + len(piece.places))
            old = best.get(freed)
            better = len(total.jobs) <= most and (old is None or _key(total) < _key(old))
            if better and may(total.jobs):
                best[freed] = total
    return best.get(needed)


def _key(victims: Victims) -> tuple[float, int, tuple[JobId, ...]]:
    return (victims.loss, len(victims.jobs), victims.jobs)
