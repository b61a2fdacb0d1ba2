"""Who was heard when, and who is to be echoed: constant work for each heartbeat."""

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush

from rackwright.core.fleet import Fleet
from rackwright.core.policy.leases import echo_every, may_echo, quiet_after
from rackwright.wire.ids import NodeId, RackId, SessionId
from rackwright.wire.policy import Policy
from rackwright.wire.signals import Echo, EchoLine


@dataclass(slots=True, kw_only=True)
class Beats:
    """The watched nodes in three groups, in each the longest unheard first, with the `mono` time
    of the last heartbeat: heard lately, quiet (a heartbeat is missing) and silent (in doubt)."""

    heard: OrderedDict[NodeId, float] = field(default_factory=OrderedDict)
    quiet: OrderedDict[NodeId, float] = field(default_factory=OrderedDict)
    silent: OrderedDict[NodeId, float] = field(default_factory=OrderedDict)

    def hear(self, node: NodeId, mono: float) -> None:
        """A heartbeat, or the beginning of the watch."""
        if node in self.heard:
            self.heard.move_to_end(node)
        elif self.quiet.pop(node, None) is None:
            self.silent.pop(node, None)
        self.heard[node] = mono

    def forget(self, node: NodeId) -> None:
        """It is not watched any more."""
        for group in (self.heard, self.quiet, self.silent):
            if group.pop(node, None) is not None:
                return

    def pass_to(self, mono: float, policy: Policy) -> bool:
        """Time has come to `mono`; says whether anybody has fallen silent by it."""
        _shift(self.heard, self.quiet, mono - quiet_after(policy))
        return _shift(self.quiet, self.silent, mono - policy.suspect_after_s)

    def next_change(self, policy: Policy) -> float | None:
        """The `mono` time at which somebody changes his group, if nobody is heard."""
        times = [
            next(iter(group.values())) + after
            for group, after in (
                (self.heard, quiet_after(policy)),
                (self.quiet, policy.suspect_after_s),
            )
            if group
        ]
        return min(times, default=None)

    def unheard(self, node: NodeId) -> bool:
        """Is it watched and at least quiet?"""
        return node in self.quiet or node in self.silent

    def __contains__(self, node: NodeId) -> bool:
        return node in self.heard or self.unheard(node)

    def __len__(self) -> int:
        return len(self.heard) + len(self.quiet) + len(self.silent)


def _shift(
    source: OrderedDict[NodeId, float], target: OrderedDict[NodeId, float], until: float
) -> bool:
    moved = False
    while source:
        node, at = next(iter(source.items()))
        if at > until:
            break
        del source[node]
        target[node] = at
        moved = True
    return moved


@dataclass(slots=True, kw_only=True)
class Echoes:
    """Heartbeats that have not been echoed, by rack, and when each rack may be told next."""

    lines: dict[RackId, dict[NodeId, tuple[SessionId, int]]] = field(default_factory=dict)
    told: dict[RackId, float] = field(default_factory=dict)
    due: list[tuple[float, RackId]] = field(default_factory=list)

    def add(
        self, rack: RackId, node: NodeId, session: SessionId, n: int, mono: float, policy: Policy
    ) -> None:
        """This heartbeat is to be answered."""
        lines = self.lines.get(rack)
        if lines is None:
            self.lines[rack] = lines = {}
            earliest = self.told.get(rack, mono - echo_every(policy)) + echo_every(policy)
            heappush(self.due, (max(mono, earliest), rack))
        lines[node] = (session, n)

    def take(self, fleet: Fleet, mono: float) -> list[Echo]:
        """What may be said now; a session that is not live any more is left out."""
        echoes = []
        while self.due and self.due[0][0] <= mono:
            _, rack = heappop(self.due)
            lines = tuple(
                EchoLine(node=node, session=session, n=n)
                for node, (session, n) in self.lines.pop(rack).items()
                if may_echo(fleet.node(node), session)
            )
            if lines:
                self.told[rack] = mono
                echoes.append(
                    Echo(
                        rack=rack,
                        head=fleet.seq,
                        lease_s=fleet.policy.fence_after_s,
                        heartbeat_s=fleet.policy.heartbeat_s,
                        lines=lines,
                    )
                )
        return echoes
