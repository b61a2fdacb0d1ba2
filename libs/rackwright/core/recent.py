"""How often nodes and racks failed lately, and how long they were away: sums by day of ledger time.

What counts as up and away is as in `experience`, which looks at a whole ledger; here windows of
days are asked for while the cell goes on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackwright.core.experience import DAY, HOUR, is_up, rack_is_up
from rackwright.core.fleet import Fleet
from rackwright.core.policy.estimates import Estimate, time_away, time_between
from rackwright.core.racks import Rack

KEPT_DAYS = 92
WINDOWS = (30, 90)


@dataclass(slots=True)
class Sums:
    """Of one day: seconds up and away of all things, and how often each began."""

    up: float = 0.0
    away: float = 0.0
    faults: int = 0
    repairs: int = 0

    def join(self, other: "Sums") -> None:
        """And those of another."""
        self.up += other.up
        self.away += other.away
        self.faults += other.faults
        self.repairs += other.repairs


@dataclass(slots=True)
class Spells:
    """`since`: is it up or away, and from when on that has not been summed."""

    days: dict[int, Sums] = field(default_factory=dict)
    since: dict[str, tuple[bool, float]] = field(default_factory=dict)

    def see(self, name: str, up: bool, at: float) -> None:
        """It is up or away from now on."""
        before = self.since.get(name)
        if before is not None and before[0] == up:
            return
        self.pause(name, at)
        if before is not None:
            day = self._day(at)
            day.faults += not up
            day.repairs += up
        self.since[name] = (up, at)

    def pause(self, name: str, at: float) -> None:
        """Nothing is known of it for a while."""
        before = self.since.pop(name, None)
        if before is not None:
            self._add(*before, at)

    def window(self, days: int, now: float) -> Sums:
        """Of the last so many days, the open spells included."""
        begin = now - days * DAY
        found = Sums()
        for day, sums in self.days.items():
            if day * DAY >= begin - DAY:
                found.join(sums)
        for up, since in self.since.values():
            seconds = max(0.0, now - max(since, begin))
            found.join(Sums(up=seconds) if up else Sums(away=seconds))
        return found

    def join(self, newer: "Spells", at: float) -> None:
        """Those of what came after `at`."""
        for name in list(self.since):
            self.pause(name, at)
        for day, sums in newer.days.items():
            self.days.setdefault(day, Sums()).join(sums)
        self.since = newer.since

    def _add(self, up: bool, since: float, at: float) -> None:
        """A spell, cut at midnights."""
        while since < at:
            end = min(at, (since // DAY + 1) * DAY)
            day = self._day(since)
            if up:
                day.up += end - since
            else:
                day.away += end - since
            since = end

    def _day(self, at: float) -> Sums:
        day = int(at // DAY)
        if day not in self.days:
            self.days[day] = Sums()
            for old in [one for one in self.days if one < day - KEPT_DAYS]:
                del self.days[old]
        return self.days[day]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Of a window of days, with 95 % intervals: nodes between failures (days) and away (hours),
    racks between failures (days), and how often racks failed."""

    node_mtbf_days: Estimate
    node_mttr_hours: Estimate
    rack_mtbf_days: Estimate
    rack_faults: int


@dataclass(slots=True)
class Recent:
    """Follows a fleet from commit to commit; `began` is when it was first shown."""

    nodes: Spells = field(default_factory=Spells)
    racks: Spells = field(default_factory=Spells)
    began: float = 0.0
    time: float = 0.0

    def begin(self, fleet: Fleet) -> None:
        """The fleet before the first commit."""
        self.began = self.time = fleet.time
        for rack in fleet.racks.values():
            self._rack(rack, fleet.time)

    def take(self, fleet: Fleet, touched: Iterable[int]) -> None:
        """The fleet after a commit that changed these racks."""
        self.time = fleet.time
        for number in touched:
            self._rack(fleet.racks[number], fleet.time)

    def _rack(self, rack: Rack, at: float) -> None:
        up = rack_is_up(rack)
        for node in rack.nodes:
            known = node.session is not None or node.name in self.nodes.since
            if not up:
                self.nodes.pause(node.name, at)
            elif known or node.failed:
                self.nodes.see(node.name, is_up(node), at)
        name = rack.spec.rack
        if name in self.racks.since or any(node.session is not None for node in rack.nodes):
            self.racks.see(name, up, at)

    def reliability(self, days: int, now: float) -> Reliability:
        """What is known of the last so many days."""
        nodes, racks = self.nodes.window(days, now), self.racks.window(days, now)
        return Reliability(
            node_mtbf_days=time_between(nodes.up / DAY, nodes.faults),
            node_mttr_hours=time_away(nodes.away / HOUR, nodes.repairs),
            rack_mtbf_days=time_between(racks.up / DAY, racks.faults),
            rack_faults=racks.faults,
        )

    def join(self, newer: "Recent") -> None:
        """What came after this."""
        self.nodes.join(newer.nodes, newer.began)
        self.racks.join(newer.racks, newer.began)
        self.time = newer.time
