"""Racks and nodes: the picture of each, and all about one node."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from rackwright.core.fleet import Fleet
from rackwright.core.index import bits
from rackwright.core.occupancy import node_use, spares
from rackwright.core.policy.ask import spare_racks
from rackwright.core.policy.probation import history, recent_faults
from rackwright.core.policy.spares import drain_waits
from rackwright.core.racks import Node, NodeFault, Rack, Tenancy
from rackwright.core.reasons import sentence
from rackwright.gateway import asked, views
from rackwright.gateway.asked import not_found
from rackwright.gateway.chronicle import node_key
from rackwright.gateway.context import Context, why
from rackwright.gateway.machine import Seen
from rackwright.gateway.page import fitting, newest
from rackwright.gateway.tallies import spares_view
from rackwright.wire.ids import WorkerId, parse_worker, worker_id
from rackwright.wire.reasons import Reason

JOBS_NAMED = 16
STORY_BYTES = 100_000


def racks(context: Context, question: asked.Racks) -> views.RacksAnswer:
    """Racks in the order of their definition."""
    fleet = context.fleet
    for field in (question.rack, question.after):
        if field is not None and field not in fleet.rack_numbers:
            raise not_found("rack", field)
    numbers = sorted(fleet.racks)
    if question.rack is not None:
        numbers = [fleet.rack_numbers[question.rack]]
    first = -1 if question.after is None else fleet.rack_numbers[question.after]
    whole = spare_racks(fleet)
    rest = (
        rack_view(fleet, fleet.racks[one], context.now, whole) for one in numbers if one > first
    )
    page, more = fitting(rest, question.limit)
    return views.RacksAnswer(
        **context.made(), racks=page, total=len(numbers), next=page[-1].rack if more else None
    )


def rack_view(fleet: Fleet, rack: Rack, now: float, whole: int) -> views.RackView:
    """One rack and its nodes; `whole` is the set of the cell's spare racks."""
    held, kept = rack.held_until > now, spares(rack, whole)
    return views.RackView(
        rack=rack.spec.rack,
        path=rack.spec.path,
        fitness=rack.fitness,
        isolated=rack.isolated,
        held_by=rack.held_by if held else None,
        held_until=rack.held_until if held else None,
        spares=spares_view(rack, now),
        nodes=tuple(cell(rack, place, now, kept) for place in range(len(rack.nodes))),
        stays=tuple(islice(_stays(fleet, rack.tenancies, now), JOBS_NAMED)),
    )


def _stays(fleet: Fleet, tenancies: Iterable[Tenancy], now: float) -> Iterator[views.StayView]:
    """Jobs with a replica on drained nodes among these whose turn to leave has not come."""
    told: set[str] = set()
    for tenancy in tenancies:
        job = fleet.jobs[tenancy.job]
        if job.id in told or not job.wounds:
            continue
        waits = drain_waits(fleet, job, tenancy.slice, now)
        if waits is not None:
            told.add(job.id)
            yield views.StayView(job=job.id, waits=why(waits))


def cell(rack: Rack, place: int, now: float, kept: frozenset[int]) -> views.NodeCell:
    """One node of a rack; `kept` are the places of its spares."""
    node = rack.nodes[place]
    jobs = dict.fromkeys(str(tenant.job) for tenant in rack.tenants_at(place))
    return views.NodeCell(
        node=node.name,
        state=node_use(rack, place, now, kept),
        jobs=tuple(jobs)[:JOBS_NAMED],
        gpus=node.gpus,
        taken=rack.taken_gpus(place).bit_count(),
        fitness=node.fitness,
    )


