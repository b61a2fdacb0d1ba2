"""What befalls containers, and the work that must bear it.

A trouble begins when its block is entered and ends with it; what happens in between happens while
the container is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from rackwright.core.jobs import JobState
from rackwright.wire.codec import to_json
from rackwright.wire.wishes import Submit
from tests.support.composed import Composed

Trouble = Callable[[Composed, str], AbstractAsyncContextManager[None]]


async def published(live: Composed, tag: str, count: int = 1) -> list[str]:
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
async def riding(live: Composed, name: str) -> AsyncIterator[list[str]]:
    """A job of four nodes that nothing in the block may touch; short ones, all of which end.

    The block adds the names of those that it has published itself.
    """
    await live.start(live.spec(name, 4))
    before = live.identities(name)
    names = await published(live, f"{name}-before")
    yield names
    names += await published(live, f"{name}-after")
    await finished_once(live, names)
    assert live.identities(name) == before
    assert live.job(name).membership == 1


async def bear(live: Composed, trouble: Trouble, service: str, *, reached: bool = True) -> None:
    """One trouble of one container; jobs come before, meanwhile and after, and all of them end.

    `reached`: can anything be published meanwhile?
    """
    tag = f"{trouble.__name__}-{service}"
    names = await published(live, f"{tag}-before")
    async with trouble(live, service):
        if reached:
            names += await published(live, f"{tag}-while")
    await live.back()
    names += await published(live, f"{tag}-after")
    await live.site.ready(service)
    await finished_once(live, names)


@asynccontextmanager
async def killed(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "kill")
    yield
    await live.site.do(service, "start")


@asynccontextmanager
async def stopped(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "stop", timeout=10)
    yield
    await live.site.do(service, "start")


@asynccontextmanager
async def restarted(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "restart", timeout=10)
    yield


@asynccontextmanager
async def paused(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "pause")
    yield
    await live.site.do(service, "unpause")


@asynccontextmanager
async def cut_off(live: Composed, service: str) -> AsyncIterator[None]:
    """It is off the network, and joins it again under its name."""
    container = await asyncio.to_thread(live.site.one, service)
    network = live.site.client.networks.get(f"{live.site.name}_default")
    await asyncio.to_thread(network.disconnect, container)
    yield
    await asyncio.to_thread(network.connect, container, aliases=[service])
