"""Why a job waits: one of seven causes, tested in this order, with the numbers behind it.

`never` it does not fit the cell as built; `quota` its queue has its share; `health` it would fit if
nodes were repaired; `capacity` too few nodes are free beyond the spares and whole spare racks;
`held` operators (or a wounded slice) keep what it needs; `topology.pinned` enough is free, in the
wrong racks, and work that nobody may move is in the way; `topology.movable` the same, and work
could be moved. Only the last wakes the defragmenter.
"""

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.jobs import Job
from rackwright.core.policy.ask import Ask, ask_of, kept_for_wounded, spare_racks
from rackwright.core.policy.cut import Cut, cut, least_replicas
from rackwright.core.policy.draft import Draft
from rackwright.core.policy.nominal import shortage
from rackwright.core.policy.outlook import (
    InTheWay,
    built,
    fitting_slices,
    healthy,
    held_racks,
    movable,
    pins,
    released,
)
from rackwright.core.policy.pinning import UNTOLD, Checkpoints
from rackwright.core.policy.placement import place_on
from rackwright.core.policy.promised import kept_for_promised, owed_and_waiting
from rackwright.core.policy.quota import gpus_of, over_quota
from rackwright.core.policy.refusing import Numbers
from rackwright.core.policy.resources import asked
from rackwright.core.policy.small import broken_racks
from rackwright.core.policy.starvation import kept_for_starved, kept_from
from rackwright.wire.reasons import Cause, Reason

NAMED = 3  # nodes or jobs that a reason names


def why_blocked(fleet: Fleet, job: Job, now: float, checkpoints: Checkpoints = UNTOLD) -> Reason:
    """Why this queued job has no place. Looks at every rack where a short answer does not do.

    `checkpoints`: when jobs saved last; work that is overdue with that is not moved.
    """
    made = _least(fleet, job)
    if isinstance(made, Reason):
        return Reason(code=Cause.NEVER, numbers={**made.numbers, "problem": made.code})
    free = released(fleet)
    ask = ask_of(free, job, made, 0)
    numbers = _asked(fleet, ask, made)
    never = shortage(fleet.topology, job.spec, made) or _no_such_nodes(free, ask, made)
    if never is not None:
        return Reason(code=Cause.NEVER, numbers=numbers | never.numbers)
    quota = over_quota(fleet, job, made)
    if quota is not None:
        return Reason(code=Cause.QUOTA, numbers=quota)
    fits = fitting_slices(free, ask, made, healthy(free, ask))
    if fits < len(made.pieces):
        more = {"fits_when_empty": fits} | _repairs(free, ask, now)
        return Reason(code=Cause.HEALTH, numbers=numbers | more)
    if job.spec.gpus == 0:
        return Reason(code=Cause.CAPACITY, numbers=numbers | _shares(free, ask, made))
    spare = spare_racks(fleet)
    beyond = ask_of(free, job, made, spare) if spare else ask
    room = _room(free, beyond, made)
    if room is not None:
        more = room | ({"spare_racks": spare.bit_count()} if spare else {})
        return Reason(code=Cause.CAPACITY, numbers=numbers | more)
    if place_on(free, job, spare) is not None:
        return Reason(code=Cause.HELD, numbers=numbers | _holds(fleet, job, now))
    found = _topology(free, job, beyond, made, numbers, checkpoints)
    if found.code == Cause.TOPOLOGY_PINNED and spare and place_on(free, job) is not None:
        more = {"held": 0, "spare_racks": spare.bit_count()}
        return Reason(code=Cause.HELD, numbers=numbers | more)
    return found


def _least(fleet: Fleet, job: Job) -> Cut | Reason:
    least = least_replicas(job.spec)
    return cut(job.spec, fleet.policy, fleet.topology, least)


def _asked(fleet: Fleet, ask: Ask, made: Cut) -> Numbers:
    sizes = [piece.nodes for piece in made.pieces]
    largest = max(sizes)
    fit = sum(
        (racks & ask.racks).bit_count()
        for shape, racks in fleet.index.by_shape.items()
        if (shape.full if ask.across else shape.usable) >= largest
    )
    numbers: Numbers = {
        "nodes": sum(sizes),
        "slices": len(sizes),
        "slice_nodes": largest,
        "racks_that_fit": fit,
    }
    gpus = made.pieces[0].gpus
    if gpus and ask.spec.gpus:
        numbers["gpus"] = gpus
    return numbers | asked(ask.spec, ask.topology, gpus)


def _no_such_nodes(free: Fleet, ask: Ask, made: Cut) -> Reason | None:
    """Labels, exclusions, cores and memory may leave too few nodes, however healthy."""
    spec = ask.spec
    if not (spec.labels or ask.barred):
        return None
    fits = fitting_slices(free, ask, made, built(ask))
    if fits == len(made.pieces) or free.installed_nodes != _joined(free):
        return None
    labels = ", ".join(f"{key}={value}" for key, value in sorted(spec.labels.items()))
    return Reason(
        code=Cause.NEVER,
        numbers={"fits": fits, "labels": labels, "excluded": len(spec.exclude_nodes)},
    )


