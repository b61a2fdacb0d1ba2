"""A cell over its life: made by the previous image, upgraded, backed up, destroyed, restored."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from rackwright.cli.stack import SERVICES
from rackwright.core.jobs import JobState
from rackwright.wire.ids import JobId
from tests.e2e.troubles import published, riding
from tests.support.composed import AGENTS, NATS, composed_site, reached
from tests.support.containers import Site
from tests.support.engine import ROOT, image
from tests.support.previous import PREVIOUS, TREE_ENV, build_previous

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]
PROJECT = "rackwright-life"


@pytest.fixture(scope="module")
def previous(built: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of `PREVIOUS`, whose image is there."""
    named = os.environ.get(TREE_ENV)
    return Path(named) if named else build_previous(tmp_path_factory.mktemp("previous"))


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def site(previous: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A cell that the previous image has made; the tests go on with it one after the other."""
    images = {"RACKWRIGHT_IMAGE": PREVIOUS, "NATS_IMAGE": PREVIOUS}
    folder = tmp_path_factory.mktemp("life")
    async with composed_site(PROJECT, folder, root=previous, more=images) as site:
        yield site


async def upgrade(site: Site, service: str) -> None:
    """Its container is made anew, of the image and the compose file under test."""
    await site.up("--no-deps", service)
    await site.ready(service)


async def test_upgrade_from_the_previous_image_while_jobs_run(site: Site) -> None:
    async with reached(site) as live:
        await live.start(live.spec("upgraded", 4))
        site.root = ROOT
        site.settings |= {"RACKWRIGHT_IMAGE": image(), "NATS_IMAGE": image()}
        for host in AGENTS:  # their work is started again, as it ends with their containers
            await upgrade(site, host)
        await live.running("upgraded")
        async with riding(live, "rides-upgrade") as names:
            for service in (*SERVICES, NATS):
                await upgrade(site, service)
                names += await published(live, f"upgraded-{service}")
        wanted = site.client.images.get(image()).id
        assert {site.one(one).image.id for one in (*SERVICES, NATS, *AGENTS)} == {wanted}
        await live.tidy_up()
        await live.calm()


def script(name: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run one of the two scripts."""
    command = [str(ROOT / "deploy" / name), str(file), PROJECT]
    environment = {**os.environ, "RACKWRIGHT_IMAGE": image()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


async def test_the_volume_is_destroyed_and_restored(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "cell.tar.gz"
    async with reached(site) as live:
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
        ledger = live.fleet.ledger

    await asyncio.to_thread(site.compose().call, "rm", "--stop", "--force")
    site.client.volumes.get(f"{PROJECT}_nats").remove()
    done = await asyncio.to_thread(script, "restore", file)
    assert done.returncode == 0, done.stderr
    await site.up()
    await site.ready(NATS, *SERVICES, *AGENTS)
    async with reached(site) as again:
        assert again.fleet.ledger == ledger
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
