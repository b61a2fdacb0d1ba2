"""The site's hooks around the workers of one node; one that fails is a fault of the node."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from rackwright.agent.dressing import slice_of
from rackwright.agent.hooks import HookCall, HookKind, run_hook
from rackwright.agent.leftovers import GpuMemory
from rackwright.agent.said import Who, other_fault
from rackwright.agent.timing import LIVE, Timing
from rackwright.wire.ids import WorkerId, parse_worker
from rackwright.wire.signals import Fault, SignalKind
from rackwright.wire.values import JobValue


class Site:
    """Runs `prolog`, `membership` and `epilog` of `directory`, where they exist.

    `who` says which node this is now; `tell` hears of a hook that failed, and of GPU memory that
    does not come free (`memory` None: nobody can say).
    """

    def __init__(
        self,
        directory: Path | None,
        who: Callable[[], Who],
        job_of: Callable[[str], JobValue | None],
        tell: Callable[[Fault], None],
        timing: Timing = LIVE,
        memory: GpuMemory | None = None,
    ) -> None:
        self._memory = memory
        self._directory = directory
        self._who = who
        self._job_of = job_of
        self._tell = tell
        self._timing = timing
        self._tasks: set[asyncio.Task[bool]] = set()
        self._epilogs: set[asyncio.Task[bool]] = set()
        self._prolog: set[WorkerId] = set()

    def before(self, worker: WorkerId, start: Callable[[], None]) -> None:
        """Start the worker: when the epilogs of earlier ones are over, and after its own prolog.

        A prolog runs once a worker: one that failed is a fault of the node, not to be tried again.
        Where an epilog has failed the node is not clean, and nothing is started.
        """
        hook = self._hook(HookKind.PROLOG)
        if hook is None and not self._epilogs:
            start()
        elif worker not in self._prolog:
            self._prolog.add(worker)
            self._keep(self._before(hook, worker, start))

    async def _before(self, hook: Path | None, worker: WorkerId, start: Callable[[], None]) -> bool:
        clean = all(await asyncio.gather(*self._epilogs))
        return clean and await self._run(HookKind.PROLOG, hook, worker, start)

    def changed(self, worker: WorkerId) -> None:
        """The membership of its job has changed."""
        hook = self._hook(HookKind.MEMBERSHIP)
        if hook is not None:
            self._keep(self._run(HookKind.MEMBERSHIP, hook, worker, lambda: None))

    def after(self, worker: WorkerId, gpus: tuple[int, ...] = ()) -> None:
        """The worker has ended and is reaped: what it leaves on its GPUs is waited for as well."""
        self._prolog.discard(worker)
        if self._memory is not None and gpus:
            self._epilog(self._freed(self._memory, worker, gpus))
        hook = self._hook(HookKind.EPILOG)
        if hook is not None:
            self._epilog(self._run(HookKind.EPILOG, hook, worker, lambda: None))

    def _epilog(self, work: Coroutine[None, None, bool]) -> None:
        """Nothing is started before it is over, nor where it has failed."""
        task = self._keep(work)
        self._epilogs.add(task)
        task.add_done_callback(self._epilogs.discard)

    async def _freed(self, memory: GpuMemory, worker: WorkerId, gpus: tuple[int, ...]) -> bool:
        left = await memory.freed(gpus)
        if left:
            held = ", ".join(f"GPU {gpu}: {used:.1f} GB" for gpu, used in sorted(left.items()))
            said = f"memory is not free since {worker} left: {held}"
            self._tell(other_fault(self._who(), SignalKind.KILL_FAILED, self._timing.wall(), said))
        return not left

    def _hook(self, kind: HookKind) -> Path | None:
        path = self._directory / kind.value if self._directory is not None else None
        return path if path is not None and path.exists() else None

    def _keep(self, work: Coroutine[None, None, bool]) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(
        self, kind: HookKind, hook: Path | None, worker: WorkerId, passed: Callable[[], None]
    ) -> bool:
        """Has it passed? What one that failed says is told."""
        result = await run_hook(kind, hook, self._call(worker))
        if result.passed:
            passed()
        else:
            said = f"{result.kind} {result.outcome} {result.code}: {result.output}"
            self._tell(other_fault(self._who(), SignalKind.HOOK_FAILED, self._timing.wall(), said))
        return result.passed

    def _call(self, worker: WorkerId) -> HookCall:
        job, rank, incarnation = parse_worker(worker)
        value = self._job_of(job)
        nodes = tuple(slice_of(value, rank).nodes) if value is not None else ()
        return HookCall(job=job, rack=self._who().rack, nodes=nodes, incarnation=incarnation)
