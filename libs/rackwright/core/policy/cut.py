"""How a job is cut into slices: what each of them asks of one rack, and what its owner should know.

Ranks count through the slices in order: groups, in them replicas, in them slices, in them nodes.
Inside a slice ranks follow the rack's positions, so tp and ep (innermost) stay in one rack and pp
and dp go across.
"""

from dataclasses import dataclass

from rackwright.core.policy.refusing import Numbers, wrong
from rackwright.core.policy.resources import held_gpus
from rackwright.core.topology import Topology
from rackwright.wire.entries.job import MAX_SLICES
from rackwright.wire.ids import QueueName
from rackwright.wire.jobs import Group, JobSpec, TopologyNeed, Uneven
from rackwright.wire.policy import Policy
from rackwright.wire.quick import quick
from rackwright.wire.reasons import Reason


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One slice to be: `nodes` whole nodes of one rack, or `gpus` GPUs of one node (of work without
    GPUs: whose share of cores and memory it holds)."""

    index: int
    group: int
    replica: int
    first_rank: int
    nodes: int
    gpus: int = 0


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The slices of a job. `node_gpus`: only nodes with that many GPUs count (0: any do).

    `needs` is the topology asked for by each group.
    """

    pieces: tuple[Piece, ...]
    node_gpus: int
    needs: tuple[TopologyNeed, ...]
    warnings: tuple[Reason, ...] = ()


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What decides the sizes of the slices of one group."""

    field: str
    size: int
    by_user: bool
    need: TopologyNeed
    multiple: int
    uneven: Uneven
    largest: int
    spares: int


def operators_slice(policy: Policy, topology: Topology, queue: QueueName) -> int:
    """Slice size in nodes that the operator set for this queue, never more than a rack has."""
    size = policy.queue_slice_nodes.get(queue, policy.slice_nodes)
    return min(size, topology.largest_rack)


def whole_slice(policy: Policy, topology: Topology) -> int:
    """Nodes of the cell's own slice: a rack that has them free is a whole rack."""
    return min(policy.slice_nodes, topology.largest_rack)


def least_replicas(spec: JobSpec) -> tuple[int, ...]:
    """Replicas of each group without which the job does not start."""
    return tuple(
        group.replicas if group.min_replicas is None else group.min_replicas
        for group in spec.groups
    )


