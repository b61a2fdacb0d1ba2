"""`rackwright users` and `rackwright credentials`: who may do what on the bus, and with what."""

import os
import secrets
from pathlib import Path

import click

from rackwright.bus.permissions import Place, agent
from rackwright.bus.serverconfig import everybody, passwords_conf, routes_conf, users_conf
from rackwright.cli.failures import BadInput
from rackwright.cli.session import explained
from rackwright.wire.ids import NodeId, RackId, check_name
from rackwright.wire.subjects import shard_of

NATS = "nats"


def people(command: click.Command) -> click.Command:
    """Options that name the cell and whom it has besides its services."""
    for option in (
        click.Option(
            ["--user", "people"],
            multiple=True,
            envvar="RACKWRIGHT_PEOPLE",
            show_envvar=True,
            help="Somebody who submits jobs.",
        ),
        click.Option(
            ["--operator", "operators"],
            multiple=True,
            default=["operator"],
            show_default=True,
            help="Somebody who may wish anything and read everything.",
        ),
    ):
        command.params.insert(0, option)
    return command


@people
@click.command()
@click.option("--cell", envvar="RACKWRIGHT_CELL", default="main", show_default=True, help="Cell.")
@click.option(
    "--replicas",
    type=click.Choice(["1", "3", "5"]),
    envvar="RACKWRIGHT_REPLICAS",
    default="1",
    show_default=True,
    help="Copies of each stream.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="RACK/NODE",
    help="A user for the agent of one node alone, called node-NODE.",
)
def users(
    cell: str,
    replicas: str,
    nodes: tuple[str, ...],
    operators: tuple[str, ...],
    people: tuple[str, ...],
) -> None:
    """Print users.conf for a nats-server: each service and agent, and what it may say and hear.

    \b
    Examples:
      rackwright users --cell main > users.conf
      rackwright users --replicas 3 --operator olga --user ann --node r01/r01-n03
    """
    with explained():
        named = [check_name("operator", name) for name in operators]
        found = [check_name("user", name) for name in people]
        try:
            table = everybody(cell, int(replicas), named, found)
        except ValueError as error:
            raise BadInput(str(error)) from error
        for text in nodes:
            rack, slash, node = text.partition("/")
            if not slash:
                raise BadInput(f"--node {text}: must be RACK/NODE")
            check_name("node", node)
            place = Place(
                shard=shard_of(RackId(check_name("rack", rack))), rack=rack, node=NodeId(node)
            )
            table[f"node-{node}"] = agent(cell, f"node-agent.{node}", [place])
    click.echo(users_conf(cell, int(replicas), table), nl=False)


@people
@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--server", "servers", multiple=True, help="A server of a cluster: write its routes.")
@click.option(
    "--people-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the passwords of --user go instead.",
)
def credentials(
    directory: Path,
    servers: tuple[str, ...],
    people_dir: Path | None,
    operators: tuple[str, ...],
    people: tuple[str, ...],
) -> None:
    """Make a password for each user, in DIRECTORY/USER/password, and files for the servers.

    DIRECTORY/nats/passwords.conf is for every server, routes.conf for those of a cluster. What is
    there is kept; remove a file and run it again to change a password.

    \b
    Examples:
      rackwright credentials ./credentials
      rackwright credentials ./credentials --operator olga --user ann
      rackwright credentials ./credentials --server nats-1 --server nats-2 --server nats-3
    """
    with explained():
        try:
            names = [*everybody("main", 1, operators, people)]
        except ValueError as error:
            raise BadInput(str(error)) from error
        elsewhere = dict.fromkeys(people, people_dir or directory)
        made = {
            name: _password(elsewhere.get(name, directory) / check_name("user", name))
            for name in names
        }
        _write(directory / NATS, "passwords.conf", passwords_conf(made))
        if servers:
            secret = _password(directory / NATS)
            _write(directory / NATS, "routes.conf", routes_conf(servers, secret))
    click.echo(f"{len(names)} passwords in {directory}")


def _password(folder: Path) -> str:
    path = folder / "password"
    if path.exists() and (text := path.read_text(encoding="ascii").strip()):
        return text
    text = secrets.token_urlsafe(24)
    _write(folder, path.name, text)
    return text


def _write(folder: Path, name: str, text: str) -> None:
    """Readable by its owner only, and never half of it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = folder / f".{name}.new"
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    new.rename(folder / name)
