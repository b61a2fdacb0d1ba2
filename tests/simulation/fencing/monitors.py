"""What any health-monitor may do: the real machine, as far behind as its proof of quorum lets it.

There is no fixed number of monitors. A copy that has folded up to an entry and not the next one can
have proved at the latest, when the next one was appended, that it reaches the quorum; one that has
folded a suspicion can have done so at the earliest when that was appended. Every copy that there
can be, restarted ones too, is no fresher and no more patient than these.
"""

from __future__ import annotations

from rackwright.core.machine import Heard, SendEcho, StatusSeen, Turn
from rackwright.core.policy.leases import Freshness
from rackwright.core.policy.probation import in_repair
from rackwright.health_monitor import returns, silence
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.health_monitor.state import State, Suspicion
from rackwright.wire.entries.node import NodeUnfit
from rackwright.wire.ids import MessageId, NodeId, SessionId
from rackwright.wire.message import Entry
from rackwright.wire.nodes import Fitness, RepairAction
from rackwright.wire.reasons import Reason
from rackwright.wire.signals import NodeStatus
from tests.simulation.fencing.hosts import RACK
from tests.simulation.fencing.ledger import BAD, Ledger
from tests.support.fleets import EPOCH

MONO = 1000.0
TURN = Turn(now=EPOCH, mono=MONO)


class Monitors:
    """Answers are remembered: each question is asked of the machine once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._echoes: dict[tuple[int, int, str], float | None] = {}
        self._condemned: dict[tuple[int, int], Entry | None] = {}

    def echo(self, at: int, age: int, session: str) -> float | None:
        """The lease that a copy grants which is at `at` and proved its freshness `age` ticks ago;
        None: it does not echo this session."""
        key = (at, age, session)
        if key not in self._echoes:
            self._echoes[key] = self._echo(*key)
        return self._echoes[key]

    def _echo(self, at: int, age: int, session: str) -> float | None:
        state = State(copy=0, ready=True, freshness=Freshness().acked(MONO - age))
        heard = Heard(now=EPOCH, mono=MONO, node=BAD, rack=RACK, session=SessionId(session), n=1)
        _, effects = HealthMonitor().handle(state, self._ledger.fleets[at], heard)
        for effect in effects:
            if isinstance(effect, SendEcho):
                return effect.echo.lease_s
        return None

    def failed(self, at: int, age: int) -> Entry | None:
        """The declaration by a copy at `at` that folded the suspicion there `age` ticks ago."""
        key = (at, age)
        if key not in self._condemned:
            self._condemned[key] = self._failed(*key)
        return self._condemned[key]

    def _failed(self, at: int, age: int) -> Entry | None:
        fleet = self._ledger.fleets[at]
        state = State(copy=0, ready=True)
        suspicion = Suspicion(seq=fleet.node(BAD).suspected, since=MONO - age)
        state.suspicions[BAD] = suspicion
        silence.condemn(state, fleet, MONO)
        return silence.failed(state, fleet, BAD, TURN) if BAD in state.condemned else None

    def suspected(self, at: int) -> Entry | None:
        """Silence or doubt: it may come at any time."""
        state = State(copy=0, ready=True)
        state.beats.silent[BAD] = MONO - 1.0
        return silence.suspected(state, self._ledger.fleets[at], BAD, TURN)

    def cleared(self, at: int) -> Entry | None:
        """A heartbeat of the session that is suspected: one may always be late."""
        state = State(copy=0, ready=True)
        fleet = self._ledger.fleets[at]
        session = fleet.node(BAD).session
        if session is None:
            return None
        HealthMonitor().handle(
            state,
            fleet,
            Heard(now=EPOCH, mono=MONO, node=BAD, rack=RACK, session=session, n=1),
        )
        return silence.cleared(state, fleet, BAD, TURN) if BAD in state.returned else None

    def joined(self, at: int, status: NodeStatus, said: int) -> Entry | None:
        """The session of this status is admitted by a copy that knows of no earlier one.

        `said`: how many entries there were when the status was stored.
        """
        state, fleet = State(copy=0, ready=True), self._ledger.fleets[at]
        joins = [
            depth
            for depth, one in enumerate(self._ledger.chains[at])
            if self._ledger.types[one] == "node.joined"
        ]
        before = bool(joins) and joins[-1] > said
        if joins:
            state.joined_at[status.node] = (EPOCH, MONO)
        seen = StatusSeen(
            now=EPOCH,
            mono=MONO,
            id=MessageId("status"),
            at=EPOCH - 1 if before else EPOCH + 1,
            status=status,
        )
        returns.hear_status(state, fleet, seen)
        return returns.joined(state, fleet, status.node, TURN) if state.joins else None

    def cleaned(self, at: int, status: NodeStatus) -> Entry | None:
        """Workers that are to leave have ended, by their node's word."""
        state = State(copy=0, ready=True)
        fleet = self._ledger.fleets[at]
        seen = StatusSeen(now=EPOCH, mono=MONO, id=MessageId("status"), at=EPOCH, status=status)
        returns.hear_status(state, fleet, seen)
        returns.find_departed(state, fleet)
        name = status.node
        return returns.cleaned(state, fleet, name, TURN) if name in state.departed else None

    def recovered(self, at: int, name: NodeId) -> Entry | None:
        """In service again: somebody has repaired it, or it came back by itself."""
        fleet = self._ledger.fleets[at]
        node = fleet.node(name)
        if node.session is None or not in_repair(node):
            return None
        return returns.recovered(fleet, node, TURN, "returned")

    def unfit(self, at: int, name: NodeId) -> Entry | None:
        """A fault that takes the node out, its agent alive."""
        node = self._ledger.fleets[at].node(name)
        if node.fitness is Fitness.NONE:
            return None
        return NodeUnfit(
            node=name,
            of=node.last,
            fitness=Fitness.NONE,
            action=RepairAction.REBOOT,
            reason=Reason(code="xid.79"),
        )