def cut(
    spec: JobSpec, policy: Policy, topology: Topology, replicas: tuple[int, ...] = ()
) -> Cut | Reason:
    """The slices of a job in this cell, or the field that cannot stand.

    `replicas`: how many of each group, instead of all it asks for.
    """
    if spec.groups:
        return _cut_groups(spec, policy, topology, replicas)
    if spec.gpus is None:
        return _cut_plain(spec, policy, topology, spec.nodes or 0, "nodes")
    per_node = topology.gpus_per_node
    if per_node == 0:
        return wrong("gpus", spec.gpus, "no node of this cell has GPUs", "nodes instead")
    if spec.gpus < per_node:
        gpus = spec.gpus or held_gpus(spec, topology)
        piece = Piece(index=0, group=0, replica=0, first_rank=0, nodes=1, gpus=gpus)
        return _checked(spec, per_node, (piece,), per_node, (spec.topology,), ())
    if spec.gpus % per_node:
        down = spec.gpus - spec.gpus % per_node
        why = f"is more than one node's {per_node} and no whole number of nodes"
        return wrong("gpus", spec.gpus, why, f"{down} or {down + per_node}")
    return _cut_plain(spec, policy, topology, spec.gpus // per_node, "gpus")


def _cut_plain(
    spec: JobSpec, policy: Policy, topology: Topology, nodes: int, field: str
) -> Cut | Reason:
    sizes = _sizes(nodes, _rule(spec, policy, topology, None))
    if isinstance(sizes, Reason):
        return sizes
    pieces = _pieces([(0, 0, sizes[0])])
    per_node = topology.gpus_per_node
    only = per_node if field == "gpus" else 0
    return _checked(spec, per_node, pieces, only, (spec.topology,), sizes[1])


def _cut_groups(
    spec: JobSpec, policy: Policy, topology: Topology, replicas: tuple[int, ...]
) -> Cut | Reason:
    gangs: list[tuple[int, int, list[int]]] = []
    warnings: list[Reason] = []
    for number, group in enumerate(spec.groups):
        sizes = _sizes(group.nodes, _rule(spec, policy, topology, group))
        if isinstance(sizes, Reason):
            return sizes
        count = replicas[number] if replicas else group.replicas
        gangs += [(number, replica, sizes[0]) for replica in range(count)]
        warnings += sizes[1]
    needs = tuple(group.topology or spec.topology for group in spec.groups)
    pieces = _pieces(gangs)
    return _checked(spec, topology.gpus_per_node, pieces, 0, needs, tuple(warnings))


def _rule(spec: JobSpec, policy: Policy, topology: Topology, group: Group | None) -> _Rule:
    asked = spec.slice_nodes if group is None else group.slice_nodes or spec.slice_nodes
    return _Rule(
        field="nodes" if group is None else f"groups.{group.name}.nodes",
        size=asked or operators_slice(policy, topology, spec.queue),
        by_user=asked is not None,
        need=spec.topology if group is None else group.topology or spec.topology,
        multiple=spec.slice_multiple,
        uneven=spec.uneven,
        largest=topology.largest_rack,
        spares=policy.spares_large,
    )


def _sizes(nodes: int, rule: _Rule) -> tuple[list[int], tuple[Reason, ...]] | Reason:
    """Sizes of the slices in order, largest first."""
    if rule.by_user and rule.size > rule.largest:
        why = f"is more than the {rule.largest} nodes of the largest rack"
        return wrong("slice_nodes", rule.size, why, f"{rule.largest} or fewer")
    step = rule.multiple
    if nodes % step:
        ask = _around(nodes, step)
        return wrong(rule.field, nodes, f"is no multiple of slice_multiple {step}", ask)
    if nodes <= rule.size:
        return [nodes], ()
    if nodes <= rule.largest and rule.need is TopologyNeed.REQUIRED and not rule.by_user:
        return [nodes], _wide(nodes, rule)
    if rule.size < step or (rule.by_user and rule.size % step):
        why = f"does not divide into steps of slice_multiple {step}"
        return wrong("slice_nodes", rule.size, why, _around(rule.size, step))
    return _several(nodes, rule.size - rule.size % step, rule)


def _several(nodes: int, size: int, rule: _Rule) -> tuple[list[int], tuple[Reason, ...]] | Reason:
    full, rest = divmod(nodes, size)
    if not rest:
        return [size] * full, ()
    match rule.uneven:
        case Uneven.REFUSE:
            why = f"is no multiple of the slice of {size}"
            return wrong(rule.field, nodes, why, _around(nodes, size))
        case Uneven.BALANCED:
            steps, count = nodes // rule.multiple, full + 1
            each, more = divmod(steps, count)
            sizes = [(each + (turn < more)) * rule.multiple for turn in range(count)]
            return sizes, ()
        case Uneven.LAST:
            numbers: Numbers = {
                "nodes": nodes,
                "slice_nodes": size,
                "last": rest,
                "ask": _around(nodes, size),
            }
            return [size] * full + [rest], (Reason(code="slice.uneven", numbers=numbers),)


def _wide(nodes: int, rule: _Rule) -> tuple[Reason, ...]:
    """A slice that leaves fewer spares in the rack than it should have beside it."""
    spares = rule.largest - nodes
    if spares >= rule.spares:
        return ()
    numbers: Numbers = {
        "nodes": nodes,
        "rack": rule.largest,
        "spares": spares,
        "wanted": rule.spares,
        "slice_nodes": rule.size,
    }
    return (Reason(code="slice.wide", numbers=numbers),)


def _around(value: int, step: int) -> str:
    down = value - value % step
    return f"{down} or {down + step}" if down else str(step)


def _pieces(gangs: list[tuple[int, int, list[int]]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    rank = 0
    for group, replica, sizes in gangs:
        for size in sizes:
            made = Piece(
                index=len(pieces), group=group, replica=replica, first_rank=rank, nodes=size
            )
            pieces.append(made)
            rank += size
    return tuple(pieces)


def _checked(
    spec: JobSpec,
    per_node: int,
    pieces: tuple[Piece, ...],
    node_gpus: int,
    needs: tuple[TopologyNeed, ...],
    warnings: tuple[Reason, ...],
) -> Cut | Reason:
    if len(pieces) > MAX_SLICES:
        why = f"slices are more than the {MAX_SLICES} of one job"
        return wrong("slice_nodes", len(pieces), why, "larger slices or several jobs")
    inside = spec.parallel.tp * spec.parallel.ep
    for piece in pieces if inside > 1 else ():
        gpus = piece.gpus or piece.nodes * per_node
        if gpus % inside:
            why = f"is tp x ep and does not divide a slice's {gpus} GPUs"
            return wrong("parallel", inside, why, _divisors(gpus, inside))
    return Cut(pieces=pieces, node_gpus=node_gpus, needs=needs, warnings=warnings)


def _divisors(gpus: int, near: int) -> str:
    """The divisors of `gpus` next to `near`, below and above it."""
    every = [one for one in range(1, gpus + 1) if gpus % one == 0]
    below = [one for one in every if one < near][-1:]
    above = [one for one in every if one > near][:1]
    return " or ".join(str(one) for one in below + above) or "whole slices"
