"""Site hooks around workers: nothing starts on a node that is not clean."""

import asyncio
import os
from pathlib import Path

from rackwright.agent.leftovers import GpuMemory
from rackwright.agent.nvml import NodeReading
from rackwright.agent.said import Who
from rackwright.agent.site import Site
from rackwright.wire.ids import NodeId, RackId, SessionId, WorkerId
from rackwright.wire.signals import Fault, SignalKind
from tests.integration.agent.helpers import written
from tests.unit.agent.test_gpus import gpu, node

WHO = Who(node=NodeId("n1"), rack=RackId("r7"), session=SessionId("s"), boot="b")
OLD, NEW = WorkerId("old/0/1"), WorkerId("new/0/1")


class Hooks:
    """A site with these hooks, and what became of it."""

    def __init__(self, folder: Path, memory: GpuMemory | None = None, **scripts: str) -> None:
        self.told: list[Fault] = []
        self.heard = asyncio.Event()
        self.started = asyncio.Event()
        for name, script in scripts.items():
            path = folder / name
            path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
            path.chmod(0o755)
        self.site = Site(folder, lambda: WHO, lambda _: None, self.tell, memory=memory)

    def tell(self, fault: Fault) -> None:
        self.told.append(fault)
        self.heard.set()


async def test_without_hooks_a_worker_starts_at_once(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path)
    hooks.site.before(NEW, hooks.started.set)
    assert hooks.started.is_set()


async def test_a_worker_waits_for_the_epilog_of_the_one_before(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path, epilog="echo x > begun; read gone < gate", prolog="echo x > did")
    os.mkfifo(tmp_path / "gate")
    hooks.site.after(OLD)
    await written(tmp_path / "begun")
    hooks.site.before(NEW, hooks.started.set)
    hooks.site.before(NEW, hooks.started.set)
    assert not (tmp_path / "did").exists()
    (tmp_path / "gate").write_text("now\n")
    async with asyncio.timeout(30):
        await hooks.started.wait()
    assert (tmp_path / "did").exists()
    assert hooks.told == []


async def test_after_an_epilog_that_failed_nothing_starts(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path, epilog="echo dirty; exit 3")
    hooks.site.after(OLD)
    hooks.site.before(NEW, hooks.started.set)
    async with asyncio.timeout(30):
        await hooks.heard.wait()
    assert [fault.kind for fault in hooks.told] == [SignalKind.HOOK_FAILED]
    assert "dirty" in hooks.told[0].line
    assert not hooks.started.is_set()


async def test_a_worker_waits_until_the_memory_of_its_gpus_is_free(tmp_path: Path) -> None:
    used = [80.0, 80.0, 0.5]
    looked: list[float] = []

    def read() -> NodeReading:
        looked.append(used[len(looked)])
        # GPU 1 is somebody else's, GPU 2 does not tell.
        busy = (gpu(1, memory_used_gb=150.0), gpu(2))
        return node(gpu(0, memory_used_gb=looked[-1]), *busy)

    hooks = Hooks(tmp_path, GpuMemory(read, look_s=0.0))
    hooks.site.after(OLD, (0, 2))
    hooks.site.before(NEW, hooks.started.set)
    async with asyncio.timeout(30):
        await hooks.started.wait()
    assert (looked, hooks.told) == (used, [])


async def test_memory_that_does_not_come_free_is_a_fault_of_the_node(tmp_path: Path) -> None:
    def read() -> NodeReading:
        return node(gpu(0, memory_used_gb=0.1), gpu(3, memory_used_gb=5.25))

    hooks = Hooks(tmp_path, GpuMemory(read, look_s=0.0, limit_s=0.0))
    hooks.site.after(OLD, (0, 3))
    hooks.site.before(NEW, hooks.started.set)
    async with asyncio.timeout(30):
        await hooks.heard.wait()
    (fault,) = hooks.told
    assert fault.kind is SignalKind.KILL_FAILED
    assert fault.line == "memory is not free since old/0/1 left: GPU 3: 5.2 GB"
    assert not hooks.started.is_set()


async def test_without_a_driver_nobody_waits(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path, GpuMemory(lambda: None))
    hooks.site.after(OLD, (0,))
    hooks.site.before(NEW, hooks.started.set)
    async with asyncio.timeout(30):
        await hooks.started.wait()
    assert hooks.told == []
