"""The site's hooks around the workers of one node; one that fails is a fault of the node."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from rackwright.agent.dressing import slice_of
from rackwright.agent.hooks import HookCall, HookKind, run_hook
from rackwright.agent.said import Who, other_fault
from rackwright.wire.ids import WorkerId, parse_worker
from rackwright.wire.signals import Fault, SignalKind
from rackwright.wire.values import JobValue


class Site:
    """Runs `prolog`, `membership` and `epilog` of `directory`, where they exist.

    `who` says which node this is now; `tell` hears of a hook that failed.
    """

    def __init__(
        self,
        directory: Path | None,
        who: Callable[[], Who],
        job_of: Callable[[str], JobValue | None],
        tell: Callable[[Fault], None],
    ) -> None:
        self._directory = directory
        self._who = who
        self._job_of = job_of
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._prolog: set[WorkerId] = set()

    def before(self, worker: WorkerId, start: Callable[[], None]) -> None:
        """Start the worker: after its prolog if the site has one, else now.

        A prolog runs once a worker: one that failed is a fault of the node, not to be tried again.
        """
        hook = self._hook(HookKind.PROLOG)
        if hook is None:
            start()
        elif worker not in self._prolog:
            self._prolog.add(worker)
            self._run(HookKind.PROLOG, hook, worker, start)

    def changed(self, worker: WorkerId) -> None:
        """The membership of its job has changed."""
        hook = self._hook(HookKind.MEMBERSHIP)
        if hook is not None:
            self._run(HookKind.MEMBERSHIP, hook, worker, lambda: None)

    def after(self, worker: WorkerId) -> None:
        """The worker has ended and is reaped."""
        self._prolog.discard(worker)
        hook = self._hook(HookKind.EPILOG)
        if hook is not None:
            self._run(HookKind.EPILOG, hook, worker, lambda: None)

    def _hook(self, kind: HookKind) -> Path | None:
        path = self._directory / kind.value if self._directory is not None else None
        return path if path is not None and path.exists() else None

    def _run(
        self, kind: HookKind, hook: Path, worker: WorkerId, passed: Callable[[], None]
    ) -> None:
        async def run() -> None:
            result = await run_hook(kind, hook, self._call(worker))
            if result.passed:
                passed()
            else:
                now = time.time()
                said = f"{result.kind} {result.outcome} {result.code}: {result.output}"
                self._tell(other_fault(self._who(), SignalKind.HOOK_FAILED, now, said))

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _call(self, worker: WorkerId) -> HookCall:
        job, rank, incarnation = parse_worker(worker)
        value = self._job_of(job)
        nodes = tuple(slice_of(value, rank).nodes) if value is not None else ()
        return HookCall(job=job, rack=self._who().rack, nodes=nodes, incarnation=incarnation)
