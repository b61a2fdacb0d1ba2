"""A cell under load whose processes are struck one after the other, checked after each strike."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.bus.errors import BusError
from rackwright.core.jobs import JobState
from rackwright.host.auditing import LedgerAudit
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId
from rackwright.wire.wishes import Submit
from tests.integration.crash.load import Load
from tests.integration.crash.nemesis import Nemesis
from tests.integration.crash.processes import twice
from tests.support.live import Live, Small

SOLO = frozenset({"r01-n02", "r02-n02"})
CELL = Small(solo=SOLO, copies={"placer": 2, "health-monitor": 2})
HEALS_S = 120.0  # a machine with other work starts a process in half a minute
LOOK_S = 0.1


@dataclass(slots=True, kw_only=True)
class Siege:
    """`healed_s`: after each strike, seconds until every process is ready and a new job has run."""

    live: Live
    seed: int
    load: Load = field(init=False)
    nemesis: Nemesis = field(init=False)
    ledger: LedgerAudit = field(default_factory=LedgerAudit)
    healed_s: list[float] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.load = Load(live=self.live, chance=random.Random(chance.random()))
        self.nemesis = Nemesis(
            live=self.live, load=self.load, chance=random.Random(chance.random())
        )

    async def strike(self, target: str, how: str) -> None:
        """One strike, the healing, the checks."""
        self.story.append(await self.nemesis.strike(target, how))
        await self.heal()
        await self.check()

    async def heal(self) -> None:
        """Every service ready, every node in, and a job submitted now runs and ends.

        Raises TimeoutError with what was done.
        """
        name = f"probe-{len(self.story)}"
        began = time.monotonic()
        try:
            async with asyncio.timeout(HEALS_S):
                await self.live.stack.ready(self.live.watched)
                await self._run(name)
        except TimeoutError as error:
            job = self.live.fleet.jobs.get(JobId(name))
            said = f"{job.state} {job.blocked}" if job is not None else "not in the ledger"
            done = ", ".join(self.story[-5:])
            raise TimeoutError(
                f"seed {self.seed}: {name} ({said}) had not ended {HEALS_S:g} s after: {done}"
            ) from error
        self.healed_s.append(time.monotonic() - began)

    async def _run(self, name: str) -> None:
        spec = self.live.spec(name, None, gpus=1, priority=90, env={"LIVE_EXIT": "0"})
        subject = self.live.cell.subjects.wish(self.live.cell.user, Submit.TYPE)
        while True:
            try:
                await self.live.cell.bus.wishes.publish(
                    subject, to_json(Submit(job=spec.name, spec=spec))
                )
                break
            except BusError:
                await asyncio.sleep(LOOK_S)
        fleet = await self.live.watched.until(lambda now: JobId(name) in now.tombstones)
        if fleet.tombstones[JobId(name)].state is not JobState.FINISHED:
            self.violations.append(f"{name}: ended as {fleet.tombstones[JobId(name)].state}")

    async def check(self) -> None:
        """The ledger up to its end, and the world as workers and the kernel see it."""
        while True:
            try:
                await self.ledger.catch_up(self.live.bus)
                break
            except BusError:
                await asyncio.sleep(LOOK_S)
        found = [f"at {one.seq}: {one.what}" for one in self.ledger.audit.violations]
        found += twice(self.live.stack.options.state_dir) + self.live.twice()
        found += [
            f"{name} ended {count} times although nobody killed it"
            for name, count in self.nemesis.ends_of_their_own().items()
        ]
        self.violations = [*dict.fromkeys([*self.violations, *found])]

    async def end(self) -> None:
        """Heal, cancel everything, repair everything: nothing of it is left, nothing was lost.

        Raises TimeoutError.
        """
        async with asyncio.timeout(HEALS_S):
            await self.live.stack.ready(self.live.watched)
            await self.live.tidy_up()
            await self.check()
        self.violations += [f"{name}: its submit was acknowledged" for name in self.load.lost()]

    def figures(self) -> dict[str, object]:
        """What was done and what came of it."""
        healed = sorted(self.healed_s)
        audit = self.ledger.audit
        return {
            "seed": self.seed,
            "strikes": len(self.story),
            "by_kind": dict(sorted(self.nemesis.struck.items())),
            "said": dict(sorted(self.load.said.items())),
            "unheard": dict(sorted(self.load.unheard.items())),
            "acknowledged_submits": len(self.load.acked),
            "healed_s": {
                "p50": round(healed[len(healed) // 2], 2),
                "p95": round(healed[len(healed) * 95 // 100], 2),
                "longest": round(healed[-1], 2),
            },
            "commits": audit.commits,
            "entries": audit.entries,
            "void": audit.voids,
            "scans": audit.scans,
            "by_entry": dict(sorted(audit.counts.items())),
            "violations": self.violations,
        }


async def besiege(
    live: Live, *, seed: int, count: int, told: Callable[[Siege], None] = lambda _: None
) -> Siege:
    """Strike `count` times as the seed says; stops at the first violation."""
    siege = Siege(live=live, seed=seed)
    for _ in range(count):
        await siege.strike(*siege.nemesis.choose())
        told(siege)
        if siege.violations:
            break
    await siege.end()
    return siege


def kept_story(root: Path, siege: Siege) -> None:
    """Leave the strikes, in order, beside the logs."""
    (root / "story").write_text("\n".join(siege.story) + "\n", encoding="utf-8")
