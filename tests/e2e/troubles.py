"""What befalls containers, and the work that must bear it.

A trouble begins when its block is entered and ends with it; what happens in between happens while
the container is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from docker.errors import APIError

from rackwright.bus.errors import BusAway
from rackwright.core.jobs import JobState
from rackwright.wire.codec import to_json
from rackwright.wire.wishes import Submit
from tests.support.composed import NATS, Composed
from tests.support.world import WITHIN_S

AGAIN_S = 0.1
Trouble = Callable[[Composed, str], AbstractAsyncContextManager[None]]


async def published(live: Composed, tag: str, count: int = 1) -> list[str]:
    """Short jobs, published and not waited for: whoever answers may be away.

    Published again where the bus did not say that it has them: twice is once.
    """
    names = [f"{tag}-{turn}" for turn in range(count)]
    for name in names:
        spec = live.spec(name, None, gpus=1, env={"LIVE_EXIT": "0"})
        wish = Submit(job=spec.name, spec=spec)
        subject = live.cell.subjects.wish(live.cell.user, wish.TYPE)
        async with asyncio.timeout(WITHIN_S):
            while not await stored(live, subject, to_json(wish)):
                await live.back()
    return names


async def stored(live: Composed, subject: str, data: bytes) -> bool:
    """Publish a wish; False where it is not known whether the bus has it."""
    try:
        await live.cell.bus.wishes.publish(subject, data)
    except BusAway:
        await asyncio.sleep(AGAIN_S)  # it may not have been noticed yet that the server is gone
        return False
    return True


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


async def bear(live: Composed, trouble: Trouble, service: str) -> None:
    """One trouble of one container; jobs come before, meanwhile and after, and all of them end.

    What is published meanwhile is stored meanwhile, unless it is the bus that is in trouble: then
    it is stored when the bus takes wishes again. Two servers of three go on deciding without that.
    """
    tag = f"{trouble.__name__}-{service}"
    names = await published(live, f"{tag}-before")
    async with trouble(live, service):
        meanwhile = asyncio.create_task(published(live, f"{tag}-while"))
        if not service.startswith(NATS):
            await meanwhile
        elif service != NATS:  # whose port leads to the others, too
            since = live.now()
            await live.until(lambda _: live.now() > since + 1, "the ledger to go on")
    names += await meanwhile
    names += await published(live, f"{tag}-after")
    await live.site.ready(service)
    await finished_once(live, names)
    await live.back()


@asynccontextmanager
async def killed(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "kill")
    try:
        yield
    finally:
        await live.site.do(service, "start")


@asynccontextmanager
async def stopped(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "stop", timeout=10)
    try:
        yield
    finally:
        await live.site.do(service, "start")


@asynccontextmanager
async def restarted(live: Composed, service: str) -> AsyncIterator[None]:
    await live.site.do(service, "restart", timeout=10)
    yield


async def frozen(live: Composed, service: str) -> None:
    """Pause it. On a busy machine the engine may give up freezing: then it is asked again."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                return await live.site.do(service, "pause")
            except APIError as error:
                if "unable to freeze" not in str(error):
                    raise


@asynccontextmanager
async def paused(live: Composed, service: str) -> AsyncIterator[None]:
    await frozen(live, service)
    try:
        yield
    finally:
        await live.site.do(service, "unpause")


@asynccontextmanager
async def cut_off(live: Composed, service: str) -> AsyncIterator[None]:
    """It is off the network, and joins it again under its name."""
    container = await asyncio.to_thread(live.site.one, service)
    network = live.site.client.networks.get(f"{live.site.name}_default")
    await asyncio.to_thread(network.disconnect, container)
    try:
        yield
    finally:
        await asyncio.to_thread(network.connect, container, aliases=[service])
