"""Who is struck next, and how: kill -9, a pause, each from a seed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from tests.integration.crash.load import Load
from tests.integration.crash.processes import supervisors
from tests.support.live import Live
from tests.support.quick import LEASE_S

SERVER = "nats-server"
SUPERVISOR = "supervisor"
WORKER = "worker"
LONG_S = LEASE_S * 1.3


@dataclass(slots=True, kw_only=True)
class Nemesis:
    """`deaths`: how often each kept process was killed here; it may not end for another reason."""

    live: Live
    load: Load
    chance: random.Random
    struck: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)

    def choose(self) -> tuple[str, str]:
        """A target and what is done to it."""
        kept = sorted(self.live.stack.kept)
        target = self.chance.choice([*kept, SERVER, SERVER, SUPERVISOR, WORKER])
        if target in (SUPERVISOR, WORKER):
            return target, "kill"
        return target, self.chance.choice(["kill", "kill", "kill", "pause", "pause", "long pause"])

    async def strike(self, target: str, how: str) -> str:
        """Do it, in the middle of new work; what was done."""
        at_work = asyncio.create_task(self.load.go_on())
        await asyncio.sleep(self.chance.random() * 0.2)
        if how == "long pause" and self.chance.random() < 0.7:
            how = "pause"
        match target:
            case "nats-server":
                await self._server(how)
            case "supervisor" | "worker":
                how = self._of_a_worker(target)
            case _:
                await self._kept(target, how)
        await at_work
        self.struck[f"{how} {target.rstrip('0123456789').rstrip('-')}"] += 1
        return f"{how} {target}"

    def _pause_s(self, how: str) -> float:
        return LONG_S if how == "long pause" else self.chance.uniform(0.05, 2.5)

    async def _server(self, how: str) -> None:
        server = self.live.stack.server
        if how != "kill":
            await self._paused(server.pid, self._pause_s(how))
            return
        # Killed while the load is appending, and down for a while.
        await server.kill()
        await asyncio.sleep(self.chance.random() * 0.8)
        await server.start()

    async def _kept(self, name: str, how: str) -> None:
        kept = self.live.stack.kept[name]
        if how != "kill":
            await self._paused(kept.pid, self._pause_s(how))
            return
        if self.chance.random() < 0.3:  # down for longer than it takes to start
            kept.hold()
        if kept.kill(signal.SIGKILL):
            self.deaths[name] += 1
        await asyncio.sleep(self.chance.random() * 0.5)
        kept.release()
        await kept.running()

    async def _paused(self, pid: int, seconds: float) -> None:
        if not pid:
            return
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _of_a_worker(self, target: str) -> str:
        if target == SUPERVISOR:
            pids = sorted(supervisors(self.live.stack.options.state_dir).values())
        else:
            names = sorted(self.live.fleet.jobs)
            pids = [pid for name in names for pid, _ in self.live.identities(name).values()]
        if not pids:
            return "no"
        with suppress(ProcessLookupError):  # it has ended by itself in between
            os.kill(self.chance.choice(pids), signal.SIGKILL)
        return "kill"

    def excuse(self) -> dict[str, int]:
        """Count what ended by itself until now as killed: its disk was; how many of each."""
        ended = self.ends_of_their_own()
        self.deaths.update(ended)
        return ended

    def ends_of_their_own(self) -> dict[str, int]:
        """Kept processes that ended although nobody killed them: a crash loop hides nothing."""
        return {
            name: kept.starts - 1 - self.deaths[name]
            for name, kept in self.live.stack.kept.items()
            if kept.starts - 1 > self.deaths[name]
        }
