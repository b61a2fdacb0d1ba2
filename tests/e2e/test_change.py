"""A service is scaled by a number, and a person comes, while jobs run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rackwright.bus.errors import BusDenied
from rackwright.bus.jetstream import connect
from rackwright.bus.options import ConnectOptions
from rackwright.cli.asking import Cell
from rackwright.wire.ids import JobId, NodeId, Owner
from rackwright.wire.wishes import Drain, Submit
from tests.e2e.troubles import finished_once, published, riding
from tests.support.composed import NATS, Composed
from tests.support.containers import Site

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]


async def test_a_service_is_scaled_to_three_and_back(steady: Composed) -> None:
    site = steady.site
    async with riding(steady, "rides-scaled") as names:
        await site.up("--scale", "placer=3", "--scale", "health-monitor=2")
        await site.ready("placer", "health-monitor")
        assert [len(site.containers(one)) for one in ("placer", "health-monitor")] == [3, 2]
        names += await published(steady, "with-three")
        for container in site.containers("placer")[:2]:
            container.kill()
            names += await published(steady, f"without-{container.short_id}")
        await finished_once(steady, names)
        await site.up("--scale", "placer=1", "--scale", "health-monitor=1")
        await site.ready("placer", "health-monitor")
        assert len(site.containers("placer")) == 1
    assert "ordinal_taken" not in site.logs("placer", 500)


def admit(site: Site, name: str) -> str:
    """What the guide says of one more person; returns her password."""
    site.settings["RACKWRIGHT_PEOPLE"] = name
    compose = site.compose()
    told = compose.call("run", "--rm", "-T", "--no-deps", "cli", "users")
    Path(site.settings["RACKWRIGHT_NATS_DIR"], "users.conf").write_text(told)
    compose.call("run", "--rm", "-T", "--no-deps", "credentials")
    compose.call("kill", "-s", "HUP", NATS)
    cat = ("run", "--rm", "-T", "--entrypoint", "cat", "cli")
    return compose.call(*cat, f"/credentials/people/{name}/password").strip()


async def test_one_more_person_and_nothing_is_restarted(steady: Composed) -> None:
    live, site = steady, steady.site
    await live.steady()
    async with riding(live, "rides-with-ann"):
        bus = site.one(NATS)
        options = ConnectOptions(
            servers=(f"nats://127.0.0.1:{site.settings['NATS_PORT']}",),
            identity="ann",
            user="ann",
            password=await asyncio.to_thread(admit, site, "ann"),
            connect_s=30.0,
        )
        mine = await connect(options, "main", replicas=1)
        ann = Cell(bus=mine, user=Owner("ann"))
        granted = await ann.wish(Submit(job=JobId("anns"), spec=live.spec("anns")))
        assert granted.granted
        with pytest.raises(BusDenied):
            await ann.wish(Drain(node=NodeId("r01-n01")))
        await mine.close()
        await live.until(lambda fleet: "anns" in fleet.jobs, "her job to be known here")
        assert live.job("anns").owner == "ann"
        assert (site.one(NATS).id, site.one(NATS).attrs["RestartCount"]) == (bus.id, 0)
