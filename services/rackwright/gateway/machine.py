"""The mind of the gateway: remembers what nodes said last, offers nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from immutables import Map

from rackwright.core.fleet import Fleet
from rackwright.core.jobs import Job
from rackwright.core.machine import Effect, Event, Folded, StatusSeen
from rackwright.gateway.firsts import Firsts
from rackwright.wire.ids import JobId, NodeId, WorkerId, parse_worker
from rackwright.wire.signals import NodeStatus, WorkerStatus

MAX_NODES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The last status of a node, and the server's time of it."""

    at: float
    status: NodeStatus

    def worker(self, name: WorkerId) -> WorkerStatus | None:
        """What it says of one worker."""
        return next((one for one in self.status.workers if one.worker == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The last status of each node, and what was seen first after recoveries."""

    seen: Map[NodeId, Seen] = Map()
    firsts: Firsts = field(default_factory=Firsts)


class Gateway:
    """See the package."""

    service = "gateway"

    def start(self, copy: int) -> State:
        """Nobody has said anything yet."""
        return State()

    def handle(self, state: State, fleet: Fleet, event: Event) -> tuple[State, list[Effect]]:
        """Keep the last status of nodes; everything else is in the fleet."""
        match event:
            case StatusSeen(at=at, status=status) if _room(state, status.node):
                state.firsts.heard(event)
                seen = state.seen.set(status.node, Seen(at=at, status=status))
                return replace(state, seen=seen), []
            case Folded():
                state.firsts.folded(fleet, event)
                return state, []
            case _:
                return state, []


def _room(state: State, node: NodeId) -> bool:
    """Nodes that nobody defined may speak too; there is an end to how many are remembered."""
    return node in state.seen or len(state.seen) < MAX_NODES


def checkpoints(state: State, fleet: Fleet) -> dict[JobId, float]:
    """When each placed job saved its state last, as far as its current workers say: the oldest,
    since a checkpoint is whole when every rank that writes one has written it."""
    found: dict[JobId, float] = {}
    for job in fleet.jobs.values():
        saved = [at for at in _saved(state, fleet, job) if at is not None]
        if saved:
            found[job.id] = min(saved)
    return found


def _saved(state: State, fleet: Fleet, job: Job) -> Iterator[float | None]:
    for part in job.slices:
        for place in part.nodes:
            seen = state.seen.get(fleet.racks[part.rack].nodes[place].name)
            for worker in seen.status.workers if seen is not None else ():
                if parse_worker(worker.worker)[0] == job.id:
                    yield worker.checkpoint_at
