"""What one job asks of the racks of this fleet: which of them, and which nodes in them."""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet, Maintenance
from rackwright.core.jobs import Job, JobState, Slice, WoundKind
from rackwright.core.policy.cut import Cut, operators_slice, whole_slice
from rackwright.core.policy.limits import limit
from rackwright.core.policy.quota import gpus_of, may_lend
from rackwright.core.policy.resources import too_small
from rackwright.core.racks import Node
from rackwright.core.topology import Topology
from rackwright.wire.jobs import JobClass, JobSpec
from rackwright.wire.policy import Policy
from rackwright.wire.quick import quick

Same = tuple[str, ...]
"""Values of the attributes that all nodes of a job must have in common."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A job's constraints, resolved once for a decision.

    `racks` is the set that may be used at all; `barred` the nodes of some of them that may not.
    `across`: it has several slices, so its nodes must be fit for traffic between racks. `full` is
    the operator's slice for its queue: smaller slices leave the spares of others alone. `whole` is
    the cell's slice: a rack with so many free nodes is a whole rack. `previous` are nodes by rack
    that the job had before and likes best of what is equally good.
    """

    spec: JobSpec
    policy: Policy
    topology: Topology
    racks: int
    barred: dict[int, int]
    across: bool
    pinned: bool
    lendable: bool
    full: int
    whole: int
    node_gpus: int
    previous: dict[int, int] = field(default_factory=dict)
    kinds: dict[str, Same | None] = field(default_factory=dict)

    def liked(self, racks: int) -> int:
        """Those of equally good racks that it had before, or all of them."""
        mine = sum(1 << number for number in self.previous) if self.previous else 0
        return racks & mine or racks

    def same_of(self, node: Node) -> Same | None:
        """What this node has in common with others, None if it is not what the job asks for."""
        known = self.kinds.get(node.kind, ())
        if known != () or node.kind in self.kinds:
            return known
        found = self._same(node)
        self.kinds[node.kind] = found
        return found

    def _same(self, node: Node) -> Same | None:
        found = node.hardware
        if found is None:
            return None
        known = {**found.labels, "gpu_model": found.gpu_model, "driver": found.driver}
        if any(known.get(key) != value for key, value in self.spec.labels.items()):
            return None
        return tuple(known.get(name, "") for name in self.spec.same)


def ask_of(fleet: Fleet, job: Job, made: Cut, keep_off: int) -> Ask:
    """The constraints of a job on this fleet; `keep_off` are racks to leave alone."""
    spec, policy, topology = job.spec, fleet.policy, fleet.topology
    racks = topology.all_racks & ~keep_off if keep_off else topology.all_racks
    if made.node_gpus and len(topology.models) > 1:
        racks &= sum(mask for (_, gpus), mask in topology.models.items() if gpus == made.node_gpus)
    gpus = made.pieces[0].gpus if made.pieces else 0
    barred = too_small(spec, topology, gpus)
    for number, nodes in barred.items():
        if nodes.bit_count() == len(fleet.racks[number].nodes):
            racks &= ~(1 << number)
    for name in spec.exclude_nodes:
        place = fleet.places.get(name)
        if place is not None:
            barred[place.rack] = barred.get(place.rack, 0) | 1 << place.node
    if fleet.maintenance:
        racks &= ~_maintained(fleet, spec, barred)
    return Ask(
        spec=spec,
        policy=policy,
        topology=topology,
        racks=racks,
        barred=barred,
        across=len(made.pieces) > 1,
        pinned=job.pinned,
        lendable=_one_slice(job, made)
        and lendable(policy, job)
        and may_lend(fleet, job, gpus_of(fleet, made)),
        full=operators_slice(policy, topology, spec.queue),
        whole=whole_slice(policy, topology),
        node_gpus=made.node_gpus,
        previous=_previous(job) if job.previous else {},
    )


def _previous(job: Job) -> dict[int, int]:
    found: dict[int, int] = {}
    for rack, mask in job.previous:
        found[rack] = found.get(rack, 0) | mask
    return found


def _one_slice(job: Job, made: Cut) -> bool:
    """Who is on lent spares is killed whole: that is for small jobs, not for a part of a large."""
    return len(made.pieces) == 1 and len(job.slices) <= 1


def lendable(policy: Policy, job: Job) -> bool:
    """May this job sit on spares, to be killed when one is needed?"""
    spec = job.spec
    plain = spec.preemptible and spec.restartable and spec.job_class is JobClass.BATCH
    return policy.lend_spares and plain and not job.pinned


