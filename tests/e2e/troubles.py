"""What befalls containers, and the work that must bear it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from rackwright.core.jobs import JobState
from rackwright.wire.codec import to_json
from rackwright.wire.wishes import Submit
from tests.support.composed import Composed

Trouble = Callable[[Composed, str], Awaitable[None]]


async def published(live: Composed, tag: str, count: int = 2) -> list[str]:
    """Short jobs, published and not waited for: whoever answers may be away."""
    names = [f"{tag}-{turn}" for turn in range(count)]
    for name in names:
        spec = live.spec(name, None, gpus=1, env={"LIVE_EXIT": "0"})
        wish = Submit(job=spec.name, spec=spec)
        subject = live.cell.subjects.wish(live.cell.user, wish.TYPE)
        await live.cell.bus.wishes.publish(subject, to_json(wish))
    return names


async def finished_once(live: Composed, names: list[str]) -> None:
    """Each of them ends well and had one process."""
    ends = {name: (await live.ended(name)).state for name in names}
    assert {name: state for name, state in ends.items() if state is not JobState.FINISHED} == {}
    assert {name: len(live.starts(name, 0)) for name in names} == dict.fromkeys(names, 1)


@asynccontextmanager
async def riding(live: Composed, name: str, tag: str) -> AsyncIterator[list[str]]:
    """A job of four nodes that nothing in the block may touch; short ones, all of which end."""
    if name not in live.fleet.jobs:
        await live.start(live.spec(name, 4))
    before = live.identities(name)
    names = await published(live, f"{tag}-before")
    yield names
    names += await published(live, f"{tag}-after")
    await finished_once(live, names)
    assert live.identities(name) == before
    assert live.job(name).membership == 1


async def killed(live: Composed, service: str) -> None:
    await live.site.do(service, "kill")
    await live.site.do(service, "start")


async def stopped(live: Composed, service: str) -> None:
    await live.site.do(service, "stop", timeout=10)
    await live.site.do(service, "start")


async def restarted(live: Composed, service: str) -> None:
    await live.site.do(service, "restart", timeout=10)


async def paused(live: Composed, service: str) -> None:
    await live.site.do(service, "pause")
    await live.site.do(service, "unpause")


@asynccontextmanager
async def off_network(live: Composed, service: str) -> AsyncIterator[None]:
    """A container is off the network while the block runs."""
    container = await asyncio.to_thread(live.site.one, service)
    network = live.site.client.networks.get(f"{live.site.name}_default")
    await asyncio.to_thread(network.disconnect, container)
    try:
        yield
    finally:
        await asyncio.to_thread(network.connect, container, aliases=[service])


async def cut_off(live: Composed, service: str) -> None:
    async with off_network(live, service):
        pass
