"""Entries as sentences for people, and whom each of them is about."""

from collections.abc import Iterable

from rackwright.core.fleet import Fleet
from rackwright.core.plural import singular
from rackwright.core.reasons import number, rung, sentence
from rackwright.wire.entries import cell, job, node
from rackwright.wire.entries import slice as slices
from rackwright.wire.entries.job import SlicePlacement
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import RungTaken

FEW = 8


def tell(entry: Entry, fleet: Fleet) -> str:
    """What this entry did, in one sentence; `fleet` gives names to places."""
    return singular(_told(entry, fleet))


def _told(entry: Entry, fleet: Fleet) -> str:
    match entry.TYPE.partition(".")[0]:
        case "job" | "worker":
            return _of_job(entry, fleet)
        case "node":
            return _of_node(entry)
        case "slice":
            return _of_slice(entry, fleet)
        case "rack" | "maintenance":
            return _of_rack(entry)
        case "defrag":
            return _of_plan(entry, fleet)
        case _:
            return _of_cell(entry)


def _of_job(entry: Entry, fleet: Fleet) -> str:
    match entry:
        case job.JobQueued():
            told = [sentence(warning) for warning in entry.warnings]
            return _joined(f"submitted by {entry.owner}, waits in queue {entry.spec.queue}", told)
        case job.JobPlaced():
            where = _places(entry.slices, fleet)
            return f"placed (membership {entry.membership}) on {where}: {sentence(entry.reason)}"
        case job.JobShrunk() | job.JobGrown():
            return _resized(entry, fleet)
        case job.JobStarted():
            return f"all ranks of membership {entry.membership} run"
        case job.JobFinishing():
            return "a first rank has ended well"
        case job.JobFinished():
            return "every rank has ended well"
        case job.JobCancelled():
            return f"cancelled by {entry.by}: {sentence(entry.reason)}"
        case job.JobNotified():
            return f"told{_ahead(entry)}: {sentence(entry.reason)}"
        case _:
            return _of_job_no(entry)


def _ahead(entry: job.JobNotified) -> str:
    if entry.idle_s is not None:
        return ""
    if entry.window is not None:
        return f" {number(entry.notice_s)} s before"
    return f" that it stops in {number(entry.notice_s)} s"


def _resized(entry: job.JobShrunk | job.JobGrown, fleet: Fleet) -> str:
    at = f"(membership {entry.membership})"
    if isinstance(entry, job.JobGrown):
        return f"grown {at} by {_places(entry.slices, fleet)}: {sentence(entry.reason)}"
    gone = _listed(str(index) for index in entry.indexes)
    what = f"goes on without slices {gone} {at}: {sentence(entry.reason)}"
    return "; ".join([what, *_rungs(entry.rungs)])


def _ordered(
    entry: job.JobPinned | job.JobApproved | job.JobResumed | job.JobReleased,
) -> str:
    """What somebody wished for a job."""
    match entry:
        case job.JobPinned():
            return f"{'pinned' if entry.pinned else 'no longer pinned'} by {entry.by}"
        case job.JobApproved():
            return f"{entry.by} lets a plan be carried out for it"
        case job.JobResumed():
            return f"resumed by {entry.by}"
        case job.JobReleased():
            return f"its nodes are released by {entry.by}"


def _of_job_no(entry: Entry) -> str:
    """Entries whose reason is the story."""
    match entry:
        case job.JobPinned() | job.JobApproved() | job.JobResumed() | job.JobReleased():
            return _ordered(entry)
        case job.JobRejected():
            return f"rejected: {sentence(entry.reason)}"
        case job.JobBlocked():
            return f"blocked by {entry.reason.code}: {sentence(entry.reason)}"
        case job.JobFailed():
            kept = f"; its nodes are kept for {number(entry.keep_s)} s" if entry.keep_s else ""
            return f"failed: {sentence(entry.reason)}{kept}"
        case job.JobRequeued():
            why = [sentence(entry.reason), *_rungs(entry.rungs)]
            return "back in the queue: " + "; ".join(why)
        case job.JobSuspended():
            return f"suspended: {sentence(entry.reason)}"
        case job.WorkerFailed():
            code = "" if entry.code is None else f" with {entry.code}"
            return f"worker {entry.worker} ended{code}: {sentence(entry.reason)}"
        case _:
            return entry.TYPE


