"""A steady load from a seed: submits, cancels and faults, published by somebody who keeps count."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from rackwright.bus.errors import BusError
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId, NodeId
from rackwright.wire.jobs import JobClass
from rackwright.wire.nodes import Fitness
from rackwright.wire.wishes import Cancel, Repaired, Submit, Wish
from tests.support.live import Live

MOST_LIVING = 14  # jobs; more would only wait
MOST_OUT = 5  # nodes out of 18; more would leave nowhere to go


@dataclass(slots=True, kw_only=True)
class Load:
    """`acked`: jobs whose submit the bus acknowledged: each must live or have ended."""

    live: Live
    chance: random.Random
    turn: int = 0
    acked: set[str] = field(default_factory=set)
    said: Counter[str] = field(default_factory=Counter)
    unheard: Counter[str] = field(default_factory=Counter)

    async def go_on(self) -> None:
        """A few wishes and, now and then, a fault. Whoever answers may be down."""
        for _ in range(self.chance.randint(1, 3)):
            await self._submit()
        living = sorted(self.live.fleet.jobs)
        if living and (len(living) > MOST_LIVING or self.chance.random() < 0.4):
            name = self.chance.choice(living)
            await self._publish(Cancel(job=name))
        await self._fault_or_repair()

    async def _submit(self) -> None:
        if len(self.live.fleet.jobs) > MOST_LIVING:
            return
        self.turn += 1
        name = f"load-{self.turn}"
        match self.chance.randrange(4):
            case 0:
                spec = self.live.spec(name, self.chance.randint(2, 4))
            case 1:
                spec = self.live.spec(name, None, gpus=1, job_class=JobClass.INTERACTIVE)
            case _:
                spec = self.live.spec(name, None, gpus=2, env={"LIVE_EXIT": "0"})
        if await self._publish(Submit(job=spec.name, spec=spec)):
            self.acked.add(name)

    async def _fault_or_repair(self) -> None:
        nodes = [node for rack in self.live.fleet.racks.values() for node in rack.nodes]
        out = [node for node in nodes if node.fitness is not Fitness.FULL or node.failed]
        if len(out) >= MOST_OUT or (out and self.chance.random() < 0.3):
            await self._publish(Repaired(node=self.chance.choice(out).name))
        elif self.chance.random() < 0.25:
            node: NodeId = self.chance.choice(nodes).name
            self.said["fault"] += 1
            await self.live.xid(node)

    async def _publish(self, wish: Wish) -> bool:
        subject = self.live.cell.subjects.wish(self.live.cell.user, wish.TYPE)
        self.said[wish.TYPE] += 1
        try:
            await self.live.cell.bus.wishes.publish(subject, to_json(wish))
        except BusError as error:
            self.unheard[type(error).__name__] += 1
            return False
        return True

    def lost(self) -> list[str]:
        """Acknowledged submits of which the ledger knows nothing."""
        fleet = self.live.fleet
        known = set(fleet.jobs) | set(fleet.tombstones)
        return sorted(name for name in self.acked if JobId(name) not in known)
