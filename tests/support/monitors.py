"""One or more health-monitors on a ledger in memory, in virtual time, for tests of their minds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rackwright.core.fleet import Fleet
from rackwright.core.fold import fold
from rackwright.core.invariants import check
from rackwright.core.machine import (
    Acked,
    Copies,
    Effect,
    Event,
    Folded,
    Heard,
    Note,
    Observed,
    Offer,
    SendEcho,
    StatusSeen,
    Tally,
    Turn,
    WakeAt,
    Wished,
)
from rackwright.core.racks import Node
from rackwright.health_monitor.machine import HealthMonitor
from rackwright.health_monitor.state import State
from rackwright.wire.codec import decode_commit, seal
from rackwright.wire.ids import CellName, MessageId, NodeId, Owner, RackId, SessionId
from rackwright.wire.message import Body, Commit, Entry
from rackwright.wire.nodes import Hardware
from rackwright.wire.signals import Fault, NodeStatus, SignalKind
from tests.support.fleets import EPOCH, LEDGER, Cell

LAST_HEARD = 104.0  # of those that stop beating, in the stories below
SUSPECTED = 110.0
W = 36.75  # 1.05 (30 + 3 + 2)


@dataclass(slots=True, kw_only=True)
class Bench:
    """One ledger and one copy. `mono` is its time; ledger time is EPOCH + `mono`.

    `said` holds all effects but wakes and tallies, in order; `tallied` counts reports; `entries`
    all that was committed, by it or not.
    """

    cell: Cell
    mono: float = 100.0
    machine: HealthMonitor = field(default_factory=HealthMonitor)
    state: State = field(default_factory=lambda: State(copy=0))
    said: list[Effect] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    voids: list[str] = field(default_factory=list)
    tallied: Counter[str] = field(default_factory=Counter)
    wake: float | None = None
    wishes: int = 0
    beats: int = 0

    @property
    def fleet(self) -> Fleet:
        """The fleet at the ledger's end."""
        return self.cell.fleet

    @property
    def now(self) -> float:
        """Ledger time."""
        return EPOCH + self.mono

    def node(self, name: str) -> Node:
        """A node as the fleet has it."""
        return self.fleet.node(NodeId(name))

    # Events

    def tell(self, event: Event) -> list[Effect]:
        """Hand over one event; returns its effects without wakes."""
        self.state, effects = self.machine.handle(self.state, self.fleet, event)
        for effect in effects:
            if isinstance(effect, WakeAt):
                self.wake = effect.mono if self.wake is None else min(self.wake, effect.mono)
            if isinstance(effect, Tally):
                self.tallied[effect.kind] += effect.by
        kept: list[Effect] = [one for one in effects if not isinstance(one, WakeAt | Tally)]
        self.said += kept
        return kept

    def make(self, kind: type[Event], **fields: Any) -> Event:
        """An event at this time."""
        return kind(now=self.now, mono=self.mono, **fields)

    def copies(self, present: int, ordinal: int) -> list[Effect]:
        """So many copies are there."""
        return self.tell(self.make(Copies, present=present, ordinal=ordinal))

    def hear(self, *names: str, session: str | None = None) -> list[Effect]:
        """Heartbeats of these nodes, of their sessions in the fleet unless another is given."""
        effects: list[Effect] = []
        for name in names:
            self.beats += 1
            node = self.node(name)
            effects += self.tell(
                self.make(
                    Heard,
                    node=node.name,
                    rack=RackId(name.partition("-")[0]),
                    session=SessionId(session or node.session or "none"),
                    n=self.beats,
                )
            )
        return effects

    def make_heard(self, name: str, rack: str) -> Event:
        """A heartbeat that claims to be of this node in this rack."""
        ids = {"node": NodeId(name), "rack": RackId(rack), "session": SessionId("s")}
        return self.make(Heard, n=1, **ids)

    def fault(self, name: str, at: float | None = None, **fields: Any) -> list[Effect]:
        """A fault of a node, stored at ledger time `at` (now)."""
        return self.tell(
            self.make(
                Observed,
                id=MessageId(f"fault-{name}"),
                at=self.now if at is None else at,
                fault=a_fault(name, self._session(name), **fields),
            )
        )

    def _session(self, name: str) -> str:
        known = name in self.fleet.places
        return (self.node(name).session if known else None) or "none"

    def status(self, name: str, session: str | None = None, **more: Any) -> list[Effect]:
        """The last value of a node, of its session in the fleet unless another is given."""
        return self.tell(self.make_status(name, session=session, **more))

    def make_status(
        self,
        name: str,
        *,
        session: str | None = None,
        rack: str | None = None,
        boot: str = "boot",
        gpus: int = 4,
        port: int = 0,
        **more: Any,
    ) -> Event:
        """A status event."""
        body = NodeStatus(
            node=NodeId(name),
            rack=RackId(rack or name.partition("-")[0]),
            session=SessionId(session or self._session(name)),
            boot=boot,
            hardware=Hardware(serial=f"sn-{name}", gpus=gpus, gpu_model="gb200", port=port),
            **({"n": 0} | more),
        )
        return self.make(StatusSeen, id=MessageId(f"status-{name}"), at=self.now, status=body)

    def wish(self, wish: Body, owner: str = "ops", seq: int | None = None) -> int:
        """A wish; returns its sequence."""
        self.wishes = self.wishes + 1 if seq is None else seq
        self.tell(
            self.make(
                Wished,
                seq=self.wishes,
                id=MessageId(f"wish-{self.wishes}"),
                owner=Owner(owner),
                at=self.now,
                wish=wish,
            )
        )
        return self.wishes

    # Turns and the ledger

    def turn(self) -> list[Effect]:
        """Its turn; what it offers is not committed yet."""
        self.wake = None
        return self.tell(self.make(Turn))

    def commit(self, offer: Offer, *, mine: bool = True, source: str = "test/0") -> bool:
        """Fold an offer at this time and tell the machine; says whether it was in force."""
        fleet, kind = self.fleet, type(offer.entries[0])
        commit: Commit[Any] = Commit(
            id=MessageId(f"c{fleet.seq + 1}"),
            type=kind.TYPE,
            v=1,
            at=self.now,
            source="health-monitor/0" if mine else source,
            cell=CellName("cell"),
            ledger=LEDGER,
            prev=fleet.last_id if offer.compare else None,
            wishes_to=offer.wishes_to,
            entries=offer.entries,
        )
        assert decode_commit(kind.TYPE, seal(commit)) == commit, "what is offered can be written"
        folding = fold(fleet, fleet.seq + 1, self.now, commit)
        self.cell.fleet = folding.fleet
        check(folding.fleet)
        if folding.void:
            self.voids.append(folding.why)
        else:
            self.entries += offer.entries
        self.tell(
            self.make(
                Folded,
                seq=self.fleet.seq,
                source=commit.source,
                type=commit.type,
                entries=offer.entries,
                void=folding.void,
                why=folding.why,
            )
        )
        if mine:
            self.tell(self.make(Acked, sent_mono=self.mono, seq=self.fleet.seq))
        return not folding.void

    def others(self, *entries: Entry) -> None:
        """Somebody else's commit."""
        assert self.commit(Offer(entries=entries), mine=False), self.voids

    def settle(self) -> list[Entry]:
        """Turns and commits until nothing is offered; returns what was committed but ticks."""
        begin = len(self.entries)
        for _ in range(1_000):
            offers = [effect for effect in self.turn() if isinstance(effect, Offer)]
            assert len(offers) <= 1
            if not offers:
                return [entry for entry in self.entries[begin:] if entry.TYPE != "ledger.ticked"]
            self.commit(offers[0])
        raise AssertionError("it never comes to rest")

    def until(
        self, mono: float, *, beating: Iterable[str] = (), every: float | None = None
    ) -> list[Entry]:
        """Let time pass to `mono`, with turns when it asked for them and heartbeats of `beating`.

        Returns what was committed but ticks.
        """
        names = tuple(beating)
        step = every or self.fleet.policy.heartbeat_s
        begin = len(self.entries)
        next_beat = self.mono + step if names else float("inf")
        while self.mono < mono:
            due = next_beat if self.wake is None else min(self.wake, next_beat)
            self.mono = min(mono, max(due, self.mono))
            if self.mono >= next_beat:
                self.hear(*names)
                next_beat += step
            self.settle()
        return [entry for entry in self.entries[begin:] if entry.TYPE != "ledger.ticked"]

    # What it said

    def notes(self) -> list[str]:
        """Names of all notes so far."""
        return [effect.event for effect in self.said if isinstance(effect, Note)]

    def noted(self) -> list[tuple[str, dict[str, object]]]:
        """All notes so far, with what they say."""
        return [
            (effect.event, dict(effect.fields)) for effect in self.said if isinstance(effect, Note)
        ]

    def echoed(self) -> list[tuple[str, int]]:
        """Node and n of all echo lines so far."""
        echoes = [effect.echo for effect in self.said if isinstance(effect, SendEcho)]
        return [(line.node, line.n) for echo in echoes for line in echo.lines]

    def types(self, begin: int = 0) -> list[str]:
        """Types of the commits' entries from there on, without ticks."""
        return [one.TYPE for one in self.entries[begin:] if one.TYPE != "ledger.ticked"]


def a_fault(name: str, session: str, **fields: Any) -> Fault:
    """A fault of a node; an Xid unless another kind is given."""
    given = {"kind": SignalKind.XID} | fields
    rack = RackId(name.partition("-")[0])
    return Fault(node=NodeId(name), rack=rack, session=SessionId(session), **given)


def bench(cell: Cell, **more: Any) -> Bench:
    """A copy that has started on this cell and had its first turn."""
    made = Bench(cell=cell, **more)
    made.settle()
    made.said.clear()
    made.entries.clear()
    return made


def every(b: Bench, *but: str) -> list[str]:
    names = [node.name for rack in b.fleet.racks.values() for node in rack.nodes]
    return [name for name in names if name not in but]


def silence(b: Bench, *names: str) -> list[str]:
    """All beat until LAST_HEARD; from then on `names` do not. Returns the others."""
    b.until(LAST_HEARD, beating=every(b))
    return every(b, *names)
