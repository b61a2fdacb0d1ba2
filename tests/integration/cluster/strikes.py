"""What is done to three servers while a writer writes, and how long it then waits for an answer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from rackwright.bus.jetstream import JetStreamBus
from tests.integration.cluster.writing import Writer, leader, open_bus, writing
from tests.support.network import Lab, Server

Strike: TypeAlias = Callable[[Lab, Server], Awaitable[None]]


async def killed(_lab: Lab, server: Server) -> None:
    """kill -9."""
    await server.stop()


async def stopped(_lab: Lab, server: Server) -> None:
    """SIGTERM, as a restart for an upgrade does."""
    await server.stop(signal.SIGTERM)


async def cut_off(lab: Lab, server: Server) -> None:
    """Its link is down: neither servers nor clients reach it."""
    await lab.cut_off(server)


async def split(lab: Lab, server: Server) -> None:
    """The two others do not reach it, clients do."""
    await lab.split(server)


HEALED_AFTER_S = 30.0

STRIKES: tuple[Strike, ...] = (killed, cut_off, split, stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """`took`: the longest wait between two acknowledgements, in seconds. Appends: acknowledged,
    read though there was no answer, and acknowledged but not there."""

    took: float
    acked: int
    found: int
    lost: int


async def struck(lab: Lab, admin: JetStreamBus, strike: Strike) -> Struck:
    """Do it to the leader while a writer writes; then all is healed, and some more is written.

    The writer of a split is on the side of the two: on the other one nobody gets an answer.
    """
    server = await leader(lab, admin)
    near = [one for one in lab.servers if strike is not split or one is not server]
    bus = await open_bus(near, "writer")
    try:
        async with writing(bus) as writer:
            before = len(writer.times)
            await strike(lab, server)
            with suppress(TimeoutError):  # its client may have gone to the side without a quorum
                await asyncio.wait_for(writer.several(20), HEALED_AFTER_S)
            await lab.heal()
            if server.process is None:
                await server.start()
            await lab.takes_part(server)
            await writer.several(20)
            took = writer.longest_wait(before - 1)
        lost = await writer.lost()
    finally:
        await bus.close()
    return Struck(took=took, acked=len(writer.acked), found=writer.found, lost=lost)


async def rolled(lab: Lab, writer: Writer) -> None:
    """Restart one after the other, each when the one before takes part again."""
    for server in lab.servers:
        await server.stop(signal.SIGTERM)
        await writer.several(5)
        await server.start()
        await lab.takes_part(server)
        await writer.several(5)
