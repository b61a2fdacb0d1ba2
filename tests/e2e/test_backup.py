"""A backup is taken while work runs, the volume is destroyed, restored, and the cell goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from rackwright.cli.stack import SERVICES
from rackwright.core.jobs import JobState
from rackwright.wire.ids import JobId
from tests.support.composed import AGENTS, NATS, composed_cell, reached
from tests.support.engine import ROOT, image

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
PROJECT = "rackwright-backup"


def script(name: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run one of the two scripts."""
    command = [str(ROOT / "deploy" / name), str(file), PROJECT]
    environment = {**os.environ, "RACKWRIGHT_IMAGE": image()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


async def test_the_volume_is_destroyed_and_restored(tmp_path: Path) -> None:
    file = tmp_path / "cell.tar.gz"
    async with composed_cell(PROJECT, tmp_path) as live:
        site = live.site
        await live.start(live.spec("kept", 4))
        before = live.identities("kept")
        await live.submit(live.spec("old", None, gpus=1, env={"LIVE_EXIT": "0"}))
        await live.ended("old")
        done = await asyncio.to_thread(script, "backup", file)
        assert done.returncode == 0, done.stderr
        await site.ready(NATS, *SERVICES, *AGENTS)
        assert live.identities("kept") == before
        await live.start(live.spec("later", 2))
        refused = await asyncio.to_thread(script, "restore", file)
        assert (refused.returncode, "stop project" in refused.stderr) == (1, True)

        await asyncio.to_thread(site.compose().call, "rm", "--stop", "--force")
        site.client.volumes.get(f"{PROJECT}_nats").remove()
        done = await asyncio.to_thread(script, "restore", file)
        assert done.returncode == 0, done.stderr
        await site.up()
        await site.ready(NATS, *SERVICES, *AGENTS)
        async with reached(site) as again:
            assert again.fleet.ledger == live.fleet.ledger
            assert JobId("later") not in again.fleet.jobs
            assert again.fleet.tombstones[JobId("old")].state is JobState.FINISHED
            await again.running("kept")
            await again.start(again.spec("new", 2))
            assert await again.audit() == []


async def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cell.tar.gz"
    file.write_bytes(b"no archive")
    done = await asyncio.to_thread(script, "restore", file)
    assert done.returncode == 1
    assert "is damaged; nothing was changed" in done.stderr
