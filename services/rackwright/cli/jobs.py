"""Commands about jobs: list them, look at one, end, resume or mend it."""

from functools import partial

import click

from rackwright.bus.errors import BusAway, NoResponder, RequestFailed
from rackwright.cli.asking import Answer
from rackwright.cli.draw_jobs import draw_job, draw_jobs
from rackwright.cli.durations import duration
from rackwright.cli.failures import FAILED, Failure
from rackwright.cli.failures import as_json as error_as_json
from rackwright.cli.following import follow_job
from rackwright.cli.numbers import Whole
from rackwright.cli.session import Where, explained, json_option, reaching, run
from rackwright.cli.show import ago, ask, show, wish
from rackwright.core.jobs import JobState
from rackwright.gateway.views import JobAnswer, JobsAnswer
from rackwright.wire.entries.job import JobCancelled
from rackwright.wire.ids import JobId, check_name
from rackwright.wire.wishes import Approve, Cancel, Pin, Resume, Swap, Unpin

NOT_FOUND = 404


@click.command()
@click.option("--state", type=click.Choice([s.value for s in JobState]), help="Only these.")
@click.option("--owner", help="Only jobs of this owner.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--all", "ended", is_flag=True, help="Also jobs that ended in the last week.")
@click.option("--limit", type=Whole(1, 1000), default=100, show_default=True)
@click.option("--after", help="Go on after this job, as the last page said.")
@json_option
@reaching
def jobs(
    where: Where,
    state: str | None,
    owner: str | None,
    queue: str | None,
    ended: bool,
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """List jobs by id: owner, queue, state, size, and where they are or why they wait.

    \b
    Examples:
      rackwright jobs
      rackwright jobs --state queued --queue research
      rackwright jobs --all --json
    """
    show(
        where,
        as_json,
        "jobs",
        JobsAnswer,
        draw_jobs,
        state=state,
        owner=owner,
        queue=queue,
        ended=ended,
        limit=limit,
        after=after,
    )


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--story/--no-story", default=True, help="Every entry that touched it.")
@click.option("--spec", is_flag=True, help="With --json: the specification too.")
@click.option("--watch", is_flag=True, help="Tell what happens to it until it has ended.")
@json_option
@reaching
def job(where: Where, job_id: str, story: bool, spec: bool, watch: bool, as_json: bool) -> None:
    """All about JOB: its state, its slices by rack, why it waits, and its whole story.

    \b
    Examples:
      rackwright job train
      rackwright job train --watch
      rackwright job train --json | jq '.ranks[] | [.rank, .node, .pid]'
    """
    name = JobId(_checked(job_id))
    if watch:
        run(_watch(where, name))
        return
    show(
        where,
        as_json,
        "job",
        JobAnswer,
        partial(draw_job, story=story),
        job=name,
        spec=spec,
        ranks=1000,
    )


def _checked(job: str) -> str:
    with explained():
        return check_name("job", job)


async def _watch(where: Where, name: JobId) -> None:
    async with where.reach() as cell:
        state = await follow_job(cell, name)
        click.echo(f"{name} is {state}")


async def _known(where: Where, name: JobId) -> None:
    """A slip of the pen would use up an id. Raises Failure; without a gateway nobody can tell."""
    async with where.reach() as cell:
        try:
            await ask(cell, "job", JobAnswer, job=name, ranks=0)
        except RequestFailed as error:
            if error.code == NOT_FOUND:
                more = "with --ahead a later submit of that id is refused"
                raise Failure(f"no job {name} is known; {more}", code="unknown-job") from error
        except (NoResponder, BusAway):
            return


def _cancelled(answer: Answer) -> str:
    entry = answer.entry
    if isinstance(entry, JobCancelled) and entry.reason.code == "cancelled-ahead":
        return f"no job {entry.job} is known; a later submit of that id will be refused"
    by_force = isinstance(entry, JobCancelled) and entry.force
    return f"{getattr(entry, 'job', 'it')} is cancelled{', without grace' if by_force else ''}"


@click.command()
@click.argument("job_ids", metavar="JOB...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Without grace, also where one was given already.")
@click.option("--ahead", is_flag=True, help="Also a job nobody knows yet: its submit is refused.")
@click.option("--why", default="", help="Kept in its story.")
@json_option
@reaching
def cancel(
    where: Where, job_ids: tuple[str, ...], force: bool, ahead: bool, why: str, as_json: bool
) -> None:
    """End each JOB, in whatever state it is.

    \b
    Examples:
      rackwright cancel train
      rackwright cancel train --force
      rackwright cancel sweep-1 sweep-2 --why "wrong data"
    """
    names = [JobId(_checked(name)) for name in job_ids]
    refused = []
    for name in names:
        try:
            if not ahead:
                run(_known(where, name))
            wish(where, Cancel(job=name, force=force, why=why), _cancelled, as_json=as_json)
        except Failure as error:
            if len(names) == 1 or error.exit_code != FAILED:
                raise
            refused.append(f"{name}: {error.format_message()}")
            if as_json:
                click.echo(error_as_json(error))
    if refused and as_json:
        raise SystemExit(FAILED)  # each has been told
    if refused:
        raise Failure("; ".join(refused))


@click.command()
@click.argument("job_id", metavar="JOB")
@json_option
@reaching
def resume(where: Where, job_id: str, as_json: bool) -> None:
    """Let a suspended JOB be queued again.

    A job is suspended when node after node failed under it with the same signal: look at its story
    before you let it have more nodes.

    \b
    Example:
      rackwright resume train
    """
    name = JobId(_checked(job_id))
    wish(where, Resume(job=name), lambda _: f"{name} is queued again", as_json=as_json)


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--off", is_flag=True, help="It may be moved again, as what it is.")
@click.option("--why", default="", help="Kept in its story.")
@json_option
@reaching
def pin(where: Where, job_id: str, off: bool, why: str, as_json: bool) -> None:
    """Let nobody move or evict JOB for another, whatever it is. Failures still are recovered.

    \b
    Examples:
      rackwright pin train --why "the paper is due"
      rackwright pin train --off
    """
    name = JobId(_checked(job_id))
    wished = Unpin(job=name, why=why) if off else Pin(job=name, why=why)
    said = f"{name} may be moved again" if off else f"{name} is pinned"
    wish(where, wished, lambda _: said, as_json=as_json)


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--for", "for_s", callback=duration, default="10m", help="For how long.")
@json_option
@reaching
def approve(where: Where, job_id: str, for_s: float, as_json: bool) -> None:
    """Let one plan be carried out for JOB, where plans wait for an operator (`defrag_approve`).

    Look at it first with `rackwright defrag JOB --dry-run`; what is carried out is the cheapest
    plan at that moment.

    \b
    Example:
      rackwright approve big-job --for 30m
    """
    name = JobId(_checked(job_id))
    said = f"a plan may be carried out for {name} in the next {ago(for_s)}"
    wish(where, Approve(job=name, for_s=for_s), lambda _: said, as_json=as_json)


@click.command()
@click.argument("job_id", metavar="JOB")
@click.argument("rank", type=Whole(0))
@click.option("--why", default="", help="What is wrong with it.")
@json_option
@reaching
def swap(where: Where, job_id: str, rank: int, why: str, as_json: bool) -> None:
    """Replace the node of RANK of JOB: for a node that is slow or wrong and reports no fault.

    \b
    Example:
      rackwright swap train 37 --why "three times slower than the others"
    """
    name = JobId(_checked(job_id))
    wish(
        where,
        Swap(job=name, rank=rank, why=why),
        lambda _: f"rank {rank} of {name} gets another node",
        as_json=as_json,
    )
