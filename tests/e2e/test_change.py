"""The cell is scaled, restarted, upgraded, and loses containers of agents, while jobs run."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from rackwright.cli.stack import SERVICES
from rackwright.core.jobs import JobState
from rackwright.wire.ids import JobId, RackId
from rackwright.wire.wishes import Cancel
from tests.e2e.troubles import finished_once, off_network, published, restarted, riding
from tests.support.composed import AGENTS, NATS, Composed, composed_cell
from tests.support.engine import ROOT, build, image

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


def agents_of(rack: RackId) -> str:
    """The agents' container that hosts a rack: racks are dealt out in turn."""
    return AGENTS[(int(rack.removeprefix("r")) - 1) % len(AGENTS)]


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


async def test_everything_is_restarted_in_turn_under_load(live: Composed) -> None:
    async with riding(live, "rides-rolling", "rolling") as names:
        idle = next(one for one in AGENTS if one != agents_of(live.rack_of("rides-rolling")))
        for service in (*SERVICES, NATS, idle):
            names += await published(live, f"rolling-{service}", 1)
            await restarted(live, service)
            await live.site.ready(NATS, service)
            names += await published(live, f"rolled-{service}", 1)
        # What ran on the agents' container that was restarted may have been started again.
        for name in names:
            assert (await live.ended(name)).state is JobState.FINISHED
        names.clear()


async def test_a_container_of_agents_dies_and_its_work_goes_on_elsewhere(live: Composed) -> None:
    """Both racks of one container are lost; the third has room."""
    await live.start(live.spec("orphan", 4))
    rack = live.rack_of("orphan")
    host = agents_of(rack)
    await live.start(live.spec("other", 4))
    await live.site.do(host, "kill")
    await live.until(
        lambda fleet: fleet.jobs[JobId("orphan")].membership > 1, "the orphan to be moved"
    )
    await live.site.do(host, "start")
    await live.site.ready(host)
    await live.running("orphan")
    await live.running("other")


async def test_agents_are_cut_off_and_join_again(live: Composed) -> None:
    """Their workers end with the lease, before anything is started in their place."""
    await live.start(live.spec("cut", 4))
    host = agents_of(live.rack_of("cut"))
    async with off_network(live, host):
        await live.until(
            lambda fleet: fleet.jobs[JobId("cut")].membership > 1, "the work to go elsewhere"
        )
    await live.site.ready(host)
    await live.running("cut")
    await live.wish(Cancel(job=JobId("cut")))


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
