"""Jobs placed per second through the bus, memory of a service, and its restart, in a large cell."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from benchmarks.live import LiveCell, at_of, live_cell
from benchmarks.measuring import Row, Scale, alone
from rackwright.core.fleet import Fleet
from rackwright.host.clock import boottime
from rackwright.wire.codec import to_json
from rackwright.wire.ids import JobId, Owner
from rackwright.wire.jobs import JobSpec
from rackwright.wire.wishes import Cancel

SERVICE = "spare-manager-0"
RESTARTS = 5
BEHIND = 100_000
REST_S = 5.0


async def _rows(scale: Scale) -> AsyncIterator[Row]:
    racks, jobs = scale.pick(140, 20), scale.pick(10_000, 1_000)
    async with live_cell(racks, agents=0) as cell:
        await asyncio.gather(*(cell.stack.answers(f"{name}-0") for name in _names(cell)))
        before = _rss_mb(cell.stack.kept[SERVICE].pid)
        await cell.watched.until(lambda fleet: len(fleet.racks) == racks)
        await cell.pretend_joins()
        nodes = racks * 18
        await cell.watched.until(lambda fleet: _joined(fleet) == nodes, 300.0)
        after = _rss_mb(cell.stack.kept[SERVICE].pid)
        yield Row(
            name="memory_mb_per_1000_nodes",
            params=cell.params(service=SERVICE, resident_mb=round(after, 1)),
            value=(after - before) / nodes * 1000,
            unit="MB",
        )
        async for row in _placing(cell, jobs):
            yield row
        # A cell full of jobs of one GPU each, then one of an ordinary number with a long history.
        yield await _restarting(cell, jobs)
        few = scale.pick(1_000, 200)
        await _write_history(cell, few, scale.pick(BEHIND, 5_000))
        yield await _restarting(cell, few)


def _names(cell: LiveCell) -> list[str]:
    return [name.removesuffix("-0") for name in cell.stack.kept]


def _joined(fleet: Fleet) -> int:
    return sum(node.session is not None for rack in fleet.racks.values() for node in rack.nodes)


def _rss_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def _placing(cell: LiveCell, jobs: int) -> AsyncIterator[Row]:
    """Jobs of one GPU, as fast as a client can publish them; none ends meanwhile."""
    names = [f"a{turn}" for turn in range(jobs)]
    since = len(cell.watched.commits)
    began = boottime()
    await cell.submit(names, JobSpec(name=JobId("a"), gpus=1, pretend_s=3600.0))
    published = boottime() - began
    await cell.watched.until(lambda fleet: len(fleet.starting) == jobs, 300.0)
    placed = at_of(cell.watched.commits[since:], "job.placed")
    took = max(placed.values()) - began
    params = cell.params(jobs=jobs, published_s=round(published, 2))
    yield Row(name="placed_jobs_per_s", params=params, value=jobs / took, unit="1/s")


async def _write_history(cell: LiveCell, jobs: int, behind: int) -> None:
    """Cancel and submit so many jobs again and again, until `behind` entries lie in the ledger."""
    turn = 0
    while _entries(cell) < behind:
        turn += 1
        await _cancel_all(cell)
        await cell.pretend_ends(turn + 1)
        names = [f"b{turn}-{number}" for number in range(jobs)]
        await cell.submit(names, JobSpec(name=JobId("b"), gpus=1, pretend_s=3600.0))
        await cell.watched.until(lambda fleet: len(fleet.starting) == jobs, 300.0)


def _entries(cell: LiveCell) -> int:
    return sum(len(commit.entries) for commit in cell.watched.commits)


async def _restarting(cell: LiveCell, jobs: int) -> Row:
    """Kill one service some times, and wait until it says that it is ready.

    A service is restarted alone: what went before has come to rest in the others.
    """
    kept = cell.stack.kept[SERVICE]
    times = []
    await asyncio.sleep(REST_S)
    for _ in range(RESTARTS):
        kept.kill(signal.SIGKILL)
        await kept.running()  # its keeper waits longer each time; that is not the service's
        began = boottime()
        await cell.stack.answers(SERVICE)
        times.append(boottime() - began)
    verified = cell.watched.fleet.verified
    params = cell.params(
        service=SERVICE,
        entries=_entries(cell),
        commits=cell.watched.fleet.seq,
        newest_verified_snapshot=verified[-1][0] if verified else 0,
        living_jobs=jobs,
    )
    times.sort()
    told = {**params, "runs": RESTARTS, "max": round(times[-1], 2)}
    return Row(name="restart_s", params=told, value=times[len(times) // 2], unit="s")


async def _cancel_all(cell: LiveCell) -> None:
    subject = cell.subjects.wish(Owner(cell.stack.options.owner), Cancel.TYPE)
    jobs = iter(sorted(cell.watched.fleet.jobs))
    while part := list(islice(jobs, 64)):
        await asyncio.gather(
            *(cell.bus.wishes.publish(subject, to_json(Cancel(job=job))) for job in part)
        )
    await cell.watched.until(lambda fleet: not fleet.jobs, 300.0)


def measure(scale: Scale) -> Iterator[Row]:
    """Jobs placed per second through the bus, memory by nodes, restart of a service."""

    async def run() -> list[Row]:
        return [row async for row in _rows(scale)]

    yield from asyncio.run(run())


if __name__ == "__main__":
    alone(measure)
