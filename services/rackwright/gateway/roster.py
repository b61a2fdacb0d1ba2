"""Which copies of which service answer on `$SRV`: asked every second, so that one is missed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from rackwright.bus.opening import patiently
from rackwright.bus.permissions import Role
from rackwright.bus.ports import Bus
from rackwright.host.clock import Clock
from rackwright.host.presence import ASK_S, Answer, answered

GONE_S = 5.0  # a service that is restarted is back sooner
WITHOUT: dict[str, str] = {
    Role.PLACER: ": no wish about jobs is answered, nothing is placed, started or ended",
    Role.HEALTH_MONITOR: ": no fault is seen, no lease renewed, and agents stop work whose lease"
    " runs out",
    Role.SPARE_MANAGER: ": failed nodes are not replaced",
    Role.DEFRAGMENTER: ": no room is made for jobs that topology blocks",
    Role.DISPATCHER: ": nodes are not told what to start and what to end",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What a copy said last, and when (`mono`)."""

    mono: float
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The copies of a service that answer. `silent_s`: for how many seconds none that may decide
    has; None: one does."""

    service: str
    copies: Sequence[Copy] = ()
    silent_s: float | None = None

    @property
    def missing(self) -> str:
        """What that means for the cell, in a sentence; empty: nothing is missing."""
        if self.silent_s is None:
            return ""
        if not self.copies:
            without = WITHOUT.get(self.service, "")
            return f"no {self.service} has answered for {self.silent_s:.0f} s{without}"
        why = self.copies[0].answer.metadata.get("why") or "it is starting"
        many = f"{len(self.copies)} copies of the {self.service} answer"
        return f"{many} and none may decide: {why[:200]}"


class Roster:
    """Nobody is missed before all had time to answer, nor while this copy cannot ask."""

    def __init__(self, cell: str, mono: Clock) -> None:
        self._cell = cell
        self._mono = mono
        self._copies: dict[str, dict[str, Copy]] = {role: {} for role in Role}
        self._since: dict[str, float] = {}

    def unheard(self) -> None:
        """Nobody could be asked: everybody gets time to answer anew."""
        self._since = dict.fromkeys(self._copies, self._mono())

    def note(self, data: bytes) -> None:
        """An answer has come."""
        answer = answered(self._cell, data)
        if answer is None:
            return
        service = answer.name.removeprefix("rackwright-")
        if service in self._copies:
            copy = Copy(mono=self._mono(), answer=answer)
            self._copies[service][answer.id] = copy
            if answer.ready:
                self._since[service] = copy.mono

    def present(self) -> tuple[Present, ...]:
        """All services and who answers for them now, copies by their number."""
        now = self._mono()
        return tuple(self._present(service, now) for service in self._copies)

    def _present(self, service: str, now: float) -> Present:
        known = self._copies[service]
        newest = {one.answer.copy: one.mono for one in sorted(known.values(), key=_heard)}
        for name, one in list(known.items()):
            followed = one.mono < newest[one.answer.copy] - 2 * ASK_S  # it was started anew
            if followed or one.mono < now - GONE_S:
                del known[name]
        copies = sorted(known.values(), key=lambda one: one.answer.copy)
        silent = now - self._since.get(service, now)
        return Present(service=service, copies=copies, silent_s=silent if silent > GONE_S else None)

    async def run(self, bus: Bus, inbox: str) -> None:
        """Ask and hear until cancelled; `inbox` is a subject that only this copy may hear."""
        inbox = f"{inbox}.{secrets.token_hex(4)}"
        self.unheard()
        async with AsyncExitStack() as closing:
            answers = await patiently(partial(bus.core.subscribe, inbox))
            closing.push_async_callback(answers.aclose)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._ask(partial(bus.core.publish, data=b"", reply=inbox)))
                while messages := await answers.batch():
                    for message in messages:
                        self.note(message.data)

    async def _ask(self, ask: Callable[[str], Awaitable[bool]]) -> None:
        while True:
            sent = [await ask(f"$SRV.PING.rackwright-{service}") for service in self._copies]
            if not all(sent):
                self.unheard()
            await asyncio.sleep(ASK_S)


def _heard(copy: Copy) -> float:
    return copy.mono
