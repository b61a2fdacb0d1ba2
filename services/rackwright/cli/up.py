"""`rackwright up`: a whole cell on this machine, until it is told to stop."""

import asyncio
import fcntl
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.keeper import keep_server
from rackwright.cli.numbers import Whole
from rackwright.cli.output import NotRead
from rackwright.cli.policyfile import read_policy, suits
from rackwright.cli.session import DEFAULT_USER, explained, run, state_dir_option
from rackwright.cli.stack import SERVICES, Stack, StackOptions
from rackwright.core.fleet import Fleet
from rackwright.host.files.topologyfile import read_topology
from rackwright.host.logs import LogFormat, LogLevel, set_up
from rackwright.host.standing import Standing
from rackwright.wire.ids import Owner, check_name
from rackwright.wire.nodes import RackSpec
from rackwright.wire.policy import Policy

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
START_S = 300.0
LOOK_S = 0.5


@click.command()
@state_dir_option
@click.option("--cell", default="main", show_default=True, help="Name of the cell.")
@click.option(
    "--racks",
    type=Whole(1, 10_000),
    default=4,
    show_default=True,
    help="Racks, called r01, r02 ...",
)
@click.option(
    "--nodes-per-rack",
    type=Whole(1, 62),
    default=18,
    show_default=True,
    help="Nodes of each, called r01-n01 ...",
)
@click.option(
    "--gpus-per-node",
    type=Whole(0, 16),
    default=4,
    show_default=True,
    help="GPUs of each node.",
)
@click.option(
    "--topology",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A topology file instead: ours, Slurm's, Topograph's.",
)
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML or JSON file with settings, for the cell's first start.",
)
@click.option(
    "--nats-port",
    type=Whole(0, 65_535),
    default=0,
    show_default=True,
    help="Port of the bus; 0: a free one.",
)
@click.option(
    "--http-port",
    type=Whole(0, 65_535),
    default=0,
    show_default=True,
    help="Port of the gateway; 0: a free one.",
)
@click.option(
    "--copies",
    multiple=True,
    metavar="SERVICE=N",
    help="Several copies of a service, such as placer=2. May be repeated.",
)
@click.option(
    "--agents",
    type=Whole(1, 256),
    default=1,
    show_default=True,
    help="Agent processes that the virtual nodes are dealt out to.",
)
@click.option("--pretend", is_flag=True, help="Workers are pretended, nothing is executed.")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    metavar="NAME",
    help="A further user, who may submit jobs and act on these only. May be repeated.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least that services log.",
)
def up(state_dir: Path, **told: Any) -> None:
    """Start a cell: a NATS server, every service as a process, a fleet of virtual nodes.

    Prints one line when everything is ready, and runs until Ctrl-C or SIGTERM. A process that ends
    is started again: standard error says which, how it ended, and when it is back. What the cell
    decided is kept in the state directory: started again there, it goes on where it stopped. Logs
    are in logs/ below it.

    \b
    Examples:
      rackwright up
      rackwright up --racks 8 --pretend --state-dir ./cell
      rackwright up --topology site.yaml --copies placer=2 --http-port 8080
    """
    state_dir = state_dir.absolute()
    options = _options(state_dir, told)
    with _alone(state_dir):
        run(_main(options))


