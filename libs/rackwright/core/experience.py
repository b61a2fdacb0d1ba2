"""What a ledger says about how often nodes and racks fail and how long they are away.

A node is away while it has failed, is unfit for work within a rack, or has no session; what an
operator ordered (cordon, drain) is none of its failures. While its whole rack is away, a node's
own clock stands still: that is the rack's fault and not the node's.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.fleet import Fleet
from rackwright.core.policy.estimates import Estimate, time_away, time_between
from rackwright.core.rackhealth import TAKES_GANGS
from rackwright.core.racks import Node, Rack
from rackwright.wire.nodes import FITNESS_ORDER, RackFitness

DAY = 86_400.0
HOUR = 3_600.0


@dataclass(slots=True)
class Clock:
    """Times up and away of many like things, in seconds, and how often each began."""

    up: float = 0.0
    away: float = 0.0
    faults: int = 0
    repairs: int = 0
    since: dict[str, tuple[bool, float]] = field(default_factory=dict)

    def see(self, name: str, up: bool, at: float) -> None:
        """The thing is up or away from now on."""
        before = self.since.get(name)
        if before is not None:
            was_up, since = before
            self._count(was_up, at - since)
            self.faults += was_up and not up
            self.repairs += up and not was_up
        self.since[name] = (up, at)

    def pause(self, name: str, at: float) -> None:
        """Nothing is known of it for a while."""
        before = self.since.pop(name, None)
        if before is not None:
            self._count(before[0], at - before[1])

    def end(self, at: float) -> None:
        """The record ends here."""
        for name in list(self.since):
            self.pause(name, at)

    def _count(self, up: bool, seconds: float) -> None:
        if up:
            self.up += seconds
        else:
            self.away += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What was seen: exposure in days, counts, and the estimates with their intervals. `cell`: its
    racks, the nodes of most of them, and the GPUs of most nodes; None: there are none.
    """

    cell: tuple[int, int, int] | None
    node_days: float
    node_faults: int
    node_repairs: int
    node_mtbi_days: Estimate
    node_repair_hours: Estimate
    rack_days: float
    rack_faults: int
    rack_mtbi_days: Estimate
    rack_repair_hours: Estimate


@dataclass(slots=True)
class Watch:
    """Follows a fleet from commit to commit."""

    nodes: Clock = field(default_factory=Clock)
    racks: Clock = field(default_factory=Clock)
    joined: set[str] = field(default_factory=set)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    time: float = 0.0

    def take(self, fleet: Fleet, touched: Iterable[int]) -> None:
        """The fleet after a commit that changed these racks."""
        self.time = fleet.time
        for number in touched:
            self._rack(fleet.racks[number], fleet.time)

    def _rack(self, rack: Rack, at: float) -> None:
        self.sizes[rack.number] = len(rack.nodes), rack.spec.gpus_per_node
        up = rack_is_up(rack)
        known = any(node.name in self.joined or node.session for node in rack.nodes)
        if known:
            self._turn(self.racks, rack.spec.rack, up, at)
        for node in rack.nodes:
            if node.session is not None:
                self.joined.add(node.name)
            if node.name not in self.joined:
                continue
            if up:
                self._turn(self.nodes, node.name, is_up(node), at)
            else:
                self.nodes.pause(node.name, at)

    @staticmethod
    def _turn(clock: Clock, name: str, up: bool, at: float) -> None:
        before = clock.since.get(name)
        if before is None or before[0] != up:
            clock.see(name, up, at)

    def told(self) -> Experience:
        """What was learnt up to the last commit."""
        self.nodes.end(self.time)
        self.racks.end(self.time)
        return Experience(
            cell=self._cell(),
            node_days=self.nodes.up / DAY,
            node_faults=self.nodes.faults,
            node_repairs=self.nodes.repairs,
            node_mtbi_days=time_between(self.nodes.up / DAY, self.nodes.faults),
            node_repair_hours=time_away(self.nodes.away / HOUR, self.nodes.repairs),
            rack_days=self.racks.up / DAY,
            rack_faults=self.racks.faults,
            rack_mtbi_days=time_between(self.racks.up / DAY, self.racks.faults),
            rack_repair_hours=time_away(self.racks.away / HOUR, self.racks.repairs),
        )

    def _cell(self) -> tuple[int, int, int] | None:
        if not self.sizes:
            return None
        ((nodes, gpus), _), *_ = Counter(self.sizes.values()).most_common(1)
        return len(self.sizes), nodes, gpus


def rack_is_up(rack: Rack) -> bool:
    """Is it there as a whole?"""
    return not rack.isolated and rack.fitness in {RackFitness.GOOD, RackFitness.DEGRADED}


def is_up(node: Node) -> bool:
    """Is it there, and good for work within its rack at least?"""
    return (
        node.session is not None and not node.failed and FITNESS_ORDER[node.fitness] >= TAKES_GANGS
    )
