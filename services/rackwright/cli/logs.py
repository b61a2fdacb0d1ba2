"""`rackwright logs`: the output of a job's workers, where their nodes are on this machine.

Each agent keeps what its workers print in files of its node, which only those may read who may read
that directory; they are not sent over the bus, where any user could ask for anybody's.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from rackwright.bus.errors import RequestFailed
from rackwright.cli.failures import Failure
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import ask
from rackwright.gateway.views import JobAnswer
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId, check_name
from rackwright.wire.message import Part

NOT_FOUND = 404
MOST_BYTES = 1_048_576  # of one worker's output
_LIVING = re.compile(r"(?P<job>[^.]+)\.(?P<rank>\d+)\.(?P<incarnation>\d+)")
_KEPT = re.compile(_LIVING.pattern + r"\.log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Part):
    """What one worker has printed; `path` is the file, `text` its end."""

    rank: int
    incarnation: int
    node: str
    path: str
    text: str


@click.command()
@click.argument("job_id", metavar="JOB")
@click.argument("rank", type=Whole(0), required=False)
@click.option("--lines", type=Whole(1, 100_000), help="Of each; 100 for a RANK, 10 for all.")
@click.option("--all", "earlier", is_flag=True, help="Also earlier workers of the same ranks.")
@json_option
@reaching
def logs(
    where: Where, job_id: str, rank: int | None, lines: int | None, earlier: bool, as_json: bool
) -> None:
    """The last lines that the workers of JOB, or of its RANK, have printed.

    Output stays on the nodes, in files of their agents. So this reads those of nodes on this
    machine, as `rackwright up` has them, and says for the others on which node to look.

    \b
    Examples:
      rackwright logs train
      rackwright logs train 3 --lines 1000
      rackwright logs train 3 --all --json | jq -r .text
    """
    with explained():
        name = JobId(check_name("job", job_id))
    many = lines or (10 if rank is None else 100)
    found = list(_outputs(where.state_dir / "nodes", name, rank, many))
    if not earlier:
        newest = {one.rank: one for one in found}  # the last incarnation of each comes last
        found = list(newest.values())
    if not found:
        _elsewhere(where, name, rank)
    for one in found:
        if as_json:
            click.echo(to_json(one))
            continue
        if len(found) > 1:
            click.echo(f"==> rank {one.rank}, incarnation {one.incarnation}, {one.node} <==")
        click.echo(one.text, nl=not one.text.endswith("\n"))


def _outputs(nodes: Path, job: str, rank: int | None, lines: int) -> Iterator[Output]:
    """Of every worker of the job that a node here has or had, by rank and incarnation."""
    found = []
    for node in sorted(nodes.iterdir()) if nodes.is_dir() else ():
        for path, told in (*_files(node / "workers", _LIVING), *_files(node / "logs", _KEPT)):
            if told["job"] == job and (rank is None or int(told["rank"]) == rank):
                found.append((int(told["rank"]), int(told["incarnation"]), node.name, path))
    for number, incarnation, name, path in sorted(found):
        yield Output(
            rank=number,
            incarnation=incarnation,
            node=name,
            path=str(path),
            text=last_lines(path, lines),
        )


def _files(directory: Path, pattern: re.Pattern[str]) -> Iterator[tuple[Path, re.Match[str]]]:
    """Logs of living workers lie in a directory of each; those of ended ones beside each other."""
    for path in directory.iterdir() if directory.is_dir() else ():
        told = pattern.fullmatch(path.name)
        log = path / "output.log" if path.is_dir() else path
        if told is not None and log.is_file():
            yield log, told


def last_lines(path: Path, lines: int) -> str:
    """The last lines of a file, at most a mebibyte of them; bytes that are no text are marked."""
    with explained(), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MOST_BYTES))
        data = file.read(MOST_BYTES)
    kept = data.splitlines(keepends=True)[-lines:]
    return b"".join(kept).decode("utf-8", errors="replace")


def _elsewhere(where: Where, job: JobId, rank: int | None) -> None:
    """None of it is here: say where it is. Raises Failure."""
    view = run(_asked(where, job))
    ranks = [one for one in view.ranks if rank is None or one.rank == rank]
    if view.ranks and not ranks:
        raise Failure(f"job {job} has no rank {rank}: it has {view.ranks_total} ranks, from 0")
    if not ranks:
        why = f", and waits: {view.waits.text}" if view.waits is not None else ""
        raise Failure(f"no output of job {job} is on this machine; it is {view.job.state}{why}")
    if all(one.pretended for one in ranks):
        raise Failure(f"the agents of {job} only pretend to run it: nothing is printed")
    one = ranks[0]
    worker = f"{job}.{one.rank}.{one.incarnation}"
    nodes = ", ".join(dict.fromkeys(other.node for other in ranks[:8]))
    raise Failure(
        f"its output is on {nodes}{' ...' if len(ranks) > 8 else ''}: there in"
        f" nodes/{one.node}/workers/{worker}/output.log of the agent's state directory, and in"
        f" nodes/{one.node}/logs/{worker}.log once it has ended"
    )


async def _asked(where: Where, job: JobId) -> JobAnswer:
    async with where.reach() as cell:
        try:
            view, _ = await ask(cell, "job", JobAnswer, job=job, ranks=1000, story=0)
        except RequestFailed as error:
            if error.code == NOT_FOUND:
                raise Failure(f"no job {job} is known, and no output of it is here") from error
            raise
        return view
