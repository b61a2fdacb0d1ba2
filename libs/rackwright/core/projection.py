"""What nodes are told: the assignments of a rack and the value of a job, straight from the fleet.

A run line is a current worker; a stop line is a leaving one: nothing is ever ordered by absence. A
worker that is known to have ended has no line. A gate is open when each worker it waits for has
ended, by the ledger (it is leaving no more) or by its node's own word (`ended`).
"""

from collections.abc import Set

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job, Slice
from rackwright.core.racks import Node, Rack
from rackwright.wire.ids import JobId, NodeId, WorkerId, parse_worker
from rackwright.wire.values import (
    AssignmentLine,
    CheckOrder,
    JobValue,
    Neighbour,
    NodeAssignment,
    RackAssignments,
    SliceMembers,
    StopLine,
)


def assignments(fleet: Fleet, number: int, ended: Set[WorkerId]) -> RackAssignments:
    """The value of one rack. Raises KeyError for a rack that is none."""
    rack = fleet.racks[number]
    run: dict[int, list[AssignmentLine]] = {}
    for tenancy in rack.tenancies:
        job = fleet.jobs[tenancy.job]
        for place, line in _lines(fleet, job, job.part(tenancy.slice), ended):
            run.setdefault(place, []).append(line)
    stop: dict[int, list[StopLine]] = {}
    for leaving in rack.leaving:
        if leaving.after:  # it serves on, without any order, until its successor runs
            continue
        stop.setdefault(leaving.node, []).append(
            StopLine(worker=leaving.worker, notice_s=leaving.notice_s, grace_s=leaving.grace_s)
        )
    nodes: dict[NodeId, NodeAssignment] = {}
    for place, node in enumerate(rack.nodes):
        if node.session is not None:
            nodes[node.name] = NodeAssignment(
                session=node.session,
                run=tuple(run.get(place, ())),
                stop=tuple(stop.get(place, ())),
                check=_check(fleet, node),
                witnesses=node.witnesses,
                neighbours=_neighbours(fleet, node),
            )
    return RackAssignments(ledger=fleet.ledger, seq=fleet.seq, rack=rack.spec.rack, nodes=nodes)


def _neighbours(fleet: Fleet, node: Node) -> tuple[Neighbour, ...]:
    """Where the witnesses of a node are asked, as they said when they joined last."""
    found = []
    for name in node.witnesses.nodes if node.witnesses is not None else ():
        place = fleet.places.get(name)
        if place is None:
            continue
        rack = fleet.racks[place.rack]
        hardware = rack.nodes[place.node].hardware
        port = hardware.port if hardware is not None else 0
        found.append(Neighbour(node=name, host=_address(rack, place.node), port=port))
    return tuple(found)


def _check(fleet: Fleet, node: Node) -> CheckOrder | None:
    if not node.check:
        return None
    limit = fleet.policy.check_limit_s
    return CheckOrder(asked=node.check, why=node.check_why, limit_s=limit)


def _lines(
    fleet: Fleet, job: Job, part: Slice, ended: Set[WorkerId]
) -> list[tuple[int, AssignmentLine]]:
    over = {wound.rank for wound in job.wounds if wound.ended}
    lines = []
    for rank, place in enumerate(part.nodes, part.first_rank):
        if rank in over:
            continue
        line = AssignmentLine(
            worker=part.worker(job.id, rank),
            job=job.id,
            rank=rank,
            gpus=part.gpus,
            membership=job.membership,
            open=not closed_gates(fleet, part, rank, ended),
        )
        lines.append((place, line))
    return lines


def closed_gates(
    fleet: Fleet, part: Slice, rank: int, ended: Set[WorkerId]
) -> tuple[WorkerId, ...]:
    """Workers that a rank still waits for."""
    return tuple(
        worker for worker in part.gates_of(rank) if worker in fleet.leaving and worker not in ended
    )


def waits(fleet: Fleet, number: int, ended: Set[WorkerId]) -> set[WorkerId]:
    """All workers that some rank in this rack still waits for."""
    rack = fleet.racks[number]
    found: set[WorkerId] = set()
    for tenancy in rack.tenancies:
        part = fleet.jobs[tenancy.job].part(tenancy.slice)
        for rank, _ in part.gates:
            found.update(closed_gates(fleet, part, rank, ended))
    return found


def job_value(fleet: Fleet, name: JobId) -> JobValue | None:
    """What the nodes of a placed job must know; None when it has no nodes."""
    job = fleet.jobs.get(name)
    if job is None or not job.slices:
        return None
    return JobValue(
        ledger=fleet.ledger,
        seq=fleet.seq,
        job=name,
        owner=job.owner,
        spec=job.spec,
        membership=job.membership,
        master=_address(fleet.racks[job.slices[0].rack], job.slices[0].nodes[0]),
        slices=tuple(_members(fleet, job, part) for part in job.slices),
        gone=_gone(fleet, job),
    )


def _address(rack: Rack, place: int) -> str:
    node = rack.nodes[place]
    hardware = node.hardware
    return hardware.address if hardware is not None and hardware.address else str(node.name)


def _members(fleet: Fleet, job: Job, part: Slice) -> SliceMembers:
    rack = fleet.racks[part.rack]
    group = job.spec.groups[part.group].name if job.spec.groups else job.spec.name
    return SliceMembers(
        index=part.index,
        group=group,
        replica=part.replica,
        rack=rack.spec.rack,
        first_rank=part.first_rank,
        nodes=tuple(rack.nodes[place].name for place in part.nodes),
        incarnations=part.incarnations,
        addresses=tuple(_address(rack, place) for place in part.nodes),
    )


def _gone(fleet: Fleet, job: Job) -> tuple[WorkerId, ...]:
    """Leaving workers of ranks that have a newer one: survivors are told who left."""
    mine = fleet.leaving_of.get(job.id, ())
    return tuple(sorted(mine, key=lambda worker: parse_worker(worker)[1:]))[:1024]