def _joined(free: Fleet) -> int:
    return sum(
        1 for rack in free.racks.values() for node in rack.nodes if node.hardware is not None
    )


def _repairs(free: Fleet, ask: Ask, now: float) -> Numbers:
    """Nodes that somebody must see to, those due first; the racks are those the job may use."""
    fit = healthy(free, ask)
    out = []
    for number in bits(ask.racks):
        rack = free.racks[number]
        for place in bits(((1 << len(rack.nodes)) - 1) & ~fit(rack)):
            node = rack.nodes[place]
            action = node.repair.value if node.repair is not None else node.why or "away"
            due = node.repair_eta if node.repair_eta is not None else float("inf")
            out.append((due, node.name, action))
    out.sort()
    numbers: Numbers = {
        "nodes_out": len(out),
        "repairs": ", ".join(f"{name} {action}" for _, name, action in out[:NAMED]),
    }
    if out and out[0][0] != float("inf"):
        numbers["next_due_s"] = max(0.0, out[0][0] - now)
    return numbers


def _room(free: Fleet, ask: Ask, made: Cut) -> Numbers | None:
    """Numbers of a cell in which too little is free; None when it is enough.

    Lent spares count as free, as their tenants leave when they are needed.
    """
    nodes = keep = room = gpus = 0
    for number in bits(ask.racks):
        rack = free.racks[number]
        takes = rack.takes & ~ask.barred.get(number, 0)
        here = ((rack.free | rack.lent) & takes).bit_count()
        nodes += here
        keep += rack.shape.target
        room += max(0, here - rack.shape.target)
        for place, taken in rack.partial if made.pieces[0].gpus else ():
            if takes >> place & 1 and not rack.lent >> place & 1:
                gpus += rack.nodes[place].gpus - taken.bit_count()
    part = made.pieces[0].gpus
    enough = (
        room * free.topology.gpus_per_node + gpus >= part
        if part
        else room >= sum(piece.nodes for piece in made.pieces)
    )
    return None if enough else {"free": nodes, "keep": keep, "room": room, "free_gpus": gpus}


def _shares(free: Fleet, ask: Ask, made: Cut) -> Numbers:
    """Work without GPUs: it waits until a node of a broken rack, or one lent already, has room."""
    broken = broken_racks(Draft(fleet=free, ask=ask)).bit_count()
    numbers: Numbers = {"share": made.pieces[0].gpus, "broken_racks": broken}
    return numbers if free.policy.lend_spares else numbers | {"lend_spares": "off"}


def _holds(fleet: Fleet, job: Job, now: float) -> Numbers:
    held = held_racks(fleet)
    numbers: Numbers = {"held": len(held)}
    if held:
        first = min(held, key=lambda rack: (rack.held_until, rack.number))
        numbers |= {
            "racks": ", ".join(rack.spec.rack for rack in held[:NAMED]),
            "by": first.held_by,
            "for_s": max(0.0, first.held_until - now),
        }
    if fleet.maintenance:
        numbers["maintenance"] = len(fleet.maintenance)
    if fleet.kept:
        numbers["kept_for_failed"] = ", ".join(sorted(fleet.kept)[:NAMED])
    if fleet.wounded:
        kept = kept_for_wounded(fleet, job.spec.priority)
        numbers["kept_for_wounded"] = kept.bit_count()
    return numbers | _left_to_others(fleet, job, now)


def _left_to_others(fleet: Fleet, job: Job, now: float) -> Numbers:
    """Racks that are kept for jobs that starve, or wait for what their queue is promised."""
    promised = kept_for_promised(fleet, owed_and_waiting(fleet))
    found: Numbers = {}
    for kept, what in ((promised, "owed"), (kept_for_starved(fleet, now), "starved")):
        whose = [one for one in kept if kept_from(fleet, [one], job, now)]
        if whose:
            found[f"kept_for_{what}"] = kept_from(fleet, whose, job, now).bit_count()
            found[what] = ", ".join(one.job for one in whose[:NAMED])
    return found


def _topology(
    free: Fleet, job: Job, ask: Ask, made: Cut, numbers: Numbers, checkpoints: Checkpoints
) -> Reason:
    case = InTheWay(
        fleet=free,
        blocked=job,
        slices=len(made.pieces),
        gpus=gpus_of(free, made),
        checkpoints=checkpoints,
    )
    could = movable(case, ask, made)
    fits = fitting_slices(free, ask, made, could)
    numbers |= {"fits_when_moved": fits, "free": free.index.usable, "room": free.index.room}
    if fits == len(made.pieces):
        return Reason(code=Cause.TOPOLOGY_MOVABLE, numbers=numbers)
    fit = healthy(free, ask)
    racks = 0
    names: dict[str, None] = {}
    for number in bits(ask.racks):
        rack = free.racks[number]
        if could(rack) == fit(rack):
            continue
        racks += 1
        for tenancy in rack.tenancies if len(names) < NAMED else ():
            if pins(case, tenancy.job):
                names.setdefault(tenancy.job)
    pinned: Numbers = {"pinned_racks": racks, "pins": ", ".join(list(names)[:NAMED])}
    return Reason(code=Cause.TOPOLOGY_PINNED, numbers=numbers | pinned)