def _of_slice(entry: Entry, fleet: Fleet) -> str:
    match entry:
        case slices.SliceSwapped():
            there = _slice_rack(fleet, entry.job, entry.index)
            swaps = [
                f"rank {swap.rank} from {_node(fleet, there, swap.old)}"
                f" to {_node(fleet, there, swap.new)}"
                for swap in entry.swaps[:FEW]
            ]
            what = f"slice {entry.index} swapped (membership {entry.membership}): "
            return _because(what + ", ".join(swaps), entry.evicted, entry.rungs)
        case slices.SliceMoved():
            nodes = entry.nodes.bit_count()
            what = f"slice {entry.index} moved (membership {entry.membership})"
            return _because(f"{what} to {entry.rack}, {nodes} nodes", entry.evicted, entry.rungs)
        case slices.SliceRestarted():
            ranks = _listed(str(rank) for rank in entry.ranks)
            charge = ", a try of its budget" if entry.charge else ""
            what = f"ranks {ranks} start again (membership {entry.membership}){charge}"
            return _because(what, (), entry.rungs)
        case _:
            return entry.TYPE


def _because(what: str, evicted: tuple[JobId, ...], rungs: tuple[RungTaken, ...]) -> str:
    gone = [f"evicts {_listed(evicted)}"] if evicted else []
    return "; ".join([what, *gone, *_rungs(rungs)])


def _rungs(rungs: tuple[RungTaken, ...]) -> list[str]:
    return [rung(one) for one in rungs]


def _of_plan(entry: Entry, fleet: Fleet) -> str:
    match entry:
        case slices.DefragPlanned():
            victims = _listed(victim.job for victim in entry.victims)
            where = _places(entry.slices, fleet)
            return (
                f"plan {entry.plan}: room for {entry.job} on {where} is made by {victims};"
                f" {sentence(entry.reason)}"
            )
        case slices.DefragWithdrawn():
            spared = f"; {_listed(entry.spared)} stay where they are" if entry.spared else ""
            return f"plan {entry.plan} withdrawn: {sentence(entry.reason)}{spared}"
        case slices.DefragFinished():
            return f"plan {entry.plan} carried out"
        case _:
            return entry.TYPE


def _of_node(entry: Entry) -> str:
    match entry:
        case node.NodeJoined():
            hardware = entry.hardware
            found = f"{hardware.gpus} GPUs, serial {hardware.serial}"
            alive = f", {len(entry.running)} workers alive" if entry.running else ""
            return f"{entry.node} joined: {found}{alive}"
        case node.NodeUnfit():
            return f"{entry.node} fit for {entry.fitness} only: {sentence(entry.reason)}"
        case node.NodeSuspected():
            return f"{entry.node} suspected, its lease recalled: {sentence(entry.reason)}"
        case node.NodeCleared():
            return f"{entry.node} heard again"
        case node.NodeFailed():
            fenced = ", its lease has ended" if entry.fenced else ""
            return f"{entry.node} failed{fenced}: {sentence(entry.reason)}"
        case node.NodeRecovered():
            probation = " on probation" if entry.probation_until else ""
            return f"{entry.node} back in service{probation}: {sentence(entry.reason)}"
        case node.NodeCleaning():
            done = "clean" if entry.done else "being cleaned"
            ended = f", ended: {_listed(entry.ended)}" if entry.ended else ""
            return f"{entry.node} {done}{ended}"
        case node.RepairRequested():
            return f"{entry.node} needs {entry.action}: {sentence(entry.reason)}"
        case _:
            return _of_order(entry)


def _of_order(entry: Entry) -> str:
    match entry:
        case node.NodeCordoned():
            what = "drained" if entry.drain else "cordoned"
            return _joined(f"{entry.node} {what} by {entry.by}", [entry.why])
        case node.NodeCheckAsked():
            held = ", and gets no work before" if entry.hold else ""
            return f"{entry.node} is to be checked ({entry.why}){held}"
        case node.NodeChecked():
            return f"{entry.node} checked: {sentence(entry.reason)}"
        case node.NodeUncordoned():
            return f"{entry.node} takes work again, by {entry.by}"
        case _:
            return entry.TYPE


def _of_rack(entry: Entry) -> str:
    match entry:
        case node.RackDefined():
            return f"rack {entry.rack.rack} with {len(entry.rack.nodes)} nodes"
        case node.RackDegraded():
            return f"rack {entry.rack} is {entry.fitness}: {sentence(entry.reason)}"
        case node.RackIsolated():
            return f"rack {entry.rack} is silent as a whole: {sentence(entry.reason)}"
        case node.RackRestored():
            return f"rack {entry.rack} restored: {sentence(entry.reason)}"
        case node.RackHeld():
            return _joined(f"rack {entry.rack} held by {entry.owner}", [entry.why])
        case node.RackReleased():
            return f"rack {entry.rack} released"
        case node.MaintenanceScheduled():
            what = _listed([*entry.racks, *entry.nodes])
            return _joined(f"maintenance of {what} scheduled by {entry.by}", [entry.why])
        case node.MaintenanceEnded():
            return f"maintenance scheduled at {entry.of} has ended"
        case _:
            return entry.TYPE


