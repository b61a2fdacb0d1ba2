"""`rackwright create`: makes a cell ready on a bus that is there, for services to be started on."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import click

from rackwright.agent.config import write_fleet
from rackwright.bus.errors import AuthFailed, BusAway, BusError
from rackwright.bus.jetstream import JetStreamBus, connect
from rackwright.bus.options import ConnectOptions
from rackwright.bus.streams import PRODUCTION, Limits
from rackwright.cli.durations import duration
from rackwright.cli.failures import BadInput, Unreachable
from rackwright.cli.numbers import Whole
from rackwright.cli.policyfile import read_policy, suits
from rackwright.cli.preparing import deal, prepare
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.host.files.topologyfile import read_topology
from rackwright.wire.nodes import RackSpec
from rackwright.wire.policy import Policy

RETRY_S = 0.5


@click.command()
@click.option("--racks", default="", help="A topology file, or RACKSxNODESxGPUS such as 4x18x4.")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML or JSON file with settings, if the ledger is made now.",
)
@click.option(
    "--replicas",
    type=click.Choice(["1", "3", "5"]),
    envvar="RACKWRIGHT_REPLICAS",
    show_envvar=True,
    default="1",
    show_default=True,
    help="Copies of each stream, on as many servers.",
)
@click.option(
    "--limits",
    type=click.Choice(["default", "production"]),
    envvar="RACKWRIGHT_LIMITS",
    show_envvar=True,
    default="default",
    show_default=True,
    help="Sizes of the streams.",
)
@click.option("--wait", callback=duration, default="60s", help="How long to wait for the bus.")
@click.option(
    "--fleet-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write files of virtual nodes there, for agents.",
)
@click.option("--fleets", type=Whole(1, 256), default=1, help="Into how many files.")
@json_option
@reaching
def create(
    where: Where,
    racks: str,
    policy: Path | None,
    replicas: str,
    limits: str,
    wait: float | None,
    fleet_dir: Path | None,
    fleets: int,
    as_json: bool,
) -> None:
    """Make streams, ledger and racks of a cell, as its administrator.

    Run again it makes what is missing and leaves the rest; streams that differ are changed to what
    is asked for where that is possible. Needs the user that may do everything.

    \b
    Examples:
      rackwright create --nats nats://127.0.0.1:4222 --user admin --password-file admin.password
      rackwright create --racks site.yaml --replicas 3 --limits production
      rackwright create --racks 4x18x4 --fleet-dir ./fleet --fleets 2
    """
    specs = _racks(racks)
    with explained():
        text = b"" if policy is None else policy.read_bytes()
        settings = Policy() if policy is None else read_policy(text, name=str(policy))
        suits(settings, specs, name=str(policy))
        if fleet_dir is not None:
            _write_fleets(fleet_dir, specs, fleets)
    sizes = PRODUCTION if limits == "production" else Limits()
    made = run(_create(where, settings, specs, int(replicas), sizes, wait or 0.0))
    cell, user = where.named()
    if as_json:
        click.echo(json.dumps({"cell": cell, "created": made, "racks": len(specs)}))
    else:
        said = "created" if made else "was there; made what was missing"
        click.echo(f"cell {cell}: {said}; {len(specs)} racks wished for by {user}")


def _racks(text: str) -> tuple[RackSpec, ...]:
    if not text:
        return ()
    with explained():
        if Path(text).is_file():
            return read_topology(Path(text).read_bytes(), name=text)
        return read_topology(text, name="--racks")


def _write_fleets(directory: Path, racks: tuple[RackSpec, ...], count: int) -> None:
    if not racks:
        raise BadInput("--fleet-dir: say --racks too")
    directory.mkdir(parents=True, exist_ok=True)
    for number, nodes in enumerate(deal(racks, count)):
        write_fleet(directory / f"fleet-{number}.json", nodes)


async def _create(
    where: Where,
    policy: Policy,
    racks: tuple[RackSpec, ...],
    replicas: int,
    limits: Limits,
    wait_s: float,
) -> bool:
    """Try again while the bus is away: servers of a cluster take seconds to find each other."""
    options, cell = where.connection()
    why = ""
    try:
        async with asyncio.timeout(wait_s):
            while True:
                try:
                    bus = await _connect(options, cell, replicas, limits)
                    try:
                        return await prepare(bus, policy, racks, options.identity, "create")
                    finally:
                        await bus.close()
                except BusAway as error:
                    if str(error) != why:
                        why = str(error)
                        click.echo(f"waiting: {why}", err=True)
                await asyncio.sleep(RETRY_S)
    except TimeoutError as error:
        raise Unreachable(f"cell {cell}: not ready after {wait_s:g} s: {why}") from error


async def _connect(
    options: ConnectOptions, cell: str, replicas: int, limits: Limits
) -> JetStreamBus:
    try:
        return await connect(
            replace(options, connect_s=10.0), cell, replicas=replicas, limits=limits
        )
    except AuthFailed as error:
        raise Unreachable(f"{error}; the administrator's user and password are needed") from error
    except (BusAway, ValueError):
        raise
    except BusError as error:
        raise Unreachable(f"cell {cell}: {error}") from error