@contextmanager
def _alone(state_dir: Path) -> Iterator[None]:
    """Nobody else runs a cell in this directory. Raises Failure."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(state_dir / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"{state_dir}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Failure(f"another `rackwright up` runs in {state_dir}") from error
    finally:
        os.close(lock)


def _options(state_dir: Path, told: dict[str, Any]) -> StackOptions:
    """What to start. Raises Failure."""
    if NAME.fullmatch(told["cell"]) is None:
        raise BadInput(f"--cell: {told['cell']!r} is not lower-case letters, digits and dashes")
    with explained():
        racks = _racks(told)
        policy = _policy(told["policy"], told["owners"])
        return StackOptions(
            state_dir=state_dir,
            racks=racks,
            cell=told["cell"],
            policy=suits(policy, racks, name=str(told["policy"])),
            owners=tuple(check_name("owner", owner) for owner in told["owners"]),
            nats_port=told["nats_port"] or -1,
            http_port=told["http_port"],
            copies=_copies(told["copies"]),
            pretend=told["pretend"],
            agents=told["agents"],
            log_level=told["log_level"],
        )


async def _main(options: StackOptions) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _log_to(options)
    stack = Stack(options, _tell)
    ready = False
    try:
        await stack.start()
        keeper = asyncio.create_task(keep_server(stack.server, _tell))
        try:
            await _until_ready(stack, stop)
            ready = True
            await stop.wait()
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
    finally:
        _say("stopping")
        await stack.stop()
        if ready:
            lease = options.policy.fence_after_s
            _tell(
                f"stopped; workers go on for at most {lease:g} s: start again within that time "
                "and they are found alive"
            )


def _log_to(options: StackOptions) -> None:
    """What this process itself logs goes where the services' logs are."""
    logs = options.state_dir / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    standing = Standing(service="up", ordinal=0, cell=options.cell)
    out = (logs / "up.log").open("a", encoding="utf-8", buffering=1)
    set_up(standing, level=LogLevel(options.log_level), style=LogFormat.JSON, out=out)


def _racks(told: dict[str, Any]) -> tuple[RackSpec, ...]:
    gpus = told["gpus_per_node"]
    if told["topology"] is None:
        return read_topology(f"{told['racks']}x{told['nodes_per_rack']}x{gpus}", name="--racks")
    path: Path = told["topology"]
    return read_topology(_bytes(path), name=str(path), gpus_per_node=gpus)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _policy(path: Path | None, owners: tuple[str, ...]) -> Policy:
    """The settings of a new cell. With further users, who started it is its operator."""
    policy = Policy() if path is None else read_policy(_bytes(path), name=str(path))
    if owners and not policy.operators:
        policy = replace(policy, operators=(Owner(DEFAULT_USER),))
    return policy


def _copies(texts: tuple[str, ...]) -> dict[str, int]:
    copies = {}
    for text in texts:
        service, _, count = text.partition("=")
        if service not in SERVICES or not count.isdecimal() or not 1 <= int(count) <= 16:
            known = ", ".join(SERVICES)
            raise BadInput(f"--copies {text}: must be SERVICE=N, N 1 to 16; services are {known}")
        copies[service] = int(count)
    return copies


async def _until_ready(stack: Stack, stop: asyncio.Event) -> None:
    """Wait until all is ready, and say so in one line. Raises Failure if it takes too long."""
    async with stack.watching() as watched:
        ready = asyncio.create_task(stack.ready(watched))
        stopped = asyncio.create_task(stop.wait())
        try:
            async with asyncio.timeout(START_S):
                while not ready.done() and not stop.is_set():
                    _progress(watched.fleet, stack)
                    await asyncio.wait(
                        {ready, stopped}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
                    )
        except TimeoutError as error:
            logs = stack.options.state_dir / "logs"
            raise Failure(f"not ready after {START_S:g} s; {logs} says why") from error
        finally:
            for task in (ready, stopped):
                task.cancel()
            await asyncio.wait({ready, stopped})
        if not stop.is_set():
            _say("")
            _announce(stack, ready.result())


def _announce(stack: Stack, fleet: Fleet) -> None:
    context = stack.context
    with suppress(NotRead):
        click.echo(
            f"ready: cell {context.cell}, {len(fleet.racks)} racks, {fleet.installed_nodes} nodes,"
            f" {fleet.installed_gpus} GPUs; NATS {context.nats}, HTTP {context.http},"
            f" state in {stack.options.state_dir}"
        )


def _progress(fleet: Fleet, stack: Stack) -> None:
    wanted = sum(len(rack.nodes) for rack in stack.options.racks)
    joined = sum(bool(node.session) for rack in fleet.racks.values() for node in rack.nodes)
    _say(f"starting: {joined} of {wanted} nodes have joined")


def _tell(text: str) -> None:
    """A line on standard error. A cell does not end because nobody reads it."""
    _say("")
    with suppress(NotRead):
        click.echo(text, err=True)


def _say(text: str) -> None:
    """One line that is written over, where somebody looks."""
    if sys.stderr.isatty():
        with suppress(NotRead):
            click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
