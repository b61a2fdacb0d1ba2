"""What must hold of every fleet, after every entry. Each broken rule is one sentence.

Used by the tests, the simulator, the demo and `rackwright verify` alike; nothing else defines what
safe means.
"""

from collections.abc import Iterator

from immutables import Map

from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import gpus_in_use
from rackwright.core.index import RackIndex, bits
from rackwright.core.jobs import ASSIGNED, ENDED, Job, JobState
from rackwright.core.rackhealth import refresh_health
from rackwright.core.racks import Rack, spare_target
from rackwright.core.shares import Account, Counts, counted
from rackwright.wire.ids import WorkerId


class BrokenInvariant(AssertionError):
    """A fleet that must not exist; `broken` lists the rules."""

    def __init__(self, seq: int, broken: list[str]) -> None:
        super().__init__(f"at {seq}: " + "; ".join(broken[:5]))
        self.seq = seq
        self.broken = broken


def check(fleet: Fleet) -> None:
    """Raise BrokenInvariant unless every rule holds. Looks at the whole cell."""
    found = broken(fleet)
    if found:
        raise BrokenInvariant(fleet.seq, found)


def broken(fleet: Fleet) -> list[str]:
    """All rules that do not hold."""
    return [
        *_seats(fleet),
        *_jobs(fleet),
        *_workers(fleet),
        *_counters(fleet),
        *_usage(fleet),
        *_limits(fleet),
        *_plans(fleet),
        *_kept(fleet),
    ]


def _seats(fleet: Fleet) -> Iterator[str]:
    """No GPU has two tenants, and the racks say of the jobs what the jobs say of themselves."""
    said: set[tuple[str, int, int, int, int]] = set()
    for number, rack in fleet.racks.items():
        taken: dict[int, int] = {}
        for tenancy in rack.tenancies:
            said.add((tenancy.job, tenancy.slice, number, tenancy.mask, tenancy.gpus))
            for place in bits(tenancy.mask):
                whole = (1 << rack.nodes[place].gpus) - 1
                wanted = tenancy.gpus or whole
                if taken.get(place, 0) & wanted:
                    yield f"{rack.nodes[place].name}: a GPU has two tenants, one is {tenancy.job}"
                taken[place] = taken.get(place, 0) | wanted
    meant = {
        (job.id, part.index, part.rack, part.mask, part.gpus)
        for job in fleet.jobs.values()
        for part in job.slices
    }
    for job, index, *_ in sorted(said ^ meant):
        yield f"{job}: slice {index} is not where its rack says"


def _jobs(fleet: Fleet) -> Iterator[str]:
    for name, job in fleet.jobs.items():
        if job.state in ENDED or name in fleet.tombstones:
            yield f"{name}: has ended and is still there"
        if (job.state in ASSIGNED) != bool(job.slices):
            yield f"{name}: is {job.state} with {len(job.slices)} slices"
        if (job.state is JobState.QUEUED) != (name in fleet.queued):
            yield f"{name}: is {job.state} and queued is {name in fleet.queued}"
        if bool(job.wounds) != (name in fleet.wounded):
            yield f"{name}: has {len(job.wounds)} wounds and wounded is {name in fleet.wounded}"
        if not 0 <= job.started <= job.membership:
            yield f"{name}: membership {job.membership}, started {job.started}"
        yield from _slices(job)
    for name in (*fleet.queued, *fleet.starting, *fleet.wounded, *fleet.fresh_faults):
        if name not in fleet.jobs:
            yield f"{name}: is in a set of living jobs and does not live"


def _slices(job: Job) -> Iterator[str]:
    rank = 0
    if not job.slices and job.shed:
        yield f"{job.id}: has no slices and goes on without {len(job.shed)}"
    for index, part in enumerate(job.with_shed):
        if part.index != index or part.first_rank != rank:
            yield f"{job.id}: slice {index} has a gap before it"
        rank += part.size
    for index, part in enumerate(job.slices):
        if len(set(part.nodes)) != part.size or sum(1 << node for node in part.nodes) != part.mask:
            yield f"{job.id}: slice {index} has a node twice"
        if len(part.incarnations) != part.size or max(part.incarnations) > job.membership:
            yield f"{job.id}: slice {index} has an incarnation from the future"
    for wound in job.wounds:
        if not job.has_rank(wound.rank):
            yield f"{job.id}: rank {wound.rank} is wounded and is none"


def _workers(fleet: Fleet) -> Iterator[str]:
    """A worker is current or leaving, never both; gates name leaving workers or ended ones."""
    current: set[WorkerId] = set()
    for job in fleet.jobs.values():
        for part in job.slices:
            for rank in range(part.first_rank, part.first_rank + part.size):
                current.add(part.worker(job.id, rank))
    for worker in sorted(current & set(fleet.leaving)):
        yield f"{worker}: is current and leaving"
    listed = {one.worker for rack in fleet.racks.values() for one in rack.leaving}
    for worker in sorted(listed ^ set(fleet.leaving)):
        yield f"{worker}: is leaving in one place only"
    of_jobs = {worker for workers in fleet.leaving_of.values() for worker in workers}
    for worker in sorted(of_jobs ^ set(fleet.leaving)):
        yield f"{worker}: is leaving, and not of its job"
    yield from _gates(fleet)


