"""Every constraint of a placement, recomputed node by node: it shares nothing with the search.

Slurm once displayed segments of 12 that had landed as 17+17+2; so what was chosen is checked
against what was asked, from the list of nodes.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, need_of
from rackwright.core.policy.ask import in_the_way, lendable
from rackwright.core.policy.cut import Cut, Piece, cut, operators_slice, whole_slice
from rackwright.core.racks import Node, Rack, spare_target
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.jobs import JobSpec, TopologyNeed
from rackwright.wire.nodes import FITNESS_ORDER, Fitness, RackFitness


def check_placement(fleet: Fleet, job: Job, slices: Sequence[SlicePlacement]) -> list[str]:
    """What is wrong with giving a queued job these nodes; empty when nothing is."""
    broken = [*_shape(fleet, job, slices), *_disjoint(slices), *_spread(job.spec, slices)]
    for part in slices:
        rack = fleet.rack(part.rack)
        if part.nodes >> len(rack.nodes):
            broken.append(f"{part.rack}: has no such nodes")
            continue
        broken += _rack(fleet, rack, job.spec)
        for node in _nodes(rack, part):
            broken += _node(fleet, job, node, part, len(slices))
        broken += _spares(fleet, job, rack, part, alone=len(slices) == 1)
    broken += _same(fleet, job.spec, slices)
    return broken


def _nodes(rack: Rack, part: SlicePlacement) -> list[Node]:
    return [node for place, node in enumerate(rack.nodes) if part.nodes >> place & 1]


def _shape(fleet: Fleet, job: Job, slices: Sequence[SlicePlacement]) -> Iterator[str]:
    """Slices in order, ranks without a gap, sizes as the job is cut."""
    rank = 0
    for index, part in enumerate(slices):
        if (part.index, part.first_rank) != (index, rank):
            yield f"slice {part.index} at rank {part.first_rank}: should be {index} at {rank}"
        rank += part.nodes.bit_count()
    made = cut(job.spec, fleet.policy, fleet.topology)
    if not isinstance(made, Cut):
        yield f"cannot be cut: {made.code}"
        return
    found = [(part.group, part.replica, part.nodes.bit_count()) for part in slices]
    asked = [(piece.group, piece.replica, piece.nodes) for piece in made.pieces]
    if found != asked:
        yield from _other_sizes(job.spec, made, found)
    if made.pieces[0].gpus != slices[0].gpus.bit_count() or any(p.gpus for p in slices[1:]):
        yield f"{slices[0].gpus.bit_count()} GPUs of a node, {made.pieces[0].gpus} are asked"


def _other_sizes(spec: JobSpec, made: Cut, found: list[tuple[int, int, int]]) -> Iterator[str]:
    """Allowed are other slices of the same gangs where topology is no must, and fewer replicas."""
    gangs = _gangs(found)
    asked = _gangs([(piece.group, piece.replica, piece.nodes) for piece in made.pieces])
    for (group, replica), sizes in gangs.items():
        wanted = asked.get((group, replica))
        if wanted is None or sum(sizes) != sum(wanted):
            yield f"replica {replica} of group {group}: {sizes}, {wanted} are asked"
        elif sizes != wanted and made.needs[group] is TopologyNeed.REQUIRED:
            yield f"replica {replica} of group {group}: cut into {sizes}, not {wanted}"
        elif any(size % spec.slice_multiple for size in sizes):
            yield f"slices {sizes} are no multiples of {spec.slice_multiple}"
    for number, missing in _missing(spec, made.pieces, gangs):
        yield f"group {number}: {missing} replicas are missing"


def _gangs(parts: list[tuple[int, int, int]]) -> dict[tuple[int, int], list[int]]:
    return {
        gang: [size for _, _, size in sizes]
        for gang, sizes in groupby(sorted(parts, key=lambda p: p[:2]), key=lambda p: p[:2])
    }


def _missing(
    spec: JobSpec, pieces: tuple[Piece, ...], gangs: dict[tuple[int, int], list[int]]
) -> Iterator[tuple[int, int]]:
    for number in sorted({piece.group for piece in pieces}):
        least = 1
        if spec.groups:
            group = spec.groups[number]
            least = group.replicas if group.min_replicas is None else group.min_replicas
        there = sum(1 for group_number, _ in gangs if group_number == number)
        if there < least:
            yield number, least - there


def _disjoint(slices: Sequence[SlicePlacement]) -> Iterator[str]:
    used: dict[str, int] = {}
    for part in slices:
        if used.get(part.rack, 0) & part.nodes:
            yield f"{part.rack}: a node is given twice"
        used[part.rack] = used.get(part.rack, 0) | part.nodes


def _spread(spec: JobSpec, slices: Sequence[SlicePlacement]) -> Iterator[str]:
    racks = [part.rack for part in slices]
    for rack in sorted(set(racks)):
        if spec.max_per_rack is not None and racks.count(rack) > spec.max_per_rack:
            yield f"{rack}: {racks.count(rack)} slices, at most {spec.max_per_rack}"


def _rack(fleet: Fleet, rack: Rack, spec: JobSpec) -> Iterator[str]:
    if rack.isolated or rack.fitness is not RackFitness.GOOD:
        yield f"{rack.spec.rack}: is {'isolated' if rack.isolated else rack.fitness}"
    if rack.held_until > fleet.time:
        yield f"{rack.spec.rack}: is held by {rack.held_by}"
    for window in fleet.maintenance:
        if rack.spec.rack in window.racks and in_the_way(fleet.policy, spec, window, fleet.time):
            yield f"{rack.spec.rack}: is in maintenance from {window.begin:g}"


def _node(fleet: Fleet, job: Job, node: Node, part: SlicePlacement, slices: int) -> Iterator[str]:
    spec, need = job.spec, need_of(job.spec, slices)
    if node.session is None or node.suspected or node.cordoned:
        yield f"{node.name}: is not in service"
    if FITNESS_ORDER[node.fitness] < FITNESS_ORDER[need]:
        yield f"{node.name}: is fit for {node.fitness}, {need} is needed"
    single = slices == 1 and part.nodes.bit_count() == 1
    if node.probation_until > fleet.time and not (single and spec.restartable):
        yield f"{node.name}: is on probation"
    if node.name in spec.exclude_nodes:
        yield f"{node.name}: is excluded"
    for window in fleet.maintenance:
        if node.name in window.nodes and in_the_way(fleet.policy, spec, window, fleet.time):
            yield f"{node.name}: is in maintenance from {window.begin:g}"
    for key, value in spec.labels.items():
        if _value(node, key) != value:
            yield f"{node.name}: {key} is {_value(node, key)!r}, {value!r} is asked"
    yield from _beside(node, spec, part)
    yield from _taken(fleet, node, part)


def _beside(node: Node, spec: JobSpec, part: SlicePlacement) -> Iterator[str]:
    """Cores and memory, in proportion to the GPUs of the node."""
    found = node.hardware
    of = part.gpus.bit_count() / node.gpus if part.gpus else 1.0
    cores, memory = (0.0, 0.0) if found is None else (found.cores * of, found.memory_gb * of)
    if spec.cpus is not None and cores < spec.cpus:
        yield f"{node.name}: has {cores:g} cores for it, {spec.cpus:g} are asked"
    if spec.memory_gb is not None and memory < spec.memory_gb:
        yield f"{node.name}: has {memory:g} GB for it, {spec.memory_gb:g} are asked"


def _taken(fleet: Fleet, node: Node, part: SlicePlacement) -> Iterator[str]:
    place = fleet.places[node.name]
    whole = (1 << node.gpus) - 1
    wanted = part.gpus or whole
    if wanted & ~whole:
        yield f"{node.name}: has {node.gpus} GPUs"
    for tenancy in fleet.racks[place.rack].tenancies:
        if tenancy.mask >> place.node & 1:
            if not part.gpus or not tenancy.gpus or wanted & tenancy.gpus:
                yield f"{node.name}: is taken by {tenancy.job}"
            elif tenancy.lent and not part.lent:
                yield f"{node.name}: is lent to {tenancy.job}"


def _spares(
    fleet: Fleet, job: Job, rack: Rack, part: SlicePlacement, *, alone: bool
) -> Iterator[str]:
    """A slice smaller than the operator's leaves the spares of others, unless it is lent."""
    size = part.nodes.bit_count()
    if job.spec.gpus == 0:
        yield from _unspoilt(fleet, rack, part)
    if part.lent:
        full = operators_slice(fleet.policy, fleet.topology, job.spec.queue)
        most = full - 1 if _whole_spare(fleet, rack) else 0
        large = size > max(most, fleet.policy.lent_max_nodes)
        if not alone or not lendable(fleet.policy, job) or large:
            yield f"slice {part.index}: may not be lent spares"
        return
    if size >= operators_slice(fleet.policy, fleet.topology, job.spec.queue):
        return
    protected = {place for t in rack.tenancies if t.protected for place in _places(t.mask)}
    target = spare_target(fleet.policy, len(protected))
    taken = {place for t in rack.tenancies for place in _places(t.mask)}
    mine = set(_places(part.nodes)) - taken
    good = {place for place, node in enumerate(rack.nodes) if _spare(fleet, node)}
    left = len(good - taken - mine)
    if mine & good and left < target:
        yield f"{rack.spec.rack}: {left} spares are left of {target}"


