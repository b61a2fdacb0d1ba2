"""The whole of one space: ledger, hosts, what is under way; its moves, and what must never be.

Values of the rack come to an agent late, twice and in any order: it may be told at any time what
the fleet was at any entry. A status that admits a session may be read late too, as long as the
session has never been admitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rackwright.agent.records import WorkerState
from rackwright.core import projection
from rackwright.core.jobs import WoundKind
from rackwright.core.legality import illegal
from rackwright.wire.entries.slice import NodeSwap, SliceRestarted, SliceSwapped
from rackwright.wire.ids import WorkerId
from rackwright.wire.message import Entry
from rackwright.wire.reasons import Reason, Rung, RungTaken
from tests.simulation.fencing.hosts import LIVES, Host, Hosts
from tests.simulation.fencing.ledger import BAD, GOOD, JOB, ROOT, Ledger
from tests.simulation.fencing.monitors import Monitors
from tests.simulation.fencing.sizes import Size

TAKEN = (RungTaken(rung=Rung.SPARE, taken=True, reason=Reason(code="model")),)


class Spot(NamedTuple):
    """One state of the space.

    `at`: the ledger; `ages`: ticks since each entry of it, as far as it matters; hosts by number;
    `ended`: workers of whose end a node has told; `joins`: statuses of sessions that were never
    admitted, and how many entries there were when they were said; `echo`: session and age of the
    heartbeat of a late echo.
    """

    at: int
    ages: tuple[int, ...]
    bad: int
    good: int
    ended: frozenset[WorkerId]
    joins: tuple[tuple[int, int], ...]
    echo: tuple[str, int] | None


Move = tuple[str, Spot]


class World:
    """Makes moves. Everything that is asked of a machine is asked once."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.ledger = Ledger(size)
        self.hosts = Hosts(size)
        self.monitors = Monitors(self.ledger)
        self._old = size.remembered
        self._values: dict[tuple[int, frozenset[WorkerId]], int] = {}
        self._entries: dict[tuple[object, ...], list[tuple[str, int]]] = {}
        self._over: dict[tuple[int, str], bool] = {}

    def start(self) -> Spot:
        """The worker runs on the bad node, with a whole lease; the good one is free."""
        fleet = self.ledger.fleets[ROOT]
        value = self._value(ROOT, frozenset())
        made = []
        for name in (BAD, GOOD):
            worker = fleet.jobs[JOB].worker(0)
            running = ((str(worker), WorkerState.RUNNING, LIVES),) if name == BAD else ()
            made.append(
                self.hosts.number(
                    Host(
                        name=name,
                        agent=True,
                        session=str(fleet.node(name).session),
                        sessions=0,
                        boot=0,
                        lease=self.size.lease,
                        granted=True,
                        seen=fleet.seq,
                        value=value,
                        told=frozenset(),
                        said=frozenset(),
                        spent=frozenset(),
                        workers=running,
                    )
                )
            )
        return Spot(ROOT, (), made[0], made[1], frozenset(), (), None)

    def harm(self, spot: Spot) -> str:
        """The promise that is broken here, if one is."""
        bad, good = self.hosts.all[spot.bad].living, self.hosts.all[spot.good].living
        if len(bad) + len(good) > 1:
            return f"the rank lives twice: {', '.join((*bad, *good))}"
        for worker in (*bad, *good):
            if self._is_over(spot.at, worker):
                return f"{worker} is recorded as ended and lives"
        return ""

    def _is_over(self, at: int, worker: str) -> bool:
        key = (at, worker)
        if key not in self._over:
            self._over[key] = self.ledger.is_over(at, WorkerId(worker))
        return self._over[key]

    def moves(self, spot: Spot) -> Iterator[Move]:
        """Everything that may happen next."""
        yield from self._time(spot)
        yield from self._told(spot)
        yield from self._workers(spot)
        yield from self._agent(spot)
        yield from self._appended(spot)

    # Time and leases

    def _time(self, spot: Spot) -> Iterator[Move]:
        if self.hosts.may_tick(spot.bad):
            ages = tuple(min(age + 1, self._old) for age in spot.ages)
            echo = spot.echo
            if echo is not None:
                echo = (echo[0], echo[1] + 1) if echo[1] < self.size.lease + 1 else None
            yield (
                "a tick",
                self._after(spot, bad=self.hosts.step(spot.bad, "tick"), ages=ages, echo=echo),
            )
        host = self.hosts.all[spot.bad]
        if not host.agent:
            return
        lease_s = self._granted(spot, host.session)
        if lease_s is not None:
            yield "an echo", self._after(spot, bad=self.hosts.step(spot.bad, "echo", lease_s))
            if self.size.late_echoes:
                yield "an echo is sent", self._after(spot, echo=(host.session, 0))
        if spot.echo is not None:
            told = (*spot.echo, self.size.policy.fence_after_s)
            bad = self.hosts.step(spot.bad, "late echo", told)
            yield "an echo comes late", self._after(spot, bad=bad)

    def _granted(self, spot: Spot, session: str) -> float | None:
        """The lease that some monitor grants to this session now."""
        chain = self.ledger.chains[spot.at]
        proved = 0  # ticks since the next entry was appended; at the end of the ledger: now
        for at, age in zip(reversed(chain), (*reversed(spot.ages), self._old), strict=True):
            lease_s = self.monitors.echo(at, proved, session)
            if lease_s is not None:
                return lease_s
            proved = age
        return None

    # What agents are told

    def _value(self, at: int, ended: frozenset[WorkerId]) -> int:
        key = (at, ended)
        if key not in self._values:
            fleet = self.ledger.fleets[at]
            value = projection.assignments(fleet, 0, ended)
            self._values[key] = self.hosts.values.add(value, projection.job_value(fleet, JOB))
        return self._values[key]

    def _told(self, spot: Spot) -> Iterator[Move]:
        for at in self.ledger.chains[spot.at]:
            waited = frozenset(one for one in spot.ended if one in self.ledger.fleets[at].leaving)
            value = self._value(at, waited)
            for field, host in (("bad", spot.bad), ("good", spot.good)):
                after = self.hosts.step(host, "value", value)
                if after != host:
                    seq = self.ledger.fleets[at].seq
                    yield f"{field} node is told what held at {seq}", self._set(spot, field, after)

    # Processes

    def _workers(self, spot: Spot) -> Iterator[Move]:
        for field, number in (("bad", spot.bad), ("good", spot.good)):
            host = self.hosts.all[number]
            for worker, state, how in host.workers:
                if state is not WorkerState.RUNNING:
                    continue
                if how != LIVES:
                    after = self.hosts.step(number, "dies", worker)
                    yield f"{worker} dies on the {field} node", self._set(spot, field, after)
                elif len(spot.ended) < self.size.exits:
                    after = self.hosts.step(number, "exits", worker)
                    yield f"{worker} exits on the {field} node", self._set(spot, field, after)

    def _agent(self, spot: Spot) -> Iterator[Move]:
        size, host = self.size, self.hosts.all[spot.bad]
        step = self.hosts.step
        if host.agent:
            if host.sessions < size.crashes + size.reboots + size.renewals:
                renewed = step(spot.bad, "renews")
                if renewed != spot.bad:
                    yield "the bad node takes a new session", self._set(spot, "bad", renewed)
            if host.sessions - host.boot < size.crashes:
                yield "the agent crashes", self._set(spot, "bad", step(spot.bad, "agent crashes"))
        else:
            started = self._set(spot, "bad", step(spot.bad, "agent starts"))
            yield "an agent starts", started
        if host.boot < size.reboots:
            yield "the bad node reboots", self._set(spot, "bad", step(spot.bad, "reboots"))

    # The ledger

    def _appended(self, spot: Spot) -> Iterator[Move]:
        said = (self.hosts.status(spot.bad), self.hosts.status(spot.good))
        asked = (spot.at, self._waited(spot), *said, spot.joins)
        found = self._entries.get(asked)
        if found is None:
            found = self._entries[asked] = list(self._offered(*asked))
        for what, after in found:
            yield what, self._after(spot, at=after, ages=(*spot.ages, 0))

    def _waited(self, spot: Spot) -> int:
        """Ticks since the suspicion that stands at the end of the ledger was appended."""
        suspected = self.ledger.node(spot.at).suspected
        chain = self.ledger.chains[spot.at][1:]
        for at, age in zip(chain, spot.ages, strict=True):
            if suspected and self.ledger.fleets[at].seq == suspected:
                return age
        return self._old

    def _offered(
        self,
        at: int,
        waited: int,
        bad: int | None,
        good: int | None,
        joins: tuple[tuple[int, int], ...],
    ) -> Iterator[tuple[str, int]]:
        """Entries that somebody may append there, with what the ledger is then."""
        offers = [
            *self._decisions(at),
            *(
                entry
                for seen in self._places(at)
                for entry in self._observations(at, seen, waited, bad, good, joins)
                if entry is not None
            ),
        ]
        for after in dict.fromkeys(self.ledger.append(at, entry) for entry in offers):
            if after != at:
                seq = self.ledger.fleets[after].seq
                yield f"{self.ledger.types[after]} at {seq}", after

    def _places(self, at: int) -> Iterator[int]:
        """Where an observer may be: at the end, or before an entry about the bad node."""
        chain = self.ledger.chains[at]
        for here, following in pairwise(chain):
            if self.ledger.node(here).last != self.ledger.node(following).last:
                yield here
        yield at

    def _observations(
        self,
        at: int,
        seen: int,
        waited: int,
        bad: int | None,
        good: int | None,
        joins: tuple[tuple[int, int], ...],
    ) -> Iterator[Entry | None]:
        size, counts, monitors = self.size, self.ledger.counts[at], self.monitors
        node = self.ledger.node(seen)
        if counts["node.suspected"] < size.suspicions:
            yield monitors.suspected(seen)
        if node.suspected:
            current = node.suspected == self.ledger.node(at).suspected
            yield monitors.failed(seen, waited if current else self._old)
            yield monitors.cleared(seen)
        if counts["node.unfit"] < size.unfit:
            yield monitors.unfit(seen, BAD)
            yield monitors.unfit(seen, GOOD)
        if counts["node.recovered"] < size.unfit + size.suspicions:
            yield monitors.recovered(seen, BAD)
            yield monitors.recovered(seen, GOOD)
        for number, said in joins:
            yield monitors.joined(seen, self.hosts.statuses[number], said)
        if bad is not None:
            depth = len(self.ledger.chains[at]) - 1  # it may be said again at any time
            yield monitors.joined(seen, self.hosts.statuses[bad], depth)
        for said_by in (bad, good):
            if said_by is not None:
                yield monitors.cleaned(seen, self.hosts.statuses[said_by])

    def _decisions(self, at: int) -> Iterator[Entry]:
        """What the spare-manager may decide at the ledger's end, whatever it would prefer."""
        fleet, counts = self.ledger.fleets[at], self.ledger.counts[at]
        job = fleet.jobs[JOB]
        place = job.slices[0].nodes[0]
        swap = SliceSwapped(
            job=JOB,
            membership=job.membership + 1,
            index=0,
            swaps=(NodeSwap(rank=0, old=place, new=1 - place),),
            rungs=TAKEN,
        )
        anew = SliceRestarted(
            job=JOB,
            membership=job.membership + 1,
            index=0,
            ranks=(0,),
            charge=False,
            rungs=TAKEN,
        )
        process = any(wound.kind is WoundKind.PROCESS for wound in job.wounds)
        if counts["slice.swapped"] < self.size.swaps and illegal(fleet, swap) is None:
            yield swap
        may_restart = process and counts["slice.restarted"] < self.size.restarts
        if may_restart and illegal(fleet, anew) is None:
            yield anew

    # Putting a state together

    def _set(self, spot: Spot, field: str, number: int) -> Spot:
        return self._after(spot, bad=number) if field == "bad" else self._after(spot, good=number)

    def _after(self, spot: Spot, **changes: object) -> Spot:
        """The next state, with what makes no difference left out."""
        after = spot._replace(**changes)  # type: ignore[arg-type]
        ended = after.ended
        if after.bad != spot.bad:
            ended |= self.hosts.ended(after.bad)
            after = after._replace(joins=self._joins(spot, after))
        if after.good != spot.good:
            ended |= self.hosts.ended(after.good)
        admitted = self.ledger.node(after.at).session
        joins = tuple(one for one in after.joins if self._session(one) != admitted)
        return after._replace(ended=ended, joins=joins, ages=self._ages(after))

    def _session(self, join: tuple[int, int]) -> str:
        return self.hosts.statuses[join[0]].session

    def _joins(self, before: Spot, after: Spot) -> tuple[tuple[int, int], ...]:
        """A session that begins says so once; that may be read until another one is admitted."""
        old, new = self.hosts.all[before.bad], self.hosts.all[after.bad]
        said = self.hosts.status(after.bad)
        if new.session == old.session or said is None:
            return after.joins
        return (*after.joins, (said, len(self.ledger.chains[after.at]) - 1))

    def _ages(self, spot: Spot) -> tuple[int, ...]:
        suspected = self.ledger.node(spot.at).suspected
        made = []
        for at, age in zip(self.ledger.chains[spot.at][1:], spot.ages, strict=True):
            if self.ledger.fleets[at].seq == suspected:
                made.append(age)
            elif self.ledger.moves_lease(at):
                made.append(min(age, self.size.fresh))
            else:
                made.append(self._old)
        return tuple(made)
