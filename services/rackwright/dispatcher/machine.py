"""The dispatcher's mind: which values have to be written, and when a snapshot is due.

It decides nothing about work. A rack's value is written again when a commit touched the rack or a
worker that a gate there waits for has ended. Several copies write the same values; a value that is
newer than one's own is left alone by the host (P4).
"""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.machine import (
    CheckSnapshot,
    Effect,
    Event,
    Folded,
    Note,
    Offer,
    Project,
    Refused,
    SnapshotChecked,
    SnapshotStored,
    StatusSeen,
    TrimLedger,
    Turn,
    WakeAt,
    WriteSnapshot,
)
from rackwright.core.projection import assignments, job_value, waits
from rackwright.core.racks import Node
from rackwright.core.snapshot import shape
from rackwright.wire.entries.cell import SnapshotVerified
from rackwright.wire.entries.node import NodeJoined
from rackwright.wire.ids import JobId, NodeId, WorkerId, parse_worker
from rackwright.wire.signals import ENDED

SNAPSHOT_COMMITS = 5_000
SNAPSHOT_ENTRIES = 10_000  # a commit may hold 64: this bounds what a restart has to fold
SNAPSHOT_S = 60.0
COPY_S = 15.0  # a later copy writes only what its betters leave undone
RETRY_S = 5.0
WRITE_S = 15.0  # a snapshot that was asked for and is not there by then is asked for again
KEEP_TAIL = 10_000
RACKS_A_TURN = 64


@dataclass(slots=True)
class State:
    """`racks` and `jobs` are to be written; `waiting` are the racks that wait for a worker's end;
    `ended` are workers that have ended by their nodes' word; a node may say so before the entry
    that takes the worker off, so they are kept until the fleet knows no place and no gate of them.
    `asked`: racks of the nodes of which a node is a witness, or was once.
    """

    copy: int
    started: bool = False
    racks: dict[int, None] = field(default_factory=dict)
    jobs: dict[JobId, None] = field(default_factory=dict)
    waiting: dict[WorkerId, set[int]] = field(default_factory=dict)
    ended: set[WorkerId] = field(default_factory=set)
    asked: dict[NodeId, set[int]] = field(default_factory=dict)
    prune_above: int = 1_024
    stored_seq: int = 0
    stored_hash: str = ""
    stored_at: float = 0.0
    asked_seq: int = 0
    asked_at: float | None = None  # None: none is being written
    entries: int = 0
    verified: SnapshotVerified | None = None
    trimmed: int = 0


