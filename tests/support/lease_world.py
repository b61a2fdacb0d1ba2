"""One doubtful node, one good node, two health-monitors and a ledger, with every delay there is.

The monitors are the real machines. What the network and the scheduler may do is drawn from
`Trouble`: heartbeats, echoes, the ledger's deliveries and appends are each late or lost, a monitor
is stopped, clocks run fast or slow. The one question: can a lease that an echo granted outlive the
entry that declares the node fenced?
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.machine import (
    Acked,
    Effect,
    Event,
    Folded,
    Heard,
    Offer,
    Refused,
    SendEcho,
    Turn,
)
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.health_monitor.state import State
from rackwright.wire.entries.node import NodeFailed, NodeSuspected
from rackwright.wire.ids import CellName, MessageId, NodeId, RackId, SessionId
from rackwright.wire.message import Commit, Entry
from rackwright.wire.policy import Policy
from tests.support.fleets import EPOCH, LEDGER, cell

POLICY = Policy(heartbeat_s=0.5, suspect_after_s=1.5, fence_after_s=3.0, fresh_s=1.0, kill_s=0.5)
DOUBTFUL, GOOD = NodeId("r0-n00"), NodeId("r0-n01")
RACK = RackId("r0")
STEP_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Chances per message or step, 0 to 1; clocks of the agent and of monitors against true time.

    `beat_lost` of the doubtful node's heartbeats to each monitor, and from `silent_from` on all of
    them; `beat_late` that one waits
    another step; `ledger_late` that a monitor is not told of a commit in this step;
    `append_late` that an append does not land yet; `ack_late`; `stopped` that a monitor stands
    still in a step, `resumed` that it goes on; `restarted` that it begins anew in a step and knows
    nothing, while what it appended last may still come in.
    """

    beat_lost: tuple[float, float] = (0.0, 0.0)
    silent_from: float = float("inf")
    beat_late: float = 0.0
    ledger_late: float = 0.0
    append_late: float = 0.0
    ack_late: float = 0.0
    stopped: float = 0.0
    resumed: float = 0.5
    restarted: float = 0.0
    agent_clock: float = 1.0
    clocks: tuple[float, float] = (1.0, 1.0)


class LeaseOutlivesFence(AssertionError):
    """The broken promise, with the story of it."""

    def __init__(self, lease: float, fenced: float, story: list[str]) -> None:
        super().__init__(
            f"a lease runs to {lease:.2f}, fenced at {fenced:.2f}:\n" + "\n".join(story)
        )


@dataclass(slots=True)
class Flight:
    """An append: not landed yet, or landed at `seq` and not acknowledged yet."""

    offer: Offer
    prev: MessageId | None
    sent_mono: float
    seq: int | None = None
    refused: bool = False


@dataclass(slots=True)
class Copy:
    """One monitor with its own view of the ledger."""

    number: int
    clock: float
    fleet: Fleet
    machine: HealthMonitor = field(default_factory=HealthMonitor)
    state: State = field(default_factory=lambda: State(copy=0))
    told: int = 0
    beats: deque[tuple[NodeId, SessionId, int]] = field(default_factory=deque)
    flight: Flight | None = None
    ghosts: list[Flight] = field(default_factory=list)
    standing: bool = False