def _gates(fleet: Fleet) -> Iterator[str]:
    """A rank that is not up yet waits for every leaving worker of its GPUs."""
    for name in fleet.starting:
        job = fleet.jobs[name]
        for part in job.slices:
            leaving = fleet.racks[part.rack].leaving
            for rank, place in enumerate(part.nodes, part.first_rank):
                if part.incarnations[rank - part.first_rank] <= job.started:
                    continue
                missing = {
                    one.worker
                    for one in leaving
                    if one.node == place
                    and (not part.gpus or not one.gpus or one.gpus & part.gpus)
                    and one.worker != part.worker(name, rank)
                } - set(part.gates_of(rank))
                if missing:
                    yield f"{name}: rank {rank} does not wait for {min(missing)}"


def _counters(fleet: Fleet) -> Iterator[str]:
    """Incremental counters equal what a scan of the cell finds."""
    index = RackIndex()
    for number in sorted(fleet.racks):
        rack = fleet.racks[number]
        fresh = refresh_health(rack, fleet.policy, fleet.time)
        if fresh != rack:
            yield f"{rack.spec.rack}: counters are {_first_difference(rack, fresh)}"
        index = index.moved(None, fresh)
    if index.by_shape != fleet.index.by_shape:
        yield "index: shapes differ from the racks"
    if (index.room, index.usable) != (fleet.index.room, fleet.index.usable):
        yield f"index: room {fleet.index.room} is {index.room}"
    for count, racks in enumerate(fleet.index.by_free_gpus):
        kept = index.by_free_gpus[count] if count < len(index.by_free_gpus) else 0
        if racks != kept:
            yield f"index: racks with {count} free GPUs differ"


def _usage(fleet: Fleet) -> Iterator[str]:
    """Owners use what their jobs have."""
    found: dict[Account, tuple[int, int]] = {}
    for job in fleet.jobs.values():
        gpus, lent = gpus_in_use(fleet, job.slices)
        if gpus or lent:
            account = (job.spec.queue, job.owner)
            before = found.get(account, (0, 0))
            found[account] = (before[0] + gpus, before[1] + lent)
    kept = {account: (one.gpus, one.lent) for account, one in fleet.usage.items()}
    for account in sorted({*found, *kept}):
        have, counted = found.get(account, (0, 0)), kept.get(account, (0, 0))
        if have != counted:
            yield f"usage of {account[1]} in {account[0]}: {counted} is {have} by a scan"


def _limits(fleet: Fleet) -> Iterator[str]:
    """Limits see what jobs have."""
    found: Counts = Map()
    for job in fleet.jobs.values():
        found = counted(found, job, *gpus_in_use(fleet, job.slices))
    for of in sorted({*found, *fleet.counts}):
        have, kept = found.get(of, 0), fleet.counts.get(of, 0)
        if have != kept:
            yield f"GPUs of {' '.join(of).strip()}: {kept} are {have} by a scan"


def _first_difference(rack: Rack, fresh: Rack) -> str:
    for name in rack.__slots__:
        if getattr(rack, name) != getattr(fresh, name):
            return f"{name} {getattr(rack, name)}, {getattr(fresh, name)} by a scan"
    return "equal"


def _plans(fleet: Fleet) -> Iterator[str]:
    """Every victim has a home: while its plan is in flight it is placed, or has ended by itself."""
    for plan in fleet.plans.values():
        for victim in plan.victims:
            job = fleet.jobs.get(victim.job)
            if job is None or job.plan != plan.id:
                continue
            if job.state not in ASSIGNED:
                yield f"{victim.job}: is a victim of {plan.id} and is {job.state}"


def _kept(fleet: Fleet) -> Iterator[str]:
    """Nodes are kept for jobs that have ended, and the fleet knows in which racks."""
    found: dict[str, list[int]] = {}
    for number in sorted(fleet.racks):
        for node in fleet.racks[number].nodes:
            if node.kept_for is not None:
                found.setdefault(node.kept_for, []).append(number)
    known = {str(name): set(racks) for name, racks in fleet.kept.items()}
    for job in sorted({*found, *known}):
        if job not in found or not set(found[job]) <= known.get(job, set()):
            yield f"{job}: kept in racks {found.get(job)}, known are {known.get(job)}"


def spares_short(fleet: Fleet) -> dict[str, int]:
    """By rack: how many spares are missing beside its protected slices. Not a broken rule."""
    short = {}
    for rack in fleet.racks.values():
        target = spare_target(fleet.policy, rack.protected.bit_count())
        missing = target - rack.usable.bit_count()
        if missing > 0:
            short[str(rack.spec.rack)] = missing
    return short