class Dispatcher:
    """A machine (see core.machine)."""

    service = "dispatcher"

    def start(self, copy: int) -> State:
        """Knows nothing; the first Turn projects the whole fleet."""
        return State(copy=copy)

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Take one event."""
        match event:
            case Folded():
                _folded(state, fleet, event)
                return state, []
            case StatusSeen(status=status):
                for worker in status.workers:
                    if worker.state in ENDED:
                        _has_ended(state, worker.worker)
                return state, []
            case SnapshotStored(seq=seq, sha256=sha256):
                return state, _stored(state, seq, sha256, event.mono)
            case SnapshotChecked():
                return state, _checked(state, event)
            case Refused(offer=offer):
                return state, [offer] if _wanted(state, fleet) else []
            case Turn():
                return state, _turn(state, fleet, event.mono)
            case _:
                return state, []


def _folded(state: State, fleet: Fleet, event: Folded) -> None:
    state.entries += len(event.entries)
    _touched(state, fleet)
    for entry in event.entries:
        if isinstance(entry, NodeJoined) and state.started and not event.void:
            _joined(state, fleet, fleet.node(entry.node))


def _touched(state: State, fleet: Fleet) -> None:
    if not state.started:
        return
    state.racks.update(dict.fromkeys(sorted(fleet.touched_racks)))
    state.jobs.update(dict.fromkeys(sorted(fleet.touched_jobs)))
    # A job's change may open or close gates in racks the commit did not touch otherwise.
    for name in sorted(fleet.touched_jobs):
        job = fleet.jobs.get(name)
        if job is not None:
            state.racks.update((part.rack, None) for part in job.slices)


def _joined(state: State, fleet: Fleet, node: Node) -> None:
    """Racks of nodes that it is a witness of are told where it is asked now; and who asks whom."""
    state.racks.update(dict.fromkeys(sorted(state.asked.get(node.name, ()))))
    for witness in node.witnesses.nodes if node.witnesses is not None else ():
        state.asked.setdefault(witness, set()).add(fleet.places[node.name].rack)


def _has_ended(state: State, worker: WorkerId) -> None:
    if worker in state.ended:
        return
    state.ended.add(worker)
    state.racks.update(dict.fromkeys(sorted(state.waiting.pop(worker, ()))))


def _prune(state: State, fleet: Fleet) -> None:
    """Forget ended workers that the fleet has forgotten; seldom, as it looks at all of them."""
    if len(state.ended) <= state.prune_above:
        return
    state.ended = {worker for worker in state.ended if _known(fleet, worker)}
    state.prune_above = max(1_024, 2 * len(state.ended))


def _known(fleet: Fleet, worker: WorkerId) -> bool:
    if worker in fleet.leaving:
        return True
    name, rank, _ = parse_worker(worker)
    job = fleet.jobs.get(name)
    return job is not None and job.has_rank(rank) and job.worker(rank) == worker


def _turn(state: State, fleet: Fleet, mono: float) -> list[Effect]:
    if not state.started:
        state.started = True
        state.stored_at = mono
        state.racks = dict.fromkeys(range(len(fleet.racks)))
        state.jobs = dict.fromkeys(sorted(fleet.jobs))
        for rack in fleet.racks.values():
            for node in rack.nodes:
                _joined(state, fleet, node)
    effects: list[Effect] = list(_project_jobs(state, fleet))
    effects += _project_racks(state, fleet)
    effects += _snapshots(state, fleet, mono)
    if state.racks or state.jobs:
        effects.append(WakeAt(mono=mono))
    return effects


def _project_jobs(state: State, fleet: Fleet) -> list[Effect]:
    """Jobs first: a node that is told to run a worker finds what the job is."""
    due = list(state.jobs)[:RACKS_A_TURN]
    for name in due:
        del state.jobs[name]
    return [Project(bucket="jobs", key=name, value=job_value(fleet, name)) for name in due]


def _project_racks(state: State, fleet: Fleet) -> list[Effect]:
    due = list(state.racks)[:RACKS_A_TURN]
    effects: list[Effect] = []
    _prune(state, fleet)
    for number in due:
        del state.racks[number]
        for worker in waits(fleet, number, state.ended):
            state.waiting.setdefault(worker, set()).add(number)
        value = assignments(fleet, number, state.ended)
        effects.append(Project(bucket="assign", key=value.rack, value=value))
    return effects


def _snapshots(state: State, fleet: Fleet, mono: float) -> list[Effect]:
    effects: list[Effect] = []
    new = fleet.seq - state.stored_seq
    old = mono - state.stored_at
    many = new >= SNAPSHOT_COMMITS or state.entries >= SNAPSHOT_ENTRIES
    patience = SNAPSHOT_S + state.copy * COPY_S
    due = (many and state.copy == 0) or (new > 0 and old >= patience)
    writing = state.asked_at is not None and mono < state.asked_at + WRITE_S
    if due and not writing and fleet.seq > state.asked_seq:
        state.asked_seq, state.asked_at = fleet.seq, mono
        state.entries = 0
        effects.append(WriteSnapshot(seq=fleet.seq))
    if _wanted(state, fleet) and state.verified is not None:
        effects.append(Offer(entries=(state.verified,)))
    trim = trim_to(fleet)
    if trim > state.trimmed:
        state.trimmed = trim
        effects.append(TrimLedger(to=trim))
    effects.append(WakeAt(mono=max(state.stored_at + patience, mono + RETRY_S)))
    return effects


def _wanted(state: State, fleet: Fleet) -> bool:
    """Is there a verified snapshot that the ledger does not know of?"""
    made = state.verified
    if made is None:
        return False
    return made.seq > max((seq for seq, _ in fleet.verified), default=0)


def trim_to(fleet: Fleet) -> int:
    """The ledger may be dropped up to here: two verified snapshots and 10,000 commits stay."""
    if len(fleet.verified) < 2:
        return 0
    return max(0, fleet.verified[-2][0] - KEEP_TAIL)


def _stored(state: State, seq: int, sha256: str, mono: float) -> list[Effect]:
    """A snapshot is there: the one before it can be checked against it."""
    before, state.stored_seq = state.stored_seq, max(seq, state.stored_seq)
    state.stored_at = mono
    state.asked_at = None
    if seq < state.stored_seq:
        return []
    state.stored_hash = sha256
    if before == 0 or before == seq:
        return []
    return [CheckSnapshot(seq=before, to=seq, sha256=sha256)]


def _checked(state: State, event: SnapshotChecked) -> list[Effect]:
    if event.equal:
        state.verified = SnapshotVerified(seq=event.to, sha256=event.sha256, shape=shape())
        return []
    fields = {"from_seq": event.seq, "to_seq": event.to, "sha256": event.sha256}
    return [Note(level="error", event="snapshot.diverged", fields=fields)]
