"""Services whose clock is an hour wrong, or jumps while they run, decide as before and say so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from docker.models.containers import Container

from tests.e2e.troubles import finished_once, published, riding
from tests.support.composed import Composed
from tests.support.containers import until
from tests.support.engine import image

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="package")]

# The clock of one process alone: the host's is everybody's. Go asks the kernel without any library
# in between, and a time namespace has no wall clock of its own, so the bus's clock cannot be set
# apart in a container: the simulated worlds jump with that.
JUMPING = """
import pathlib, runpy, sys, time
right, ahead = time.time, pathlib.Path("/clock/ahead")
time.time = lambda: right() + float(ahead.read_text())
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
HOUR = 3600.0


@contextmanager
def with_own_clock(live: Composed, service: str, folder: Path) -> Iterator[Container]:
    """A container as the service's own, whose wall clock is as far ahead as a file says."""
    volume = f"{live.site.name}_credentials-{service}"
    made = live.site.client.containers.run(
        image(),
        ["-c", JUMPING, f"rackwright.{service.replace('-', '_')}"],
        entrypoint="/opt/rackwright/bin/python",
        environment={
            "RACKWRIGHT_NATS": "nats://nats:4222",
            "RACKWRIGHT_USER": service,
            "RACKWRIGHT_PASSWORD_FILE": f"/credentials/{service}/password",
        },
        network=f"{live.site.name}_default",
        volumes={
            volume: {"bind": f"/credentials/{service}", "mode": "ro"},
            str(folder): {"bind": "/clock", "mode": "ro"},
        },
        detach=True,
    )
    try:
        yield made
    finally:
        made.remove(force=True)


def corrected(container: Container) -> bool:
    """Has it said that its clock is wrong?"""
    return "clock.corrected" in container.logs().decode(errors="replace")


def healthy(container: Container) -> bool:
    """Does it say so itself?"""
    return bool(container.exec_run(["healthy"]).exit_code == 0)


async def test_clocks_that_are_wrong_and_jump(steady: Composed, tmp_path: Path) -> None:
    """One an hour ahead, one an hour behind; then the other way round."""
    live, hours = steady, {"placer": HOUR, "health-monitor": -HOUR}
    async with riding(live, "rides-clocks") as names:
        with ExitStack() as all_of_them:
            strange = []
            for service, ahead in hours.items():
                folder = tmp_path / service
                folder.mkdir()
                (folder / "ahead").write_text(str(ahead))
                await live.site.do(service, "stop", timeout=10)
                made = with_own_clock(live, service, folder)
                strange.append(await asyncio.to_thread(all_of_them.enter_context, made))
            for container in strange:
                await until(partial(healthy, container), f"{container.name} to be ready")
                await until(partial(corrected, container), "it to see that its clock is wrong")
            names += await published(live, "wrong-clocks", 2)
            await finished_once(live, names)
            for service, ahead in hours.items():
                (tmp_path / service / "ahead").write_text(str(-ahead))
            names += await published(live, "jumped-clocks", 2)
            await finished_once(live, names)
            assert all(healthy(container) for container in strange)
        for service in hours:
            await live.site.do(service, "start")
        await live.site.ready(*hours)