def in_the_way(policy: Policy, spec: JobSpec, window: Maintenance, now: float) -> bool:
    """Would this maintenance end the job early? Restartable work may run until its notice."""
    if window.end <= now:
        return False
    if spec.restartable:
        return now >= window.begin - window.notice_s
    seconds = limit(policy, spec)
    return seconds is None or now + seconds > window.begin


def _maintained(fleet: Fleet, spec: JobSpec, barred: dict[int, int]) -> int:
    """Racks in maintenance before the job would end; single nodes go to `barred`."""
    racks = 0
    for window in fleet.maintenance:
        if not in_the_way(fleet.policy, spec, window, fleet.time):
            continue
        for rack in window.racks:
            racks |= 1 << fleet.rack_numbers[rack]
        for node in window.nodes:
            place = fleet.places[node]
            barred[place.rack] = barred.get(place.rack, 0) | 1 << place.node
    return racks


def kept_off(fleet: Fleet, priority: int) -> int:
    """Racks that a queued job of this priority leaves to recovery."""
    wounded = kept_for_wounded(fleet, priority) if fleet.wounded else 0
    return wounded | spare_racks(fleet)


def spare_racks(fleet: Fleet) -> int:
    """Whole racks kept as spares for the cell: of those without a tenant, but for such as they are
    lent to, that could take a full slice the ones with most free nodes, of equal ones the last
    defined. Costs by the shapes of racks that there are, not by racks."""
    if not fleet.policy.spare_racks:
        return 0
    whole = whole_slice(fleet.policy, fleet.topology)
    by_room: dict[int, int] = {}
    for shape, racks in fleet.index.by_shape.items():
        room = shape.usable if shape.empty else shape.lent_room
        if room and room >= whole:
            by_room[room] = by_room.get(room, 0) | racks
    return _last_of_the_roomiest(by_room, fleet.policy.spare_racks)


def _last_of_the_roomiest(by_room: dict[int, int], count: int) -> int:
    found = 0
    while by_room and count:
        room = max(by_room)
        last = 1 << by_room[room].bit_length() - 1
        found |= last
        count -= 1
        by_room[room] &= ~last
        if not by_room[room]:
            del by_room[room]
    return found


def kept_for_wounded(fleet: Fleet, priority: int) -> int:
    """Racks that a wounded slice could use: a queued job of that or lower priority waits for it.

    Recovery is a matter of milliseconds. A wound that is older than `swap_start_s` waits for
    something; then one rack is kept for each slice, the one with most room, and not all of them.
    A slice of one node keeps only its own rack: any rack could take it.
    """
    kept = 0
    old: list[tuple[int, bool]] = []
    for name in sorted(fleet.wounded):
        job = fleet.jobs[name]
        if job.spec.priority < priority or not job.spec.restartable:
            continue
        if job.state is JobState.FINISHING:
            continue
        for part, since in _wounded_slices(job):
            kept |= 1 << part.rack
            across = len(job.slices) > 1
            if part.size > 1 and fleet.time - since <= fleet.policy.swap_start_s:
                kept |= _with_room(fleet, part.size, across)
            elif part.size > 1:
                old.append((part.size, across))
    for size, across in old:
        kept |= _roomiest(fleet, size, across, kept)
    return kept


def _wounded_slices(job: Job) -> list[tuple[Slice, float]]:
    """Slices that need other nodes, and since when."""
    found: dict[int, tuple[Slice, float]] = {}
    for wound in job.wounds:
        if wound.kind is not WoundKind.PROCESS:
            part = job.slice_of(wound.rank)
            since = min(wound.at, found[part.index][1]) if part.index in found else wound.at
            found[part.index] = (part, since)
    return list(found.values())


def _with_room(fleet: Fleet, size: int, across: bool) -> int:
    racks = 0
    for shape, having in fleet.index.by_shape.items():
        if (shape.full if across else shape.usable) >= size:
            racks |= having
    return racks


def _roomiest(fleet: Fleet, size: int, across: bool, besides: int) -> int:
    """The rack with most room for such a slice that is not kept yet, as a set; 0: there is none."""
    best = (size - 1, 0)
    for shape, having in fleet.index.by_shape.items():
        free, racks = shape.full if across else shape.usable, having & ~besides
        if racks:
            best = max(best, (free, -((racks & -racks).bit_length())))
    return 1 << (-best[1] - 1) if best[0] >= size else 0
