"""Cells of any size in memory, filled to a share of their nodes with a mixture of jobs."""

import random
from collections.abc import Iterator

from rackwright.core.fleet import Fleet, Place
from rackwright.core.fold import apply
from rackwright.core.fold.nodes import node_kind
from rackwright.core.index import bits
from rackwright.core.rackhealth import refresh_health
from rackwright.core.racks import Node, Rack
from rackwright.wire.entries.job import JobPlaced, JobQueued, JobStarted, SlicePlacement
from rackwright.wire.ids import JobId, LedgerId, NodeId, Owner, RackId, SessionId
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.nodes import Fitness, Hardware, RackSpec
from rackwright.wire.reasons import Reason

NODES = 18
GPUS = 4
BLOCK = 8  # racks
DOWN = 0.006  # share of nodes out of service
FILL = Reason(code="fill")

# Mostly small work by number, mostly large work by nodes: (weight, GPUs of a node or 0, nodes).
MIXTURE = (
    (26, 1, 1),
    (10, 2, 1),
    (4, 3, 1),
    (20, 0, 1),
    (11, 0, 2),
    (9, 0, 4),
    (7, 0, 8),
    (9, 0, 16),
    (2, 0, 32),
    (1, 0, 64),
    (1, 0, 128),
)


def empty_cell(racks: int, rng: random.Random, *, down: float = DOWN) -> Fleet:
    """Racks of 18 nodes with 4 GPUs in blocks of 8, joined; a share `down` is out of service."""
    fleet = Fleet(ledger=LedgerId("bench"), seq=1, time=1_000_000.0)
    for number in range(racks):
        name = f"r{number}"
        names = tuple(NodeId(f"{name}-n{place:02d}") for place in range(NODES))
        spec = RackSpec(
            rack=RackId(name), path=(f"b{number // BLOCK:05d}",), nodes=names, gpus_per_node=GPUS
        )
        nodes = tuple(_node(node, rng.random() < down) for node in names)
        rack = Rack(spec=spec, number=number, nodes=nodes)
        rack = refresh_health(rack, fleet.policy, fleet.time)
        fleet.racks = fleet.racks.set(number, rack)
        fleet.rack_numbers = fleet.rack_numbers.set(spec.rack, number)
        fleet.topology = fleet.topology.with_rack(number, spec)
        fleet.index = fleet.index.moved(None, rack)
        for place, node in enumerate(names):
            fleet.places = fleet.places.set(node, Place(rack=number, node=place))
    fleet.installed_nodes = racks * NODES
    fleet.installed_gpus = racks * NODES * GPUS
    return fleet


def _node(name: NodeId, down: bool) -> Node:
    found = Hardware(serial=f"sn-{name}", gpus=GPUS, gpu_model="gb200", driver="570")
    return Node(
        name=name,
        gpus=GPUS,
        fitness=Fitness.NONE if down else Fitness.FULL,
        session=SessionId(f"s-{name}"),
        boot="b",
        hardware=found,
        kind=node_kind(found),
        last=1,
    )


def mixed_spec(rng: random.Random, most_nodes: int) -> JobSpec:
    """A job of the mixture; one in ten is pinned work."""
    weights = [weight for weight, _, nodes in MIXTURE if nodes <= most_nodes]
    sizes = [(gpus, nodes) for _, gpus, nodes in MIXTURE if nodes <= most_nodes]
    ((gpus, nodes),) = rng.choices(sizes, weights)
    pinned = rng.random() < 0.1
    return JobSpec(
        name=JobId("bench"),
        gpus=gpus or None,
        nodes=None if gpus else nodes,
        job_class=JobClass.INTERACTIVE if pinned and gpus else JobClass.BATCH,
        restartable=not pinned or bool(gpus),
    )


def queued(fleet: Fleet, name: str, spec: JobSpec) -> Fleet:
    """The fleet with one more job in the queue."""
    entry = JobQueued(
        job=JobId(name),
        owner=Owner("ann"),
        spec=spec,
        spec_hash="h",
        submitted_at=fleet.time,
    )
    return apply(fleet, entry)


def seated(fleet: Fleet, name: str, slices: tuple[SlicePlacement, ...]) -> Fleet:
    """The fleet with that job placed and started."""
    job = fleet.jobs[JobId(name)]
    membership = job.membership + 1
    placed = JobPlaced(job=job.id, membership=membership, slices=slices, reason=FILL)
    return apply(apply(fleet, placed), JobStarted(job=job.id, membership=membership))


def filled_cell(racks: int, share: float, seed: int) -> Fleet:
    """A cell of which this share of the nodes is in use, fragmented as a busy cell is.

    Racks are filled one by one: most with a full slice and something beside it, some with small
    work only, the rest left whole.
    """
    rng = random.Random(seed)
    fleet = empty_cell(racks, rng)
    count = 0
    for number in rng.sample(range(racks), racks):
        if _used(fleet) >= share:
            break
        for nodes, gpus in _tenants(rng):
            fleet, count = _sit(fleet, number, nodes, gpus, count, rng)
    return fleet


def _used(fleet: Fleet) -> float:
    return 1.0 - fleet.index.usable / fleet.installed_nodes


def _tenants(rng: random.Random) -> Iterator[tuple[int, int]]:
    """(nodes, GPUs of one node or 0) of the jobs of one rack."""
    if rng.random() < 0.55:
        yield 16, 0
        return
    left = rng.randint(8, 18)
    while left > 0:
        gpus = rng.choice((0, 0, 0, 1, 2, 3))
        nodes = 1 if gpus else min(left, rng.choice((1, 1, 2, 2, 4, 8)))
        yield nodes, gpus
        left -= nodes


def _sit(
    fleet: Fleet, number: int, nodes: int, gpus: int, count: int, rng: random.Random
) -> tuple[Fleet, int]:
    rack = fleet.racks[number]
    free = list(bits(rack.usable))
    if len(free) < nodes:
        return fleet, count
    mask = sum(1 << place for place in free[:nodes])
    name = f"fill-{count}"
    pinned = rng.random() < 0.1
    spec = JobSpec(
        name=JobId(name),
        gpus=gpus or None,
        nodes=None if gpus else nodes,
        job_class=JobClass.INTERACTIVE if pinned and nodes == 1 else JobClass.BATCH,
    )
    one = SlicePlacement(
        index=0, first_rank=0, rack=rack.spec.rack, nodes=mask, gpus=(1 << gpus) - 1
    )
    return seated(queued(fleet, name, spec), name, (one,)), count + 1
