"""`rackwright inject`: lets a virtual node fail as a real one does, to see what happens."""

import json

import click

from rackwright.bus.errors import NoResponder
from rackwright.cli.durations import duration
from rackwright.cli.failures import BadInput, Failure
from rackwright.cli.kernel_lines import KNOWN, line_of
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import PATIENCE_S
from rackwright.wire.ids import NodeId, check_name


@click.command(epilog="Xids with a line of their own: " + ", ".join(map(str, sorted(KNOWN))))
@click.argument("node")
@click.option("--xid", type=Whole(1, 999), help="Write the line of this Xid.")
@click.option("--gpu", type=Whole(0, 15), default=0, show_default=True, help="Of which.")
@click.option("--line", help="Write this line of a kernel log, as the driver would.")
@click.option("--silence", callback=duration, help="Be silent so long, such as 10s.")
@click.option("--symptom", is_flag=True, help="With --xid 145 or 149: as an echo of a peer's.")
@json_option
@reaching
def inject(
    where: Where,
    node: str,
    xid: int | None,
    gpu: int,
    line: str | None,
    silence: float | None,
    symptom: bool,
    as_json: bool,
) -> None:
    """Let NODE, a virtual one of `up`, report a fault or fall silent.

    An Xid is written into the node's kernel log, where its agent finds it as it would a real one.

    \b
    Examples:
      rackwright inject r01-n03 --xid 79
      rackwright inject r01-n03 --xid 149 --gpu 2
      rackwright inject r01-n04 --xid 145 --symptom
      rackwright inject r02-n01 --silence 10s
    """
    with explained():
        name = NodeId(check_name("node", node))
    given = [one is not None for one in (xid, line, silence)]
    if sum(given) != 1:
        raise BadInput("say one of --xid, --line and --silence")
    if xid is not None:
        asked: dict[str, str | float] = {"line": line_of(xid, gpu, symptom=symptom)}
    elif line is not None:
        asked = {"line": line}
    else:
        asked = {"silent_s": silence or 0.0}
    data = run(_inject(where, name, asked))
    if as_json:
        click.echo(data)
    else:
        done = json.loads(data)
        click.echo(f"{name}: {done.get('line') or 'silent for ' + str(done['silent_s']) + ' s'}")


async def _inject(where: Where, node: NodeId, asked: dict[str, str | float]) -> bytes:
    async with where.reach() as cell:
        subject = cell.subjects.query(f"inject.{node}")
        data = json.dumps(asked).encode()
        try:
            return (await cell.bus.core.request(subject, data, patience=PATIENCE_S)).data
        except NoResponder as error:
            raise Failure(
                f"{node} takes no faults: is there such a node, and is it a virtual one?"
            ) from error
