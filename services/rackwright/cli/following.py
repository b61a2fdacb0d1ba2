"""Follows a job: told when something happened, asked what it was."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import click

from rackwright.bus.errors import BusAway, NoResponder, RequestFailed
from rackwright.bus.ports import Subscription
from rackwright.cli.asking import Cell
from rackwright.cli.show import ask, clock
from rackwright.gateway.views import JobAnswer
from rackwright.wire.subjects import ROOT

ENDED = frozenset({"finished", "failed", "cancelled", "rejected"})
STILL = frozenset({"suspended"})
LOOK_S = 5.0
RETRY_S = 0.5
AWAY_S = 60.0
PASSING = frozenset({503, 504})  # it is starting, or busy
T = TypeVar("T")


async def follow_job(
    cell: Cell,
    name: str,
    *,
    quiet: bool = False,
    until_running: bool = False,
    answered: bool = False,
) -> str:
    """Tell what happens to a job until it has ended (or runs, or waits for a person); its state.

    `answered`: this cell has answered already, so a gateway that is away will come back. Raises
    what the bus raises.
    """
    told = 0
    async with await cell.bus.core.subscribe(f"{ROOT}.{cell.bus.cell}.told.>") as feed:
        while True:
            asking = partial(ask, cell, "job", JobAnswer, job=name, ranks=0)
            view, _ = await answer(asking, again=answered)
            answered = True
            for line in view.story:
                if line.seq > told and not quiet:
                    click.echo(f"{clock(line.at)}  {line.type:<21} {line.text}")
            told = max([told, *(line.seq for line in view.story)])
            state = view.job.state
            if state in ENDED or state in STILL or (until_running and state == "running"):
                return state
            await something(feed)


async def answer(asking: Callable[[], Awaitable[T]], *, again: bool) -> T:
    """The gateway's answer; one that starts anew is waited for a minute, if it is asked `again`.

    Raises what the bus raises.
    """
    until = time.monotonic() + AWAY_S
    while True:
        try:
            return await asking()
        except (NoResponder, BusAway, RequestFailed) as error:
            passing = not isinstance(error, RequestFailed) or error.code in PASSING
            if not again or not passing or time.monotonic() > until:
                raise
        await asyncio.sleep(RETRY_S)


async def something(feed: Subscription, look_s: float = LOOK_S) -> None:
    """Wait until the ledger grows, or a few seconds: a listener may miss what is told."""
    try:
        async with asyncio.timeout(look_s):
            await feed.batch()
    except TimeoutError:
        return
