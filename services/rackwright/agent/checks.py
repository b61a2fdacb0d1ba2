"""The site's check of an idle node: run when it is asked for and nothing else runs there."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from rackwright.agent.hooks import HookCall, HookKind, HookResult, run_hook
from rackwright.agent.said import Who
from rackwright.wire.signals import CheckResult
from rackwright.wire.values import CheckOrder

SAID = 512


def check_of(hooks: Path | None) -> Path | None:
    """The site's check, if it has given one."""
    path = hooks / HookKind.CHECK.value if hooks is not None else None
    return path if path is not None and path.exists() else None


class Checks:
    """Makes one check at a time. `say` is called when there is a new result."""

    def __init__(self, hooks: Path | None, who: Callable[[], Who], say: Callable[[], None]) -> None:
        self._hooks = hooks
        self._who = who
        self._say = say
        self._task: asyncio.Task[None] | None = None
        self._asked = 0
        self.result: CheckResult | None = None

    def look(self, order: CheckOrder | None, idle: bool) -> None:
        """Begin the check that is asked for, if nothing runs here; end one that is in the way."""
        if not idle or order is None:
            self.stop()
            return
        done = self.result is not None and self.result.asked == order.asked
        if done or self._asked == order.asked:
            return
        self.stop()
        self._asked = order.asked
        self._task = asyncio.get_running_loop().create_task(self._run(order))

    def stop(self) -> None:
        """Whatever runs is killed, and begins anew when it is looked for again."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._asked = 0

    def forget(self) -> None:
        """A new session: what was found in the one before is nobody's answer."""
        self.stop()
        self.result = None

    async def _run(self, order: CheckOrder) -> None:
        who = self._who()
        call = HookCall(job=order.why, rack=who.rack, nodes=(who.node,), incarnation=order.asked)
        path = check_of(self._hooks)
        told = await run_hook(HookKind.CHECK, path, call, limit_s=order.limit_s)
        self._task = None
        self.result = result_of(order, told)
        self._say()


def result_of(order: CheckOrder, told: HookResult) -> CheckResult:
    """What is said of it."""
    said = told.output if told.code is not None else f"{told.outcome.value}: {told.output}"
    return CheckResult(
        asked=order.asked,
        passed=told.passed,
        code=told.code,
        seconds=told.seconds,
        said=said[-SAID:],
    )
