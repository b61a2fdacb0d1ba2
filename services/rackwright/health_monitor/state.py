"""What one copy of the health-monitor knows besides the fleet: all of it may be lost.

The state belongs to the machine, which changes it in place: a heartbeat must not cost a copy of
what is known of 25,000 nodes.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from immutables import Map

from rackwright.core.fleet import Fleet, Place
from rackwright.core.machine import StatusSeen, Wished
from rackwright.core.policy.health import Evidence
from rackwright.core.policy.leases import Freshness
from rackwright.core.policy.witnesses import Cover, Marks
from rackwright.core.racks import Node
from rackwright.health_monitor.beats import Beats, Echoes
from rackwright.wire.ids import JobId, NodeId, RackId, SessionId, WorkerId
from rackwright.wire.subjects import shard_of

SESSIONS_KEPT = 8
STRANGERS_KEPT = 1_024


@dataclass(slots=True, kw_only=True)
class Symptoms:
    """Symptoms of one rack that wait for a culprit; `until` is `mono` time."""

    until: float
    codes: dict[str, int] = field(default_factory=dict)
    nodes: set[NodeId] = field(default_factory=set)
    after: dict[NodeId, Evidence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """The sequence of `node.suspected`, and the `mono` time at which this copy folded it."""

    seq: int
    since: float


@dataclass(slots=True, kw_only=True)
class State:
    """What waits is keyed by what it is about; the fleet says when it has been answered.

    present, ordinal: the copies that share the racks, and which this one is.
    ready, looked_at: the fold has been at the ledger's end, and the cell was looked over then.
    suspicions, returned, condemned: nodes with a recalled lease; those of them heard again, and
    when; those whose lease must be over. unproven: those of the latter that may still work.
    unconfirmed: those whose witnesses may have carried it on. covers: witnesses of the suspected,
    each with how long it has been bound by its promises; attended: those of them in racks of other
    copies. marks: appends of this copy, by which a heartbeat is dated.
    wait, longer_wait: W as it is; one of an earlier policy, and the `mono` time until which it
    holds.
    suspects, isolate: decided from silence, to be said; judge_at: when silence is judged again.
    statuses, strange, reported: the last of each node; of nodes that no entry has defined; workers
    said to have ended, and by which node.
    joins, sessions, past: sessions to admit; the live ones; those that are over. joined_at: ledger
    and `mono` time at which this copy has seen the live one admitted.
    departed, leaving, reports: what the ledger is to be told has ended, and what it was made from.
    blamed, unjoined, others: evidence to act on; of nodes that have not joined; of racks that are
    another copy's. The latter with the `mono` time at which it came.
    racks, troubled, restores: racks to judge; that are not good; that are good again.
    returning, requests, repairs: nodes that may be let in; repairs to ask for (with the evidence if
    the node stays in service); repairs asked for, with the ledger time of the last reminder.
    moved: nodes whose hardware may have come with a fault from elsewhere.
    checks, asked, answers: checks to ask for, and why; those that were asked, with the `mono` time
    since which the node could have made one; those of them whose outcome is to be said.
    wishes, heard_to: wishes without an answer by sequence; the last one heard.
    marked, evacuate_at: nodes that were to be left; when (`mono`) to look who is.
    served: kinds of entry that have had their turn in this round.
    strangers: who was heard since the last look and was not defined then.
    """

    copy: int
    present: int = 1
    ordinal: int = 0
    own: dict[RackId, bool] = field(default_factory=dict)
    ready: bool = False
    began: float = 0.0
    stale: bool = False
    looked_at: float = 0.0
    freshness: Freshness = Freshness()
    beats: Beats = field(default_factory=Beats)
    echoes: Echoes = field(default_factory=Echoes)
    suspicions: OrderedDict[NodeId, Suspicion] = field(default_factory=OrderedDict)
    returned: dict[NodeId, float] = field(default_factory=dict)
    condemned: dict[NodeId, None] = field(default_factory=dict)
    unproven: set[NodeId] = field(default_factory=set)
    unconfirmed: set[NodeId] = field(default_factory=set)
    covers: dict[NodeId, Cover | None] = field(default_factory=dict)
    attended: frozenset[NodeId] = frozenset()
    marks: Marks = Marks()
    wait: float = 0.0
    longer_wait: tuple[float, float] = (0.0, 0.0)
    suspects: dict[NodeId, float] = field(default_factory=dict)
    isolate: dict[RackId, int] = field(default_factory=dict)
    judge_at: float = 0.0
    blind: bool = False
    sees_from: float = 0.0
    statuses: dict[NodeId, StatusSeen] = field(default_factory=dict)
    strange: OrderedDict[NodeId, StatusSeen] = field(default_factory=OrderedDict)
    reported: dict[WorkerId, NodeId] = field(default_factory=dict)
    joins: dict[NodeId, StatusSeen] = field(default_factory=dict)
    sessions: dict[NodeId, SessionId] = field(default_factory=dict)
    past: dict[NodeId, tuple[SessionId, ...]] = field(default_factory=dict)
    joined_at: dict[NodeId, tuple[float, float]] = field(default_factory=dict)
    departed: dict[NodeId, tuple[WorkerId, ...]] = field(default_factory=dict)
    leaving: Map[WorkerId, Place] = Map()
    reports: bool = False
    blamed: dict[NodeId, Evidence] = field(default_factory=dict)
    unjoined: dict[NodeId, tuple[float, Evidence]] = field(default_factory=dict)
    others: dict[tuple[NodeId, str], tuple[float, Evidence]] = field(default_factory=dict)
    symptoms: dict[RackId, Symptoms] = field(default_factory=dict)
    repeats: OrderedDict[str, frozenset[JobId]] = field(default_factory=OrderedDict)
    noted: OrderedDict[str, float] = field(default_factory=OrderedDict)
    racks: dict[RackId, None] = field(default_factory=dict)
    troubled: dict[RackId, None] = field(default_factory=dict)
    restores: dict[RackId, str] = field(default_factory=dict)
    returning: dict[NodeId, None] = field(default_factory=dict)
    requests: dict[NodeId, Evidence | None] = field(default_factory=dict)
    repairs: dict[NodeId, float] = field(default_factory=dict)
    moved: dict[NodeId, None] = field(default_factory=dict)
    checks: dict[NodeId, str] = field(default_factory=dict)
    asked: dict[NodeId, float] = field(default_factory=dict)
    answers: dict[NodeId, None] = field(default_factory=dict)
    wishes: dict[int, Wished] = field(default_factory=dict)
    heard_to: int = 0
    marked: dict[NodeId, None] = field(default_factory=dict)
    evacuate_at: float = 0.0
    served: set[str] = field(default_factory=set)
    strangers: dict[NodeId, RackId] = field(default_factory=dict)
    second_at: float = 0.0
    minute_at: float = 0.0

    def stranger(self, node: NodeId, rack: RackId) -> None:
        """Somebody was heard whom no entry has defined (yet)."""
        if len(self.strangers) < STRANGERS_KEPT:
            self.strangers[node] = rack

    def owns(self, rack: RackId) -> bool:
        """Is this rack of this copy's share? Overlap does no harm, so a late share does none."""
        mine = self.own.get(rack)
        if mine is None:
            mine = int(shard_of(rack)) % self.present == self.ordinal
            self.own[rack] = mine
        return mine

    def owns_node(self, fleet: Fleet, node: NodeId) -> bool:
        """Is this known node in a rack of this copy's share?"""
        return self.owns(fleet.rack_name(fleet.places[node].rack))

    def admitted(self, node: NodeId, session: SessionId | None) -> None:
        """The fleet shows this session of a node now (None: fenced); the one before is past."""
        before = self.sessions.pop(node, None)
        if before is not None and before != session:
            self.past[node] = (*self.past.get(node, ())[-SESSIONS_KEPT:], before)
        if session is not None:
            self.sessions[node] = session

    def is_past(self, node: Node, session: SessionId) -> bool:
        """Was this session of the node live once, and is over?"""
        return session == node.fenced or session in self.past.get(node.name, ())

    def drop_drafts(self) -> None:
        """Forget what was derived from the fleet for the racks of the share so far."""
        for nodes in (self.suspects, self.joins, self.departed, self.condemned, self.returning):
            nodes.clear()
        for racks in (self.isolate, self.troubled, self.restores, self.racks):
            racks.clear()
        self.marked.clear()
        self.repairs.clear()
        self.checks.clear()
        self.asked.clear()
        self.answers.clear()

    def take_evidence(self) -> list[Evidence]:
        """All evidence that waits anywhere, which waits there no more."""
        found = [one for _, one in (*self.others.values(), *self.unjoined.values())]
        found += self.blamed.values()
        found += [one for one in self.requests.values() if one is not None]
        for waiting in (self.others, self.unjoined, self.blamed):
            waiting.clear()
        return found
