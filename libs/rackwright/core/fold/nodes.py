"""How the fleet changes by entries of the nouns `node`, `rack` and `maintenance`."""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet, Maintenance, Place, WishedSwap
from rackwright.core.fold.keeping import forget_kept
from rackwright.core.fold.seats import ended, put_job, put_rack, with_wounds
from rackwright.core.jobs import Job, Wound, WoundKind, need_of
from rackwright.core.rackhealth import refresh_health, with_node, without_kept
from rackwright.core.racks import History, Node, NodeFault, Rack
from rackwright.core.shares import DAY_S
from rackwright.wire.entries.node import (
    MaintenanceEnded,
    MaintenanceScheduled,
    NodeCleaning,
    NodeCleared,
    NodeCordoned,
    NodeFailed,
    NodeJoined,
    NodeRecovered,
    NodeSuspected,
    NodeUncordoned,
    NodeUnfit,
    RackDefined,
    RackDegraded,
    RackHeld,
    RackIsolated,
    RackReleased,
    RackRestored,
    RepairRequested,
)
from rackwright.wire.ids import JobId, NodeId, Owner, WorkerId
from rackwright.wire.jobs import JobClass
from rackwright.wire.nodes import FITNESS_ORDER, Fitness, Hardware, RackFitness

FAULT_MEMORY_S = 30 * 86_400.0
CULPRIT_MEMORY_S = 3_600.0
MAX_CULPRITS = 1_024


def put_node(fleet: Fleet, place: Place, **changes: Any) -> None:
    """Change one node; the entry being folded is now its last."""
    rack = fleet.racks[place.rack]
    node = evolve(rack.nodes[place.node], last=fleet.seq, **changes)
    put_rack(fleet, rack, with_node(rack, fleet.policy, place.node, node, fleet.time))
    if node.probation_until > fleet.time:
        _wake(fleet, node.probation_until, place.rack)


def _put_health(fleet: Fleet, before: Rack, after: Rack) -> None:
    put_rack(fleet, before, refresh_health(after, fleet.policy, fleet.time))


def _wake(fleet: Fleet, at: float, rack: int) -> None:
    fleet.timers = tuple(sorted({*fleet.timers, (at, rack)}))


def expire(fleet: Fleet) -> None:
    """Holds and probations that have ended by ledger time free their nodes."""
    while fleet.timers and fleet.timers[0][0] <= fleet.time:
        _, number = fleet.timers[0]
        fleet.timers = fleet.timers[1:]
        rack = fleet.racks[number]
        _put_health(fleet, rack, without_kept(rack, fleet.time))
        if fleet.kept:
            forget_kept(fleet)


