"""Follows a job: told when something happened, asked what it was."""

import asyncio

import click

from rackwright.bus.ports import Subscription
from rackwright.cli.asking import Cell
from rackwright.cli.show import ask, clock
from rackwright.gateway.views import JobAnswer
from rackwright.wire.subjects import ROOT

ENDED = frozenset({"finished", "failed", "cancelled", "rejected"})
STILL = frozenset({"suspended"})
LOOK_S = 5.0


async def follow_job(
    cell: Cell, name: str, *, quiet: bool = False, until_running: bool = False
) -> str:
    """Tell what happens to a job until it has ended (or runs, or waits for a person); its state.

    Raises what the bus raises.
    """
    told = 0
    async with await cell.bus.core.subscribe(f"{ROOT}.{cell.bus.cell}.told.>") as feed:
        while True:
            view, _ = await ask(cell, "job", JobAnswer, job=name, ranks=0)
            for line in view.story:
                if line.seq > told and not quiet:
                    click.echo(f"{clock(line.at)}  {line.type:<21} {line.text}")
            told = max([told, *(line.seq for line in view.story)])
            state = view.job.state
            if state in ENDED or state in STILL or (until_running and state == "running"):
                return state
            await something(feed)


async def something(feed: Subscription, look_s: float = LOOK_S) -> None:
    """Wait until the ledger grows, or a few seconds: a listener may miss what is told."""
    try:
        async with asyncio.timeout(look_s):
            await feed.batch()
    except TimeoutError:
        return
