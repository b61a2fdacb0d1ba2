"""Which nodes of a rack take work: kept in step with each node, by itself or all anew."""

from rackwright.core.evolve import changer, evolve
from rackwright.core.racks import Node, Rack, refresh_shape, refresh_use
from rackwright.wire.ids import JobId
from rackwright.wire.nodes import FITNESS_ORDER, Fitness, RackFitness
from rackwright.wire.policy import Policy

TAKES_GANGS = FITNESS_ORDER[Fitness.RACK]

_HEALTH = changer(Rack, "nodes", "takes", "takes_full", "takes_one", "kind")


def refresh_health(rack: Rack, policy: Policy, now: float) -> Rack:
    """Recompute what depends on the nodes' health and on time; call when one of them changed."""
    takes = takes_full = takes_one = 0
    if _open(rack, now):
        for place, node in enumerate(rack.nodes):
            one, gang, full = _takes(node, now)
            takes_one |= one << place
            takes |= gang << place
            takes_full |= full << place
    return refresh_use(
        rack,
        policy,
        takes=takes,
        takes_full=takes_full,
        takes_one=takes_one,
        kind=_kind(rack.nodes, takes),
    )


def with_node(rack: Rack, policy: Policy, place: int, node: Node, now: float) -> Rack:
    """The rack with this node at that place, as `refresh_health` would make it; looks at no other
    node, whose time has not come or who was refreshed when it did."""
    nodes = (*rack.nodes[:place], node, *rack.nodes[place + 1 :])
    bit = 1 << place
    one, gang, full = _takes(node, now) if _open(rack, now) else (False, False, False)
    others = rack.takes & ~bit
    takes = others | gang << place
    if rack.kind and others:
        kind = rack.kind if not gang or node.kind == rack.kind else ""
    else:
        kind = _kind(nodes, takes)
    rack = _HEALTH(
        rack,
        nodes=nodes,
        takes=takes,
        takes_full=rack.takes_full & ~bit | full << place,
        takes_one=rack.takes_one & ~bit | one << place,
        kind=kind,
    )
    return refresh_shape(rack, policy)


def _open(rack: Rack, now: float) -> bool:
    return not rack.isolated and rack.held_until <= now and rack.fitness is RackFitness.GOOD


def _takes(node: Node, now: float) -> tuple[bool, bool, bool]:
    """Does it take work of one node, of a gang, and of a job across racks?"""
    if not node.schedulable:
        return False, False, False
    gang = node.probation_until <= now and FITNESS_ORDER[node.fitness] >= TAKES_GANGS
    return True, gang, gang and node.fitness is Fitness.FULL


def _kind(nodes: tuple[Node, ...], takes: int) -> str:
    """The one kind of these nodes; nothing if there are several, or none of them."""
    kinds = {node.kind for place, node in enumerate(nodes) if takes >> place & 1}
    return kinds.pop() if len(kinds) == 1 else ""


def without_kept(rack: Rack, until: float, job: JobId | None = None) -> Rack:
    """The rack without what is kept up to then, or without what is kept for one job; the counters
    are as they were."""

    def ends(node: Node) -> bool:
        if node.kept_for is None:
            return False
        return node.kept_for == job if job is not None else node.kept_until <= until

    if not any(ends(node) for node in rack.nodes):
        return rack
    nodes = (evolve(n, kept_for=None, kept_until=0.0) if ends(n) else n for n in rack.nodes)
    return evolve(rack, nodes=tuple(nodes))