def node(context: Context, question: asked.Node) -> views.NodeAnswer:
    """All about one node."""
    fleet = context.fleet
    place = fleet.places.get(question.node)
    if place is None:
        raise not_found("node", question.node)
    rack = fleet.racks[place.rack]
    found = rack.nodes[place.node]
    seen = context.state.seen.get(found.name)
    hardware = found.hardware
    story = context.past.story(node_key(question.node))
    lines = newest(story.lines, question.story, STORY_BYTES)
    made = views.NodeAnswer(
        **context.made(),
        node=cell(rack, place.node, context.now, spares(rack, spare_racks(fleet))),
        rack=rack.spec.rack,
        place=place.node,
        session=found.session,
        boot=found.boot,
        cordoned=found.cordoned,
        cordoned_for=found.cordoned_for,
        draining=found.draining,
        kept_for=found.kept_for,
        kept_until=found.kept_until if found.kept_for is not None else None,
        suspected_at=found.suspected_at if found.suspected else None,
        failed=found.failed,
        probation_until=found.probation_until if found.probation_until > context.now else None,
        repair=found.repair,
        repair_at=found.repair_at or None,
        repair_eta=found.repair_eta,
        why=why(Reason(code=found.why)) if found.why else None,
        check_asked=found.check_why if found.check else "",
        checked_at=found.checked_at or None,
        check_passed=found.check_passed if found.checked_at else None,
        faults=tuple(map(_fault, found.faults)),
        faults_elsewhere=tuple(map(_fault, _elsewhere(fleet, found))),
        boards_failed=len({one.serial for one in recent_faults(found, context.now) if one.serial}),
        tenants=tuple(_tenants(context, rack, place.node, seen)),
        stays=tuple(_stays(fleet, rack.tenants_at(place.node), context.now)),
        status_at=None if seen is None else seen.at,
        obeyed=None if seen is None else seen.status.obeyed,
        story=lines,
        left_out=story.dropped + len(story.lines) - len(lines),
        complete=context.past.complete,
    )
    return made if hardware is None else _with_hardware(made, found)


def _with_hardware(made: views.NodeAnswer, node: Node) -> views.NodeAnswer:
    hardware = node.hardware
    assert hardware is not None
    return replace(
        made,
        serial=hardware.serial,
        slot=hardware.slot,
        gpu_model=hardware.gpu_model,
        driver=hardware.driver,
        address=hardware.address,
        cores=hardware.cores,
        memory_gb=hardware.memory_gb,
        labels=hardware.labels,
        checks=hardware.checks,
    )


def _elsewhere(fleet: Fleet, node: Node) -> Iterator[NodeFault]:
    """What its hardware did in other slots."""
    here = {(fault.at, fault.serial) for fault in node.faults}
    return (one for one in history(fleet, node).faults if (one.at, one.serial) not in here)


def _fault(fault: NodeFault) -> views.FaultView:
    text = sentence(Reason(code=fault.code))
    return views.FaultView(at=fault.at, code=fault.code, text=text, serial=fault.serial)


def _tenants(
    context: Context, rack: Rack, place: int, seen: Seen | None
) -> Iterator[views.TenantView]:
    """Workers that belong here, then those that are to end here."""
    for tenancy in rack.tenants_at(place):
        part = context.fleet.jobs[tenancy.job].part(tenancy.slice)
        at = part.nodes.index(place)
        rank = part.first_rank + at
        worker = worker_id(tenancy.job, rank, part.incarnations[at])
        yield _tenant(worker, seen, tenancy.gpus, lent=tenancy.lent)
    for leaving in rack.leaving:
        if leaving.node == place:
            yield _tenant(leaving.worker, seen, leaving.gpus, leaving=True)


def _tenant(
    worker: WorkerId, seen: Seen | None, gpus: int, *, lent: bool = False, leaving: bool = False
) -> views.TenantView:
    job, rank, _ = parse_worker(worker)
    said = None if seen is None else seen.worker(worker)
    return views.TenantView(
        worker=worker,
        job=job,
        rank=rank,
        gpus=tuple(bits(gpus)),
        lent=lent,
        leaving=leaving,
        state=None if said is None else said.state,
        pid=None if said is None else said.pid,
    )
