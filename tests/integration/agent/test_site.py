"""Site hooks around workers: nothing starts on a node that is not clean."""

import asyncio
import os
from pathlib import Path

from rackwright.agent.said import Who
from rackwright.agent.site import Site
from rackwright.wire.ids import NodeId, RackId, SessionId, WorkerId
from rackwright.wire.signals import Fault, SignalKind
from tests.integration.agent.helpers import written

WHO = Who(node=NodeId("n1"), rack=RackId("r7"), session=SessionId("s"), boot="b")
OLD, NEW = WorkerId("old/0/1"), WorkerId("new/0/1")


class Hooks:
    """A site with these hooks, and what became of it."""

    def __init__(self, folder: Path, **scripts: str) -> None:
        self.told: list[Fault] = []
        self.heard = asyncio.Event()
        self.started = asyncio.Event()
        for name, script in scripts.items():
            path = folder / name
            path.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
            path.chmod(0o755)
        self.site = Site(folder, lambda: WHO, lambda _: None, self.tell)

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
