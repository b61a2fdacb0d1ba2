"""What a wounded slice finds around it: which nodes of its rack may replace its bad ones."""

from dataclasses import dataclass

from rackwright.core.evolve import evolve
from rackwright.core.fleet import Fleet
from rackwright.core.fold.seats import serving_on
from rackwright.core.index import bits
from rackwright.core.jobs import (
    Job,
    Slice,
    Wound,
    WoundKind,
    is_movable,
    need_of,
    protected,
)
from rackwright.core.legality.seats import node_takes
from rackwright.core.policy.ask import Ask, Same, ask_of
from rackwright.core.policy.cut import Cut, Piece
from rackwright.core.racks import Node, Rack
from rackwright.wire.ids import NodeId
from rackwright.wire.nodes import FITNESS_ORDER, Fitness


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One wounded slice on this fleet.

    `same` is what the job's nodes have in common, None while that is open. `fits` are the places
    of its rack that could replace a node of it, taken or not; `spares` those of them that are free
    and may be used, best first. `small`: work of one node or on lent spares, which leaves the
    spares of its neighbours alone.
    """

    fleet: Fleet
    job: Job
    part: Slice
    wounds: tuple[Wound, ...]
    now: float
    rack: Rack
    need: Fitness
    ask: Ask
    same: Same | None
    fits: int
    spares: tuple[int, ...]
    small: bool

    def place_of(self, rank: int) -> int:
        """The place in the rack of a rank of this slice."""
        return self.part.nodes[rank - self.part.first_rank]

    def node_of(self, rank: int) -> Node:
        """The node of a rank of this slice."""
        return self.rack.nodes[self.place_of(rank)]


def case_of(fleet: Fleet, job: Job, part: Slice, wounds: tuple[Wound, ...], now: float) -> Case:
    """Look around once."""
    rack = fleet.racks[part.rack]
    need = need_of(job.spec, len(job.slices))
    ask = _ask(fleet, job, part, now)
    same = ask.same_of(example_of(fleet, job, part))
    codes = frozenset(wound.code for wound in wounds)
    fits = 0
    for place, node in enumerate(rack.nodes):
        outside = not (part.mask | ask.barred.get(rack.number, 0)) >> place & 1
        if outside and _replaces(node, need, ask, same, codes, now):
            fits |= 1 << place
    kept = protected(job.spec, part.size) and not part.lent
    small = len(job.slices) == 1 and not kept
    return Case(
        fleet=fleet,
        job=job,
        part=part,
        wounds=wounds,
        now=now,
        rack=rack,
        need=need,
        ask=ask,
        same=same,
        fits=fits,
        spares=_spares(rack, fits, now, small),
        small=small,
    )


def _ask(fleet: Fleet, job: Job, part: Slice, now: float) -> Ask:
    """The job's constraints; no node that it was driven from lately, nor its own, comes again. Nor
    does one on which an old worker of it serves on: it would wait for that one to go, and that one
    for the job to run."""
    spec = job.spec
    piece = Piece(
        index=part.index,
        group=part.group,
        replica=part.replica,
        first_rank=part.first_rank,
        nodes=part.size,
        gpus=part.gpus.bit_count(),
    )
    only = fleet.topology.gpus_per_node if spec.gpus is not None else 0
    ask = ask_of(fleet, job, Cut(pieces=(piece,), node_gpus=only, needs=()), 0)
    barred = driven_from(fleet, job, now, ask.barred)
    barred[part.rack] = barred.get(part.rack, 0) | part.mask
    for worker in serving_on(fleet, job.id) if is_movable(spec) else ():
        place = fleet.leaving[worker]
        barred[place.rack] = barred.get(place.rack, 0) | 1 << place.node
    return evolve(ask, barred=barred, across=len(job.slices) > 1)


def driven_from(fleet: Fleet, job: Job, now: float, barred: dict[int, int]) -> dict[int, int]:
    """These barred nodes by rack, and those that wounds have driven the job from lately."""
    found = dict(barred)
    for one in job.swaps:
        if one.at > now - fleet.policy.poison_window_s and one.code != WoundKind.DRAIN:
            place = fleet.places[NodeId(one.node)]
            found[place.rack] = found.get(place.rack, 0) | 1 << place.node
    return found


def example_of(fleet: Fleet, job: Job, part: Slice | None) -> Node:
    """A node of the job, of another slice than `part` if there is one: that one's may be gone."""
    others = (one for one in job.slices if part is None or one.index != part.index)
    other = next(others, part) or job.slices[0]
    nodes = fleet.racks[other.rack].nodes
    found = (nodes[place] for place in other.nodes if nodes[place].hardware is not None)
    return next(found, nodes[other.nodes[0]])


def _replaces(
    node: Node, need: Fitness, ask: Ask, same: Same | None, codes: frozenset[str], now: float
) -> bool:
    """Fit and alike, and not on probation for the very signal that is to be healed."""
    found = ask.same_of(node)
    if node_takes(node, need) is not None or found is None or (same is not None and found != same):
        return False
    doubtful = node.probation_until > now
    return not doubtful or all(fault.code not in codes for fault in node.faults)


def _spares(rack: Rack, fits: int, now: float, small: bool) -> tuple[int, ...]:
    """Free nodes of the rack, best first: clean ones, with few faults, and probation last."""
    leaving = {one.node for one in rack.leaving}

    def worse(place: int) -> tuple[bool, bool, bool, int, int, int]:
        node = rack.nodes[place]
        return (
            node.probation_until > now,
            place in leaving,
            node.repair is not None,
            len(node.faults),
            FITNESS_ORDER[node.fitness],
            place,
        )

    places = sorted(bits(rack.free & fits), key=worse)
    if small:
        places = places[: max(0, rack.usable.bit_count() - rack.shape.target)]
    return tuple(places)
