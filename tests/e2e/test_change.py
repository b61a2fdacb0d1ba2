"""The cell is scaled, and upgraded from the previous image, while jobs run."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from rackwright.cli.stack import SERVICES
from tests.e2e.troubles import finished_once, published, riding
from tests.support.composed import AGENTS, Composed, composed_cell
from tests.support.engine import ROOT, build, image

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


async def test_a_service_is_scaled_to_three_and_back(live: Composed) -> None:
    site = live.site
    async with riding(live, "rides-scaled", "scaled") as names:
        await site.up("--scale", "placer=3", "--scale", "health-monitor=2")
        await site.ready("placer", "health-monitor")
        assert [len(site.containers(one)) for one in ("placer", "health-monitor")] == [3, 2]
        names += await published(live, "with-three")
        for container in site.containers("placer")[:2]:
            container.kill()
            names += await published(live, f"without-{container.short_id}")
        await finished_once(live, names)
        await site.up("--scale", "placer=1", "--scale", "health-monitor=1")
        await site.ready("placer", "health-monitor")
        assert len(site.containers("placer")) == 1
    copies = {line for line in site.logs("placer", 500).splitlines() if "ordinal_taken" in line}
    assert copies == set()


def previous_image(folder: Path) -> str:
    """An image of the commit before the last that changed the code; of this tree without history.

    A release pipeline has the image of the last release instead.
    """
    asked = subprocess.run(
        ["git", "log", "-20", "--format=%H", "--", "proto", "libs", "services"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    for commit in asked.stdout.split()[1:]:
        packed = subprocess.run(
            ["git", "archive", commit, "deploy/healthy", "."],
            cwd=ROOT, capture_output=True, check=False,
        )  # fmt: skip
        if packed.returncode == 0:
            subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
            build("rackwright:previous", folder, VERSION="previous")
            return "rackwright:previous"
    build("rackwright:previous", ROOT, VERSION="previous")
    return "rackwright:previous"


async def test_upgrade_from_the_previous_image_while_jobs_run(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    old = await asyncio.to_thread(previous_image, tmp_path / "tree")
    async with composed_cell("rackwright-upgrade", tmp_path, RACKWRIGHT_IMAGE=old) as live:
        async with riding(live, "rides-upgrade", "upgrade") as names:
            live.site.settings["RACKWRIGHT_IMAGE"] = image()
            for service in SERVICES:
                await live.site.up("--no-deps", service)
                await live.site.ready(service)
                names += await published(live, f"upgraded-{service}", 1)
        wanted = live.site.client.images.get(image()).id
        assert {live.site.one(service).image.id for service in SERVICES} == {wanted}
        for host in AGENTS:  # their work is started again, as it ends with their containers
            await live.site.up("--no-deps", host)
            await live.site.ready(host)
        await live.running("rides-upgrade")
        await live.calm()