def node_kind(hardware: Hardware) -> str:
    """Nodes of one kind are alike for placement: model, driver and labels."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(hardware.labels.items()))
    return f"{hardware.gpu_model}|{hardware.driver}|{labels}"


def _wound(fleet: Fleet, place: Place, of: Callable[[Job, int, WorkerId], Wound | None]) -> None:
    """Ask for each rank on this node whether it is wounded now."""
    for tenancy in fleet.racks[place.rack].tenants_at(place.node):
        job = fleet.jobs[tenancy.job]
        part = job.part(tenancy.slice)
        rank = part.first_rank + part.nodes.index(place.node)
        wound = of(job, rank, part.worker(job.id, rank))
        if wound is not None:
            put_job(fleet, with_wounds(job, (wound,)))


def _leaving_at(fleet: Fleet, place: Place) -> list[WorkerId]:
    rack = fleet.racks[place.rack]
    return [one.worker for one in rack.leaving if one.node == place.node]


def node_joined(fleet: Fleet, entry: NodeJoined) -> None:
    """A new session. What it does not list as running has ended, for good."""
    place = fleet.places[entry.node]
    node = fleet.racks[place.rack].nodes[place.node]
    running, exited = set(entry.running), set(entry.exited)
    ended(fleet, [one for one in _leaving_at(fleet, place) if one not in running])

    def lost(job: Job, rank: int, worker: WorkerId) -> Wound | None:
        if worker in running or worker in exited:
            return None
        return Wound(
            rank=rank, kind=WoundKind.PROCESS, code="session.lost", at=fleet.time, ended=True
        )

    _wound(fleet, place, lost)
    fresh = node.fitness is Fitness.NONE and not node.failed and node.repair is None
    put_node(
        fleet,
        place,
        session=entry.session,
        boot=entry.boot,
        hardware=entry.hardware,
        kind=node_kind(entry.hardware),
        gpus=entry.hardware.gpus,
        fitness=Fitness.FULL if fresh else node.fitness,
        suspected=0,
        witnesses=entry.witnesses,
    )
    fleet.installed_gpus += entry.hardware.gpus - node.gpus
    fleet.topology = fleet.topology.with_node(place.rack, place.node, node.hardware, entry.hardware)


def node_unfit(fleet: Fleet, entry: NodeUnfit) -> None:
    """Good for less; the ranks that need more than that are wounded."""
    place = fleet.places[entry.node]
    node = fleet.racks[place.rack].nodes[place.node]
    fitness = min(entry.fitness, node.fitness, key=lambda one: FITNESS_ORDER[one])
    put_node(
        fleet,
        place,
        fitness=fitness,
        faults=_faults(fleet, node, entry) if entry.counts else node.faults,
        repair=entry.action,
        repair_at=fleet.time if entry.counts else 0.0,  # nobody has been asked
        why=entry.reason.code,
    )
    if entry.counts:
        _culprit(fleet, fleet.racks[place.rack])

    def short(job: Job, rank: int, worker: WorkerId) -> Wound | None:
        if FITNESS_ORDER[need_of(job.spec, len(job.slices))] <= FITNESS_ORDER[fitness]:
            return None
        return Wound(rank=rank, kind=WoundKind.NODE, code=entry.reason.code, at=fleet.time)

    _wound(fleet, place, short)


def _faults(fleet: Fleet, node: Node, entry: NodeUnfit | NodeFailed) -> tuple[NodeFault, ...]:
    """Those of the slot and this one, which is noted of the hardware too."""
    new = NodeFault(at=fleet.time, code=entry.reason.code, boot=node.boot, serial=entry.serial)
    if entry.serial:
        known = fleet.histories.get(entry.serial, History())
        known = evolve(known, faults=_with(fleet, known.faults, new))
        fleet.histories = fleet.histories.set(entry.serial, known)
    return _with(fleet, node.faults, new)


def _with(fleet: Fleet, faults: tuple[NodeFault, ...], new: NodeFault) -> tuple[NodeFault, ...]:
    kept = tuple(one for one in faults if one.at > fleet.time - FAULT_MEMORY_S)
    return (*kept[-31:], new)


def _culprit(fleet: Fleet, rack: Rack) -> None:
    """One more for the breaker; of a rack that is out as a whole the rack has been counted."""
    if rack.isolated or rack.fitness in {RackFitness.EVACUATE, RackFitness.DOWN}:
        return
    kept = fleet.culprits[bisect_right(fleet.culprits, fleet.time - CULPRIT_MEMORY_S) :]
    fleet.culprits = (*kept[-MAX_CULPRITS:], fleet.time)


def node_suspected(fleet: Fleet, entry: NodeSuspected) -> None:
    """The lease is recalled; running work is left alone."""
    place = fleet.places[entry.node]
    put_node(fleet, place, suspected=fleet.seq, suspected_at=fleet.time, why=entry.reason.code)


def node_cleared(fleet: Fleet, entry: NodeCleared) -> None:
    """Heard again in time."""
    put_node(fleet, fleet.places[entry.node], suspected=0, why="")


def node_failed(fleet: Fleet, entry: NodeFailed) -> None:
    """Dead. Fenced: every worker of the session has ended.

    One that was good for nothing already has had its fault; that it is silent too is no other.
    """
    place = fleet.places[entry.node]
    node = fleet.racks[place.rack].nodes[place.node]
    counts = node.fitness is not Fitness.NONE
    put_node(
        fleet,
        place,
        fitness=Fitness.NONE,
        session=None if entry.fenced else node.session,
        failed=True,
        fenced=node.session if entry.fenced else node.fenced,
        suspected=0,
        faults=_faults(fleet, node, entry) if counts else node.faults,
        why=entry.reason.code if counts else node.why,
    )
    if counts:
        _culprit(fleet, fleet.racks[place.rack])
    if entry.fenced:
        ended(fleet, _leaving_at(fleet, place))

    def gone(job: Job, rank: int, worker: WorkerId) -> Wound | None:
        return Wound(
            rank=rank,
            kind=WoundKind.NODE,
            code=entry.reason.code,
            at=fleet.time,
            ended=entry.fenced,
        )

    _wound(fleet, place, gone)


def node_recovered(fleet: Fleet, entry: NodeRecovered) -> None:
    """In service again; a node that was not swapped away from is no wound any more.

    What remains of such a wound is that the process is gone, if it is.
    """
    place = fleet.places[entry.node]
    put_node(
        fleet,
        place,
        fitness=entry.fitness,
        failed=False,
        recovered_at=fleet.time,
        repair=None,
        probation_until=entry.probation_until,
        why="",
        check_why="",
    )
    if entry.serial in fleet.histories:
        cleared = evolve(fleet.histories[entry.serial], cleared_at=fleet.time)
        fleet.histories = fleet.histories.set(entry.serial, cleared)
    for tenancy in fleet.racks[place.rack].tenants_at(place.node):
        job = fleet.jobs[tenancy.job]
        part = job.part(tenancy.slice)
        rank = part.first_rank + part.nodes.index(place.node)
        if FITNESS_ORDER[need_of(job.spec, len(job.slices))] <= FITNESS_ORDER[entry.fitness]:
            put_job(fleet, evolve(job, wounds=_without_node_wound(job, rank)))


def _without_node_wound(job: Job, rank: int) -> tuple[Wound, ...]:
    """Its wounds, now that the node of this rank is good again."""
    made = []
    for wound in job.wounds:
        if wound.rank != rank or wound.kind is not WoundKind.NODE:
            made.append(wound)
        elif wound.ended:
            made.append(evolve(wound, kind=WoundKind.PROCESS))
    return tuple(made)


def node_cleaning(fleet: Fleet, entry: NodeCleaning) -> None:
    """Workers that left are gone."""
    ended(fleet, entry.ended)
    put_node(fleet, fleet.places[entry.node])


def repair_requested(fleet: Fleet, entry: RepairRequested) -> None:
    """Somebody must act."""
    put_node(
        fleet,
        fleet.places[entry.node],
        repair=entry.action,
        repair_at=fleet.time,
        repair_eta=entry.eta,
    )


def node_cordoned(fleet: Fleet, entry: NodeCordoned) -> None:
    """No new work; drained: restartable work that is not interactive leaves."""
    place = fleet.places[entry.node]
    put_node(fleet, place, cordoned=True, draining=entry.drain, cordoned_for=entry.because)
    if entry.job is not None:
        _swap_wished(fleet, place, entry.job, entry.by)
    if not entry.drain:
        return

    def drained(job: Job, rank: int, worker: WorkerId) -> Wound | None:
        if not job.spec.restartable or job.spec.job_class is JobClass.INTERACTIVE:
            return None
        return Wound(rank=rank, kind=WoundKind.DRAIN, code="drain", at=fleet.time)

    _wound(fleet, place, drained)


def _swap_wished(fleet: Fleet, place: Place, job: JobId, by: Owner) -> None:
    """It counts for a day; and what the node was checked for before says nothing of this."""
    kept = tuple(one for one in fleet.wished_swaps if one.at > fleet.time - DAY_S)
    fleet.wished_swaps = (*kept, WishedSwap(at=fleet.time, job=job, by=by))
    put_node(fleet, place, check_why="")


def node_uncordoned(fleet: Fleet, entry: NodeUncordoned) -> None:
    """Work may come, and what has not left yet may stay."""
    place = fleet.places[entry.node]
    put_node(fleet, place, cordoned=False, draining=False, cordoned_for="")
    for tenancy in fleet.racks[place.rack].tenants_at(place.node):
        job = fleet.jobs[tenancy.job]
        part = job.part(tenancy.slice)
        rank = part.first_rank + part.nodes.index(place.node)
        kept = tuple(
            wound for wound in job.wounds if wound.rank != rank or wound.kind is not WoundKind.DRAIN
        )
        put_job(fleet, evolve(job, wounds=kept))


def rack_defined(fleet: Fleet, entry: RackDefined) -> None:
    """A new rack, or more nodes at the end of a known one."""
    spec = entry.rack
    known = fleet.rack_numbers.get(spec.rack)
    before = fleet.racks[known] if known is not None else None
    number = known if known is not None else len(fleet.racks)
    nodes = before.nodes if before is not None else ()
    new = tuple(
        Node(name=name, gpus=spec.gpus_per_node, last=fleet.seq)
        for name in spec.nodes[len(nodes) :]
    )
    for offset, node in enumerate(new):
        place = Place(rack=number, node=len(nodes) + offset)
        fleet.places = fleet.places.set(NodeId(node.name), place)
    rack = (
        evolve(before, spec=spec, nodes=nodes + new)
        if before is not None
        else Rack(spec=spec, number=number, nodes=new)
    )
    rack = refresh_health(rack, fleet.policy, fleet.time)
    put_rack(fleet, before, rack)
    fleet.rack_numbers = fleet.rack_numbers.set(spec.rack, number)
    fleet.topology = fleet.topology.with_rack(number, spec)
    fleet.installed_nodes += len(new)
    fleet.installed_gpus += sum(node.gpus for node in new)


def rack_degraded(fleet: Fleet, entry: RackDegraded) -> None:
    """Good for less as a whole, or good again."""
    rack = fleet.rack(entry.rack)
    bad = entry.fitness is not RackFitness.GOOD
    demerits = tuple(at for at in rack.demerits if at > fleet.time - FAULT_MEMORY_S)
    after = evolve(
        rack, fitness=entry.fitness, demerits=(*demerits, fleet.time) if bad else demerits
    )
    _put_health(fleet, rack, after)


def rack_isolated(fleet: Fleet, entry: RackIsolated) -> None:
    """Silent as a whole: nothing new there, nothing of it is taken for dead."""
    rack = fleet.rack(entry.rack)
    _culprit(fleet, rack)
    _put_health(fleet, rack, evolve(rack, isolated=True))


def rack_restored(fleet: Fleet, entry: RackRestored) -> None:
    """Not isolated any more, and as good as the entry says."""
    rack = fleet.rack(entry.rack)
    _put_health(fleet, rack, evolve(rack, isolated=False, fitness=entry.fitness))


def rack_held(fleet: Fleet, entry: RackHeld) -> None:
    """An operator keeps its free nodes back."""
    rack = fleet.rack(entry.rack)
    after = evolve(rack, held_until=entry.until, held_by=entry.owner)
    _put_health(fleet, rack, after)
    _wake(fleet, entry.until, rack.number)


def rack_released(fleet: Fleet, entry: RackReleased) -> None:
    """The hold is over."""
    rack = fleet.rack(entry.rack)
    _put_health(fleet, rack, evolve(rack, held_until=0.0, held_by=""))


def maintenance_scheduled(fleet: Fleet, entry: MaintenanceScheduled) -> None:
    """A planned absence."""
    window = Maintenance(
        seq=fleet.seq,
        racks=entry.racks,
        nodes=entry.nodes,
        begin=entry.begin,
        end=entry.end,
        notice_s=entry.notice_s,
        by=entry.by,
        why=entry.why,
    )
    fleet.maintenance = (*fleet.maintenance, window)


def maintenance_ended(fleet: Fleet, entry: MaintenanceEnded) -> None:
    """The window is closed."""
    fleet.maintenance = tuple(one for one in fleet.maintenance if one.seq != entry.of)
