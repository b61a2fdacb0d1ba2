"""`rackwright demo`: a cell with real processes, and what happens to a job in it, measured."""

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import click
import structlog
import uvloop
from rich.console import Console

from rackwright.cli.asking import reach
from rackwright.cli.credentials import ADMIN
from rackwright.cli.demo import recovery_acts, trouble_acts
from rackwright.cli.demo.board import board
from rackwright.cli.demo.scene import Scene, Unplayable
from rackwright.cli.demo.telling import Teller
from rackwright.cli.stack import Stack, StackOptions
from rackwright.cli.watcher import Watched
from rackwright.host.auditing import audit_ledger
from rackwright.host.clock import boottime
from rackwright.host.files.topologyfile import read_topology
from rackwright.wire.entries.node import NodeSuspected
from rackwright.wire.ids import NodeId
from rackwright.wire.policy import Policy
from rackwright.wire.wishes import Cancel

POLICY = Policy(
    heartbeat_s=0.5,
    suspect_after_s=3.0,
    fence_after_s=8.0,
    fresh_s=1.0,
    kill_s=0.5,
    symptom_window_s=2.0,
    rack_event_nodes=18,
    exit_verdict_s=2.0,
    probation_s=4.0,
    breaker_min=20,
    block_repeat_s=1.0,
    defrag_delay_s=1.0,
    defrag_notice_s=3.0,
    defrag_drain_s=1.0,
    defrag_min_runtime_s=0.0,
    defrag_cooldown_s=0.0,
)
ACTS = (
    recovery_acts.place,
    recovery_acts.swap_one,
    recovery_acts.swap_two,
    recovery_acts.move_slice,
    recovery_acts.kill_agent,
    trouble_acts.storm,
    trouble_acts.defragment,
    trouble_acts.kill_services,
)


@click.command()
@click.option("--keep", is_flag=True, help="Leave the state directory (logs, ledger) behind.")
@click.option("--act", "letters", default="abcdefgh", help="Which acts to play, by letter.")
def demo(keep: bool, letters: str) -> None:
    """Start a cell of 4 racks x 18 nodes here, run jobs, break things, and check what happens.

    Exit status 0 only if every claim held.
    """
    console = Console(highlight=False)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        failed = runner.run(play(console, keep=keep, letters=letters))
    raise SystemExit(1 if failed else 0)


async def play(console: Console, *, keep: bool, letters: str) -> int:
    """Play the acts; the number of claims that did not hold."""
    root = Path(tempfile.mkdtemp(prefix="rackwright-demo-"))
    tell = Teller(console=console)
    racks = read_topology(b"4x18", name="4x18")
    solo = frozenset(rack.nodes[2] for rack in racks)
    options = StackOptions(state_dir=root, racks=racks, policy=POLICY, solo=solo, agents=4)
    console.print("[bold]Rackwright demo[/bold]: 4 racks x 18 nodes, every worker a real process")
    console.print(
        f"  short timers here: lease {POLICY.fence_after_s:g} s (30 by default), "
        f"symptom window {POLICY.symptom_window_s:g} s (30), "
        f"defragmentation after {POLICY.defrag_delay_s:g} s (30), "
        f"notice {POLICY.defrag_notice_s:g} s (120)"
    )
    try:
        async with Stack(options) as stack, AsyncExitStack() as more:
            watched = await more.enter_async_context(stack.watching())
            await stack.ready(watched)
            tell.say(
                f"nats-server ({stack.server.url}), {len(stack.kept)} processes, 72 nodes: ready"
            )
            bus = await stack.connect(ADMIN)
            more.push_async_callback(bus.close)
            saved = root / "saved"
            saved.mkdir()
            scene = Scene(
                stack=stack,
                bus=bus,
                cell=await more.enter_async_context(reach(stack.context)),
                watched=watched,
                board=await more.enter_async_context(board(bus)),
                tell=tell,
                saved=saved,
            )
            for letter, act in zip("abcdefgh", ACTS, strict=True):
                if letter in letters:
                    await played(act, scene)
            await _verify(scene)
            if tell.failed and (why := too_busy(watched, solo)):
                console.print(f"\n  [bold]{why}[/bold]")
            await _end_work(scene)
    except TimeoutError:
        tell.claim("everything happened in time", False)
    finally:
        if keep or tell.failed or not _removed(root):
            console.print(f"  state and logs are kept in {root}")
    held = len(tell.claims) - len(tell.failed)
    console.print()
    console.print(f"[bold]{held} of {len(tell.claims)} claims held[/bold]")
    return len(tell.failed)


async def played(act: Callable[[Scene], Awaitable[None]], scene: Scene) -> None:
    """One act; what keeps it from its end is a claim that did not hold, and the next one begins."""
    try:
        await act(scene)
    except TimeoutError:
        scene.tell.claim("everything in this act happened in time", False)
    except (Unplayable, LookupError) as error:
        scene.tell.claim(f"the acts before left what this one needs ({error})", False)


def too_busy(watched: Watched, killed: frozenset[NodeId]) -> str:
    """What a machine that gave the agents no processor has done to the run; "" if it has not.

    `killed`: nodes whose agents are killed on purpose.
    """
    silent = {
        entry.node
        for commit in watched.commits
        for entry in commit.entries
        if isinstance(entry, NodeSuspected) and not commit.void
    } - killed
    if not silent:
        return ""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"Healthy nodes fell silent ({len(silent)}): their agents had no processor for"
        f" {POLICY.suspect_after_s:g} s (load {load:.0f} on {processors} processors).\n"
        "  So this run says little. Play it again when the machine has less to do."
    )


async def _end_work(scene: Scene) -> None:
    """Cancel what runs and wait until its processes are gone: nothing outlives the demo."""
    for name in sorted(scene.watched.fleet.jobs):
        await scene.cell.wish(Cancel(job=name))
    await scene.board.until(lambda board: not board.running())


def _removed(root: Path) -> bool:
    """Clean up; False if something is still written there, which is no failure of the demo."""
    try:
        shutil.rmtree(root)
    except OSError:
        return False
    return True


async def _verify(scene: Scene) -> None:
    """Fold the ledger once more from its first entry and check every property."""
    scene.tell.act("*", "the ledger, folded again from its first entry")
    began = boottime()
    audit, _ = await audit_ledger(scene.bus)
    scene.tell.say(
        f"{audit.commits} commits, {audit.entries} entries, {audit.voids} void, "
        f"{audit.scans} scans of the cell",
        boottime() - began,
    )
    for violation in audit.violations[:10]:
        scene.tell.say(f"at {violation.seq}: {violation.what}")
    scene.tell.claim("no node twice, no job lost, every victim placed", not audit.violations)
