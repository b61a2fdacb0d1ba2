"""The second tier of leases: a node, its witnesses and a monitor, each thing late, or never.

One node works on a lease; its witnesses say whether they have the bus; a monitor suspects the node
and declares it dead. The node's lease is counted by the real `Hold` and `Alone`, a witness's word
and promise by its own `Hold`, echoes by the real freshness; the promises are put together and the
node is condemned by the health-monitor's own functions. Any echo and heartbeat may be missing at
any time, for anybody: outages of the bus, partitions of every shape and lone nodes are among it. A
word that may be said is said and heard at once: a longer lease lets the work live longer and
nothing else, so a word that is missing can break nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from rackwright.agent.alone import Alone
from rackwright.agent.hold import NS, Hold
from rackwright.core.fleet import Fleet
from rackwright.core.machine import Heard
from rackwright.core.policy.leases import DRIFT, Freshness
from rackwright.core.policy.witnesses import (
    Cover,
    Marks,
    declare_alone_after,
)
from rackwright.health_monitor import promises, silence
from rackwright.health_monitor.state import State, Suspicion
from rackwright.wire.ids import RackId, SessionId
from rackwright.wire.nodes import Witnesses
from rackwright.wire.policy import Policy
from tests.support.fleets import EPOCH, cell, node_name

NOW = 1000  # ticks of every clock at every step: a state holds what is left, or how long ago
LIVES, DEAD = -1, -2  # of the work; from 0 on: ticks since it was killed
NEVER = -9
BAD = node_name("r0", 0)
SESSION = SessionId("s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AloneSize:
    """One space, times in ticks. `late`: heartbeats of witnesses are under way for some ticks.

    `restarts`: monitors that begin anew; `crashes`: agents of witnesses that do, and of the node.
    `cut`: a smaller space, in which the node has just been suspected and gets no echo any more.
    """

    name: str
    witnesses: int = 2
    lease: int = 4
    fresh: int = 1
    kill: int = 1
    alone: int = 6
    late: int = 0
    restarts: int = 0
    crashes: int = 0
    cut: bool = False

    @property
    def policy(self) -> Policy:
        """The settings of the cell that is explored."""
        return Policy(
            heartbeat_s=0.25,
            suspect_after_s=1.0,
            fence_after_s=float(self.lease),
            fresh_s=float(self.fresh),
            kill_s=float(self.kill),
            alone_s=float(self.alone),
        )


class Witness(NamedTuple):
    """`steady`: ticks left of its promise, -1 when it says that the bus is away, NEVER: it has not
    been echoed since it began. `told`: ticks since a question that it answered so. `sent`: promise
    and age of a heartbeat under way. `since`, `until`: its cover at the monitor, ago and ahead."""

    steady: int
    told: int = NEVER
    sent: tuple[int, int] | None = None
    since: int = NEVER
    until: float = 0.0


class Spot(NamedTuple):
    """`lease`: ticks left on disk; `echoed`: ticks since the newest echoed heartbeat was sent.

    `suspected`: ticks since the entry; `waited`: since the monitor folded it (or began anew).
    """

    lease: int
    echoed: int
    work: int
    agent: bool
    witnesses: tuple[Witness, ...]
    suspected: int = NEVER
    waited: int = NEVER
    restarts: int = 0
    crashes: int = 0
    declared: bool = False


Move = tuple[str, Spot]


class AloneWorld:
    """Makes moves. What is asked of real code is asked once."""

    def __init__(self, size: AloneSize) -> None:
        self.size = size
        self.policy = size.policy
        names = tuple(node_name("r1", place) for place in range(size.witnesses))
        self.terms = Witnesses(nodes=names, step_s=float(size.lease), alone_s=float(size.alone))
        self.fleet = self._fleet()
        self._condemned: dict[tuple[int, tuple[tuple[int, float], ...]], bool] = {}
        self._covers: dict[tuple[int, float, int, int], tuple[int, float]] = {}
        self._echoed: dict[tuple[int, int], int] = {}
        self._carried: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._steady: dict[int, int] = {}
        self._fresh: dict[int, bool] = {}
        self._waits = ceil(declare_alone_after(self.policy, self.terms)) + 1
        self._window = ceil(DRIFT * (size.kill + size.lease)) + 1

    def _fleet(self) -> Fleet:
        made = cell(racks=2, nodes=max(2, self.size.witnesses), policy=self.policy)
        made.join(BAD, witnesses=self.terms)
        made.suspect(BAD)
        return made.fleet

    def start(self) -> Spot:
        """Everybody has been echoed just now."""
        every = Witness(steady=self._echo_steady(NEVER))
        now = 0 if self.size.cut else NEVER
        witnesses = (every,) * self.size.witnesses
        return Spot(self.size.lease, 0, LIVES, True, witnesses, suspected=now, waited=now)

    def harm(self, spot: Spot) -> str:
        """The promise that is broken here, if it is."""
        lives = spot.work != DEAD
        return "it is declared dead, and its work lives" if spot.declared and lives else ""

    def moves(self, spot: Spot) -> Iterator[Move]:
        """Everything that may happen next; nothing matters once it is dead, or declared so."""
        if spot.work == DEAD or spot.declared:
            return
        yield from self._node(spot)
        yield from self._monitor(spot)
        seen: set[Witness] = set()
        for index, witness in enumerate(spot.witnesses):
            if witness in seen:  # they are alike: it makes no difference which one it is
                continue
            seen.add(witness)
            for what, after in self._witness(spot, witness):
                others = [*spot.witnesses[:index], after, *spot.witnesses[index + 1 :]]
                yield what, spot._replace(witnesses=tuple(sorted(others, key=_order)))
            if spot.crashes < self.size.crashes:
                anew = witness._replace(steady=NEVER)
                others = [*spot.witnesses[:index], anew, *spot.witnesses[index + 1 :]]
                yield (
                    "the agent of a witness begins anew",
                    spot._replace(
                        witnesses=tuple(sorted(others, key=_order)), crashes=spot.crashes + 1
                    ),
                )

    # The node

    def _node(self, spot: Spot) -> Iterator[Move]:
        if spot.work < self.size.kill - 1:
            yield "a tick", self._tick(spot)
        if spot.work >= 0:
            yield "its work is gone", spot._replace(work=DEAD)
        if not spot.agent:
            return
        recalled = spot.suspected != NEVER and not self._may_echo(spot.suspected)
        if not self.size.cut and not recalled:
            lease = self._echo(spot.lease, spot.echoed)
            yield "an echo", self._carried_on(spot._replace(lease=lease, echoed=0))
        if spot.crashes < self.size.crashes:
            yield "its agent crashes", spot._replace(agent=False, crashes=spot.crashes + 1)

    def _hold(self, lease: int, echoed: int) -> Hold:
        return Hold(session=SESSION, until_ns=(NOW + lease) * NS, echoed_ns=(NOW - echoed) * NS)

    def _echo(self, lease: int, echoed: int) -> int:
        if (lease, echoed) not in self._echoed:
            hold = self._hold(lease, echoed)
            hold.echoed(SESSION, hold.sending(NOW * NS), self.policy.fence_after_s, 0)
            self._echoed[lease, echoed] = hold.until_ns // NS - NOW
        return self._echoed[lease, echoed]

    def _carried_on(self, spot: Spot) -> Spot:
        """With what the words of its witnesses make of its lease."""
        if not spot.agent or spot.work != LIVES:
            return spot
        told = tuple(one.told for one in spot.witnesses)
        return spot._replace(lease=self._carry(spot.lease, spot.echoed, told))

    def _carry(self, lease: int, echoed: int, told: tuple[int, ...]) -> int:
        key = (lease, echoed, tuple(sorted(told)))
        if key not in self._carried:
            hold, alone = self._hold(lease, echoed), Alone(terms=self.terms)
            for name, age in zip(self.terms.nodes, told, strict=True):
                if age != NEVER:
                    alone.away[name] = (NOW - age) * NS
            hold.carried(alone.until(hold))
            self._carried[key] = hold.until_ns // NS - NOW
        return self._carried[key]

    def _may_echo(self, suspected: int) -> bool:
        if suspected not in self._fresh:
            proved = Freshness().acked(float(NOW - suspected))
            self._fresh[suspected] = proved.holds(self.policy, float(NOW))
        return self._fresh[suspected]

    def _tick(self, spot: Spot) -> Spot:
        lease = max(0, spot.lease - 1)
        work = spot.work
        if work >= 0:
            work += 1
        elif lease == 0:
            work = 0  # its supervisor kills it
        after = spot._replace(
            lease=lease,
            echoed=min(spot.echoed + 1, self.size.alone),
            work=work,
            witnesses=tuple(sorted(map(self._aged, spot.witnesses), key=_order)),
            suspected=_older(spot.suspected, self.size.fresh),
            waited=_older(spot.waited, self._waits),
        )
        return self._carried_on(after)

    # Witnesses

    def _aged(self, one: Witness) -> Witness:
        sent = one.sent
        if sent is not None:
            sent = (sent[0], sent[1] + 1) if sent[1] < self.size.late else None
        since, until = one.since, one.until
        if since != NEVER:
            since, until = min(since + 1, self._window), round(until - 1, 3)
            if until < -DRIFT * self.size.kill - 1:
                since, until = NEVER, 0.0
        told = one.told + 1 if one.told != NEVER and one.told < self.size.lease else NEVER
        steady = one.steady if one.steady == NEVER else max(one.steady - 1, -1)
        if self._promise(steady).away(NOW * NS):
            told = 0
        return Witness(steady, told, sent, since, until)

    def _echo_steady(self, steady: int) -> int:
        """What is left of its promise after an echo."""
        if steady not in self._steady:
            hold = self._promise(steady)
            hold.echoed(SESSION, hold.sending(NOW * NS), self.policy.fence_after_s, 0)
            self._steady[steady] = int(hold.steady_s(NOW * NS))
        return self._steady[steady]

    def _promise(self, steady: int) -> Hold:
        if steady == NEVER:
            return Hold(session=SESSION)
        return Hold(session=SESSION, echoed_ns=1, steady_ns=(NOW + steady) * NS)

    def _witness(self, spot: Spot, one: Witness) -> Iterator[tuple[str, Witness]]:
        yield "a witness is echoed", one._replace(steady=self._echo_steady(one.steady))
        steady = int(self._promise(one.steady).steady_s(NOW * NS))
        if spot.waited != NEVER:
            if steady:
                yield "a witness is heard", self._heard(one, steady, 0)
            if one.sent is not None:
                after = self._heard(one, *one.sent)._replace(sent=None)
                yield "a witness is heard late", after
        if self.size.late and steady and one.sent is None:
            yield "a heartbeat of a witness is under way", one._replace(sent=(steady, 0))

    # The monitor

    def _heard(self, one: Witness, steady: int, age: int) -> Witness:
        key = (one.since, one.until, steady, age)
        if key not in self._covers:
            state = State(copy=0, ready=True)
            name = self.terms.nodes[0]
            state.covers[name] = _cover(one.since, one.until)
            state.marks = Marks().acked(1, float(NOW - age))
            heard = Heard(
                now=EPOCH,
                mono=float(NOW),
                node=name,
                rack=RackId("r1"),
                session=SESSION,
                n=1,
                head=1,
                steady_s=float(steady),
            )
            promises.heard(state, self.fleet, heard)
            cover = state.covers[name]
            assert cover is not None
            since = min(round(NOW - cover.since), self._window)
            self._covers[key] = (since, round(cover.until - NOW, 3))
        since, until = self._covers[key]
        return one._replace(since=since, until=until)

    def _monitor(self, spot: Spot) -> Iterator[Move]:
        if spot.suspected == NEVER:
            yield "it is suspected", spot._replace(suspected=0, waited=0)
            return
        if spot.restarts < self.size.restarts:
            blank = (one._replace(since=NEVER, until=0.0) for one in spot.witnesses)
            yield (
                "the monitor begins anew",
                spot._replace(
                    waited=0,
                    witnesses=tuple(sorted(blank, key=_order)),
                    restarts=spot.restarts + 1,
                ),
            )
        if self._is_condemned(spot):
            yield "it is declared dead", spot._replace(declared=True)

    def _is_condemned(self, spot: Spot) -> bool:
        key = (spot.waited, tuple(sorted((one.since, one.until) for one in spot.witnesses)))
        if key not in self._condemned:
            state = State(copy=0, ready=True)
            seq = self.fleet.node(BAD).suspected
            state.suspicions[BAD] = Suspicion(seq=seq, since=float(NOW - spot.waited))
            covers = zip(self.terms.nodes, key[1], strict=True)
            state.covers = {name: _cover(*cover) for name, cover in covers}
            silence.condemn(state, self.fleet, float(NOW))
            self._condemned[key] = BAD in state.condemned
        return self._condemned[key]


def _cover(since: int, until: float) -> Cover | None:
    return None if since == NEVER else Cover(since=float(NOW - since), until=NOW + until)


def _older(age: int, most: int) -> int:
    return age if age == NEVER else min(age + 1, most)


def _order(one: Witness) -> tuple[object, ...]:
    return (one.steady, one.told, one.sent or (-1, -1), one.since, one.until)


# What every run of the tests explores to the end: F2 is long enough for each mutant to do harm.
SMALL = (
    AloneSize(name="two witnesses, cut off", alone=8, cut=True),
    AloneSize(name="one witness, a crash", witnesses=1, alone=8, crashes=1),
    AloneSize(name="one witness, late heartbeats", witnesses=1, alone=8, late=2, cut=True),
    AloneSize(
        name="one witness, a monitor anew", witnesses=1, alone=8, restarts=1, crashes=1, cut=True
    ),
)

# What `make model` explores besides.
LARGE = (
    AloneSize(name="two witnesses", alone=5),
    AloneSize(
        name="one witness, late heartbeats, a crash", witnesses=1, alone=5, late=3, crashes=1
    ),
    AloneSize(name="two witnesses, F2 of two leases", alone=8),
    AloneSize(name="three witnesses, F2 of 6, cut off", witnesses=3, cut=True),
    AloneSize(name="three witnesses, cut off", witnesses=3, alone=8, cut=True),
)