def _whole_spare(fleet: Fleet, rack: Rack) -> bool:
    """May it be one that is kept for the cell: nobody is in it but who is lent it?"""
    lends = fleet.policy.spare_racks > 0 and fleet.policy.lend_spare_racks
    return lends and all(tenancy.lent for tenancy in rack.tenancies)


def _unspoilt(fleet: Fleet, rack: Rack, part: SlicePlacement) -> Iterator[str]:
    """Work without GPUs is lent, and takes no node of a rack that could take a full slice."""
    taken = {place for t in rack.tenancies for place in _places(t.mask)}
    free = {place for place, node in enumerate(rack.nodes) if _spare(fleet, node)} - taken
    if not part.lent:
        yield f"slice {part.index}: work without GPUs is lent work"
    if free & set(_places(part.nodes)) and len(free) >= whole_slice(fleet.policy, fleet.topology):
        yield f"{rack.spec.rack}: could take a full slice"


def _places(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _spare(fleet: Fleet, node: Node) -> bool:
    fit = FITNESS_ORDER[node.fitness] >= FITNESS_ORDER[Fitness.RACK]
    return node.schedulable and fit and node.probation_until <= fleet.time


def _same(fleet: Fleet, spec: JobSpec, slices: Sequence[SlicePlacement]) -> Iterator[str]:
    nodes = [node for part in slices for node in _nodes(fleet.rack(part.rack), part)]
    for name in spec.same:
        values = {_value(node, name) for node in nodes}
        if len(values) > 1:
            yield f"{name} differs: {', '.join(sorted(values))}"


def _value(node: Node, name: str) -> str:
    found = node.hardware
    if found is None:
        return ""
    known = {"gpu_model": found.gpu_model, "driver": found.driver}
    return known.get(name, found.labels.get(name, ""))