def _of_cell(entry: Entry) -> str:
    match entry:
        case cell.LedgerCreated():
            return f"ledger {entry.ledger} created"
        case cell.CellUpgraded():
            return f"fold version {entry.fold_version} from here on"
        case cell.SnapshotVerified():
            return f"snapshot at {entry.seq} verified"
        case cell.PolicySet():
            return f"policy set by {entry.by}"
        case cell.AutomationPaused():
            return _joined(f"{entry.automation} paused by {entry.by}", [entry.why])
        case cell.AutomationResumed():
            return f"{entry.automation} resumed by {entry.by}"
        case cell.BreakerClosed():
            what = f"breaker closed by {entry.by} after {entry.culprits} culprits"
            return _joined(what, [entry.why])
        case cell.WishRefused():
            what = f"{entry.kind.removeprefix('wish.')} of {entry.subject} by {entry.owner}"
            return f"{what} refused: {sentence(entry.reason)}"
        case cell.LedgerTicked():
            return "nothing happened"
        case _:
            return entry.TYPE


def _joined(what: str, more: Iterable[str]) -> str:
    return "; ".join([what, *(one for one in more if one)])


def _listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    told = list(names)
    more = f" and {len(told) - FEW} more" if len(told) > FEW else ""
    return (", ".join(told[:FEW]) or "nothing") + more


def _places(placed: tuple[SlicePlacement, ...], fleet: Fleet) -> str:
    return _listed(f"{part.rack} ({_nodes_of(part)})" for part in placed)


def _nodes_of(part: SlicePlacement) -> str:
    if part.gpus:
        return f"{part.gpus.bit_count()} GPUs"
    count = part.nodes.bit_count()
    return f"{count} nodes" if count > 1 else "1 node"


def _slice_rack(fleet: Fleet, name: JobId, index: int) -> int | None:
    found = fleet.jobs.get(name)
    parts = () if found is None else found.slices
    return next((part.rack for part in parts if part.index == index), None)


def _node(fleet: Fleet, rack: int | None, place: int) -> str:
    if rack is None or rack not in fleet.racks or place >= len(fleet.racks[rack].nodes):
        return f"place {place}"
    return str(fleet.racks[rack].nodes[place].name)


def subjects(entry: Entry, before: Fleet) -> tuple[tuple[JobId, ...], tuple[NodeId, ...]]:
    """Jobs and nodes this entry is about; `before` is the fleet it was folded on.

    What becomes of a node is part of the story of the jobs on it.
    """
    jobs: dict[JobId, None] = {}
    nodes: dict[NodeId, None] = {}
    named = getattr(entry, "job", None)
    if named is not None:
        jobs[named] = None
    match entry:
        case slices.DefragPlanned():
            jobs |= dict.fromkeys(victim.job for victim in entry.victims)
        case slices.DefragWithdrawn() | slices.DefragFinished():
            plan = before.plans.get(entry.plan)
            if plan is not None:
                jobs |= dict.fromkeys((plan.job, *(victim.job for victim in plan.victims)))
        case slices.SliceSwapped():
            jobs |= dict.fromkeys(entry.evicted)
            nodes |= dict.fromkeys(_swapped(entry, before))
        case slices.SliceMoved():
            jobs |= dict.fromkeys(entry.evicted)
        case cell.WishRefused():
            jobs |= {JobId(entry.subject): None} if entry.subject in before.jobs else {}
            nodes |= {NodeId(entry.subject): None} if entry.subject in before.places else {}
        case _:
            pass
    about = getattr(entry, "node", None)
    if about is not None:
        nodes[about] = None
        jobs |= dict.fromkeys(_on(before, about))
    return tuple(jobs), tuple(nodes)


def _swapped(entry: slices.SliceSwapped, before: Fleet) -> Iterable[NodeId]:
    rack = _slice_rack(before, entry.job, entry.index)
    for swap in entry.swaps if rack is not None else ():
        for place in (swap.old, swap.new):
            nodes = before.racks[rack].nodes if rack is not None else ()
            if place < len(nodes):
                yield nodes[place].name


def _on(fleet: Fleet, name: NodeId) -> Iterable[JobId]:
    place = fleet.places.get(name)
    if place is None:
        return ()
    rack = fleet.racks[place.rack]
    gone = [leaving.worker for leaving in rack.leaving if leaving.node == place.node]
    there = [tenant.job for tenant in rack.tenants_at(place.node)]
    return [*there, *(JobId(worker.partition("/")[0]) for worker in gone)]


def bounded(text: str, most: int = 400) -> str:
    """A sentence that is not longer than `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."