@dataclass(slots=True)
class World:
    """Everything. `leases_to`: true time until which an echo that was sent lets workers live."""

    trouble: Trouble
    random: Random
    fleet: Fleet = field(init=False)
    commits: list[tuple[Fleet, Commit[Any], bool]] = field(default_factory=list)
    copies: list[Copy] = field(init=False)
    time: float = 0.0
    n: int = 0
    sent: dict[int, float] = field(default_factory=dict)
    leases_to: float = 0.0
    suspected: int = 0
    fenced: float | None = None
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = cell(racks=1, nodes=2, policy=POLICY).fleet
        self.copies = [
            Copy(number=number, clock=clock, fleet=self.fleet)
            for number, clock in enumerate(self.trouble.clocks)
        ]

    def run(self, steps: int) -> "World":
        """Let so many steps pass; stops some time after the node was fenced."""
        for _ in range(steps):
            self.step()
            if self.fenced is not None and self.time > self.fenced + 8:
                break
        return self

    def chance(self, odds: float) -> bool:
        """Does it happen now?"""
        return odds > 0 and self.random.random() < odds

    def step(self) -> None:
        """A tenth of a second: messages move, and every copy that is not stopped acts."""
        self.time = round(self.time + STEP_S, 6)
        if round(self.time / STEP_S) % 5 == 0:
            self._beat()
        for copy in self.copies:
            copy.standing = self.chance(
                1 - self.trouble.resumed if copy.standing else self.trouble.stopped
            )
            if self.chance(self.trouble.restarted):
                self._restart(copy)
            for flight in (*copy.ghosts, copy.flight):
                self._land(copy, flight)
            if not copy.standing:
                self._act(copy)
        self._check()

    def _beat(self) -> None:
        self.n += 1
        self.sent[self.n] = self.time * self.trouble.agent_clock
        for copy, lost in zip(self.copies, self.trouble.beat_lost, strict=True):
            for node in (GOOD, DOUBTFUL):
                session = self.commits_session(node)
                silent = self.time >= self.trouble.silent_from
                if node is GOOD or not (silent or self.chance(lost)):
                    copy.beats.append((node, session, self.n))

    def commits_session(self, node: NodeId) -> SessionId:
        """The session of a node that beats: it has only one in its life."""
        session = self.fleet.node(node).session or self.fleet.node(node).fenced
        assert session is not None
        return session

    def _restart(self, copy: Copy) -> None:
        if copy.flight is not None:
            copy.ghosts.append(copy.flight)
        copy.flight, copy.state = None, State(copy=0)
        copy.beats.clear()

    def _land(self, copy: Copy, flight: Flight | None) -> None:
        if flight is None or flight.seq is not None or flight.refused:
            return
        if self.chance(self.trouble.append_late):
            return
        if flight.offer.compare and flight.prev != self.fleet.last_id:
            flight.refused = True
            return
        commit: Commit[Any] = Commit(
            id=MessageId(f"c{self.fleet.seq + 1}"),
            type=flight.offer.entries[0].TYPE,
            v=1,
            at=0.0,
            source=f"health-monitor/{copy.number}",
            cell=CellName("cell"),
            ledger=LEDGER,
            prev=flight.prev if flight.offer.compare else None,
            wishes_to=flight.offer.wishes_to,
            entries=flight.offer.entries,
        )
        folding = fold(self.fleet, self.fleet.seq + 1, EPOCH + self.time, commit)
        self.fleet = folding.fleet
        flight.seq = self.fleet.seq
        self.commits.append((folding.fleet, commit, folding.void))
        if not folding.void:
            self._note(flight.offer.entries)

    def _note(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            if isinstance(entry, NodeSuspected) and entry.node == DOUBTFUL:
                self.suspected += 1
            if isinstance(entry, NodeFailed) and entry.node == DOUBTFUL:
                self.fenced = self.time
            if entry.TYPE != "ledger.ticked":
                self.story.append(f"{self.time:.1f} {entry.TYPE} at {self.fleet.seq}")

    def _act(self, copy: Copy) -> None:
        while copy.told < len(self.commits) and not self.chance(self.trouble.ledger_late):
            fleet, commit, void = self.commits[copy.told]
            copy.told += 1
            copy.fleet = fleet
            self._tell(
                copy,
                Folded,
                seq=fleet.seq,
                source=commit.source,
                type=commit.type,
                entries=commit.entries,
                void=void,
            )
        self._settle(copy)
        for _ in range(len(copy.beats)):
            node, session, n = copy.beats.popleft()
            if node == DOUBTFUL and self.chance(self.trouble.beat_late):
                copy.beats.append((node, session, n))
            else:
                self._tell(copy, Heard, node=node, rack=RACK, session=session, n=n)
        if copy.flight is None:
            for effect in self._tell(copy, Turn):
                if isinstance(effect, Offer):
                    copy.flight = Flight(effect, copy.fleet.last_id, self.time * copy.clock)

    def _settle(self, copy: Copy) -> None:
        flight = copy.flight
        if flight is None or self.chance(self.trouble.ack_late):
            return
        if flight.refused:
            copy.flight = None
            self._tell(copy, Refused, offer=flight.offer)
        elif flight.seq is not None and copy.fleet.seq >= flight.seq:
            copy.flight = None
            self._tell(copy, Acked, sent_mono=flight.sent_mono, seq=flight.seq)

    def _tell(self, copy: Copy, kind: type[Event], **fields: Any) -> list[Effect]:
        event = kind(now=EPOCH + self.time, mono=self.time * copy.clock, **fields)
        copy.state, effects = copy.machine.handle(copy.state, copy.fleet, event)
        for effect in effects:
            if isinstance(effect, SendEcho):
                self._echo(copy, effect)
        return effects

    def _echo(self, copy: Copy, effect: SendEcho) -> None:
        """What an echo grants, it may grant at any later time: the lease counts from the beat."""
        for line in effect.echo.lines:
            if line.node == DOUBTFUL:
                lease = self.sent[line.n] + POLICY.fence_after_s + POLICY.kill_s
                self.leases_to = max(self.leases_to, lease / self.trouble.agent_clock)
                self.story.append(
                    f"{self.time:.1f} copy {copy.number} echoes {line.n}, folded {copy.fleet.seq}"
                )

    def _check(self) -> None:
        if self.fenced is not None and self.leases_to > self.fenced:
            raise LeaseOutlivesFence(self.leases_to, self.fenced, self.story)
