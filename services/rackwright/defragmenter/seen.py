"""What nodes have said: which workers run, and when jobs last saved a checkpoint."""

from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.wire.ids import JobId, NodeId, SessionId, WorkerId, parse_worker
from rackwright.wire.signals import ENDED, NodeStatus


@dataclass(slots=True, kw_only=True)
class Seen:
    """`running` by node with the session it is of; `saved` by job and rank: the incarnation that
    told of a checkpoint last, and its time. A rank that was swapped has not lost its checkpoint.
    """

    running: dict[NodeId, tuple[SessionId, frozenset[WorkerId]]] = field(default_factory=dict)
    saved: dict[JobId, dict[int, tuple[int, float]]] = field(default_factory=dict)

    def hear(self, fleet: Fleet, status: NodeStatus) -> None:
        """The last value of one node."""
        alive = frozenset(one.worker for one in status.workers if one.state not in ENDED)
        self.running[status.node] = (status.session, alive)
        for one in status.workers:
            if one.checkpoint_at is None:
                continue
            name, rank, incarnation = parse_worker(one.worker)
            if name not in fleet.jobs:
                continue
            ranks = self.saved.setdefault(name, {})
            known = ranks.get(rank)
            if known is None or known[0] <= incarnation:
                ranks[rank] = (incarnation, one.checkpoint_at)

    def forget(self, job: JobId) -> None:
        """The job has ended."""
        self.saved.pop(job, None)

    def runs(self, fleet: Fleet, worker: WorkerId) -> bool:
        """Does this leaving worker still run, by the word of its node's present session?"""
        place = fleet.leaving.get(worker)
        if place is None:
            return False
        node = fleet.node_at(place.rack, place.node)
        session, alive = self.running.get(node.name, (None, frozenset()))
        return session is not None and session == node.session and worker in alive

    def checkpoints(self) -> dict[JobId, float]:
        """The last checkpoint of each job that told of one: the oldest among its ranks' last ones,
        since a checkpoint is whole when every rank that writes one has written it.
        """
        return {
            name: min(at for _, at in ranks.values()) for name, ranks in self.saved.items() if ranks
        }
