"""The second tier of leases: whose word that the bus is away keeps a node's work alive, and what a
monitor must know of them before it takes a silent node for dead.

A node cut off from the bus asks its witnesses; each word of more than half of them that the bus is
away carries its lease on by one step. Each witness promises in its heartbeats for how long it will
say no such thing. At least half of the witnesses bound by their promises throughout one step leave
no majority to anybody: the lease has ended. The argument and its limits are ADR 12.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rackwright.core.fleet import Fleet
from rackwright.core.policy.leases import DRIFT, declare_after
from rackwright.core.racks import Rack
from rackwright.wire.ids import NodeId
from rackwright.wire.nodes import Witnesses
from rackwright.wire.policy import Policy

IN_RACK, ELSEWHERE = 2, 3  # so no rack by itself is a majority, and neither is all outside less one
MARKS = 64
SECOND_TIER = 2  # the fold version that brought it


def second_tier(policy: Policy) -> bool:
    """Does this policy give nodes a second tier?

    A promise lasts half a lease. It must outlive the way to the monitor: two heartbeats, and the
    age of the ledger sequence by which a heartbeat is dated. With shorter leases nothing would
    ever be confirmed, and every silent node waited for as long as a bus outage.
    """
    room = policy.fence_after_s / 2 > 2 * policy.heartbeat_s + policy.fresh_s
    return room and policy.alone_s > policy.fence_after_s


def choose(fleet: Fleet, name: NodeId) -> Witnesses | None:
    """The witnesses of a session that begins now: two of the rack and one each of three others,
    spread over the cell; fewer racks give more of each. None without a second tier.

    The same fleet gives the same nodes. Each node is a witness of about five others.
    """
    if not second_tier(fleet.policy):
        return None
    place = fleet.places[name]
    own = [one for one in _ring(fleet.racks[place.rack], place.node) if one != name]
    nodes = own[:IN_RACK]
    nodes += _elsewhere(fleet, place.rack, place.node)
    if not nodes:
        return None
    policy = fleet.policy
    return Witnesses(nodes=tuple(nodes), step_s=policy.fence_after_s, alone_s=policy.alone_s)


def _ring(rack: Rack, place: int) -> Iterator[NodeId]:
    """The nodes behind a place and round to it, without those that have failed."""
    many = len(rack.nodes)
    for step in range(1, many + 1):
        node = rack.nodes[(place + step) % many]
        if not node.failed:
            yield node.name


def _elsewhere(fleet: Fleet, own: int, place: int) -> list[NodeId]:
    many = len(fleet.racks)
    stride = max(1, many // (ELSEWHERE + 1))
    spread = [(own + step * stride) % many for step in range(1, ELSEWHERE + 1)]
    next_ones = [(own + step) % many for step in range(1, min(many, 3 * ELSEWHERE + 1))]
    order = [number for number in dict.fromkeys((*spread, *next_ones)) if number != own]
    rings = [list(_ring(fleet.racks[number], place)) for number in order[: 2 * ELSEWHERE]]
    found: list[NodeId] = []
    for turn in range(ELSEWHERE):
        found += [ring[turn] for ring in rings if turn < len(ring)]
    return found[:ELSEWHERE]


def majority(many: int) -> int:
    """The least number of witnesses that is more than half of them."""
    return many // 2 + 1


def half(many: int) -> int:
    """The least number of witnesses that is at least half: with a majority it has one in common."""
    return (many + 1) // 2


def declare_alone_after(policy: Policy, terms: Witnesses) -> float:
    """W2: seconds from the folding of `node.suspected` until the lease must have ended, whatever
    witnesses said. Source: protocol F15, 1.05 (F2 + R + K)."""
    return max(declare_after(policy), DRIFT * (terms.alone_s + policy.fresh_s + policy.kill_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """From `since` until `until` (`mono`) a witness was bound by its promises, without a gap."""

    since: float
    until: float


def covered(
    cover: Cover | None, mono: float, sent_after: float, steady_s: float, policy: Policy
) -> Cover:
    """A heartbeat with a promise of `steady_s` came at `mono`, sent no earlier than `sent_after`.

    It may have been under way for any time, so the promise is counted from the earliest sending
    and binds from the latest. No longer one is believed than a lease of now would give.
    """
    until = sent_after + min(steady_s, policy.fence_after_s / 2) / DRIFT
    if cover is None or mono > cover.until:
        return Cover(since=mono, until=until)
    return Cover(since=cover.since, until=max(cover.until, until))


def confirmed(
    terms: Witnesses, covers: Iterable[Cover | None], policy: Policy, mono: float
) -> bool:
    """Can no majority of the witnesses have carried the lease on, so that its workers are dead now?

    At least half of them were bound throughout one step that was over a kill ago. That the lease by
    echo has ended is asked besides (`declare_after`).
    """
    over = mono - DRIFT * policy.kill_s
    began = over - DRIFT * terms.step_s
    bound = sum(1 for one in covers if one is not None and one.since <= began and one.until >= over)
    return bound >= half(len(terms.nodes))


@dataclass(frozen=True, slots=True)
class Marks:
    """When this process sent its newest appends (`mono`), by the sequence each has in the ledger:
    whoever knows of one was told after it was sent. The oldest first."""

    sent: tuple[tuple[int, float], ...] = ()

    def acked(self, seq: int, sent_mono: float) -> "Marks":
        """An append sent then is in the ledger."""
        if self.sent and seq <= self.sent[-1][0]:
            return self
        return Marks((*self.sent[-(MARKS - 1) :], (seq, sent_mono)))

    def after(self, head: int) -> float | None:
        """The latest time before which nobody can have said that he knew of `head`."""
        for seq, sent in reversed(self.sent):
            if seq <= head:
                return sent
        return None
